// A server that runs by itself, with a data file, and can be killed and started again where it was.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  return port;
}

// Starts one in front of a provider. `log` receives what it logs.
export async function serve(everturn, home, { provider, config, env, log }) {
  const vendors = [["anthropic", "anthropic"], ["openai", "openai-responses"]].map(
    ([name, kind]) => `[[provider]]\nname = "${name}"\nkind = "${kind}"\nbase_url = "${provider}/v1"\ncredential = "client"\nmodels = ["any"]\n`,
  );
  const file = join(home, "everturn.toml");
  writeFileSync(file, [config, ...vendors].join("\n"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const words = ["serve", "--config", file, "--listen", `127.0.0.1:${port}`, "--data", join(home, "everturn.db")];
  let child;
  const start = async () => {
    child = spawn(everturn, words, { env, stdio: ["ignore", "ignore", "pipe"] });
    child.stderr.on("data", log);
    const ended = once(child, "exit");
    for (;;) {
      const answers = await fetch(`${url}/health`).then((response) => response.ok, () => false);
      if (answers) return;
      const is = await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 100))]);
      if (is) throw new Error("the server did not start");
    }
  };
  const kill = async () => {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  await start();
  return { url, start, kill };
}
