// Runs real coding agents behind `everturn with`, without a network: each scenario is a provider that fails and then answers.
//
//   node run.mjs EVERTURN BIN [AGENT,...] [SCENARIO,...]
//
// EVERTURN is the program, BIN the directory with the agents' executables. Prints a table in Markdown. `cargo xtask agents`
// installs the agents and calls this.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { cut, full, html, limited, outage, overloaded, refused, silent, start, TEXT, window } from "./provider.mjs";

const MOST_SECONDS = 900;

const [everturn, bin, only, which] = process.argv.slice(2);

// How each agent is asked once, and what its user's environment has. The provider stands where the vendor would.
const AGENTS = {
  claude: {
    words: ["-p", "say hello", "--model", "claude-sonnet-4-5", "--allowedTools", "Bash"],
    variables: (url) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-client", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1" }),
  },
  codex: {
    // The network's namespace is the sandbox; its own needs rights that are not there.
    words: ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "say hello"],
    variables: (url) => ({ OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: "sk-client" }),
  },
  opencode: {
    words: ["run", "-m", "anthropic/claude-sonnet-4-5", "say hello"],
    variables: (url) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-client", OPENCODE_DISABLE_AUTOUPDATE: "1" }),
  },
  pi: {
    words: ["--provider", "anthropic", "--model", "claude-sonnet-4-5", "-p", "say hello"],
    variables: (url) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-client", PI_OFFLINE: "1" }),
  },
};

const SCENARIOS = {
  "answers at once": { plan: [] },
  "529, 3 times": { plan: [overloaded, overloaded, overloaded] },
  "429, retry-after 70": { plan: [limited(70)] },
  "503 in HTML, twice": { plan: [html, html] },
  "cut before content, 3 times": { plan: [cut, cut, cut] },
  "a plan's window that ends in 3 min": { plan: [window(180)] },
  "silent once, until the idle timer": { plan: [silent] },
  "529 for 5 min": { plan: outage(300) },
  "529, 3 times, then a tool call": { plan: [overloaded, overloaded, overloaded], writes: "written by the agent" },
  "401, always": { plan: Array(20).fill(refused), fails: true },
  "a full context, always": { plan: Array(20).fill(full), fails: true },
};

function inside() {
  // An empty network: no program can look for the outside.
  const words = process.argv.slice(1).map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
  const command = `ip link set lo up && exec '${process.execPath}' ${words}`;
  const ended = spawnSync("unshare", ["-rn", "sh", "-c", command], { stdio: "inherit", env: { ...process.env, EVERTURN_AGENTS_INSIDE: "1" } });
  process.exit(ended.status ?? 1);
}

async function run(name, { words, variables }, { plan, writes }) {
  // Not below /tmp: codex refuses to keep its helpers there.
  const base = join(process.cwd(), "target", "agents");
  mkdirSync(base, { recursive: true });
  const home = mkdtempSync(join(base, "home-"));
  const work = join(home, "work");
  mkdirSync(work);
  const file = join(work, "written.txt");
  const provider = await start(plan, writes && { file, text: writes });
  const env = { HOME: home, PATH: [resolve(bin), process.env.PATH].join(delimiter), TERM: "dumb", TMPDIR: tmpdir(), ...variables(provider.url) };
  const began = Date.now();
  const child = spawn(resolve(everturn), ["with", name, ...words], { cwd: work, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (output += piece));
  const limit = setTimeout(() => child.kill("SIGKILL"), MOST_SECONDS * 1000);
  const code = await new Promise((done) => child.on("close", (code, signal) => done(code ?? signal)));
  clearTimeout(limit);
  provider.close();
  const written = existsSync(file) ? readFileSync(file, "utf8") : undefined;
  rmSync(home, { recursive: true, force: true });
  return { code, written, output, calls: provider.calls, seconds: (Date.now() - began) / 1000 };
}

async function main() {
  const chosen = (all, list) => Object.entries(all).filter(([name]) => !list || list.split(",").some((part) => name.startsWith(part)));
  let failed = 0;
  console.log("| agent | provider | exit code | answer | calls | seconds |\n|---|---|---|---|---|---|");
  for (const [name, agent] of chosen(AGENTS, only)) {
    for (const [title, scenario] of chosen(SCENARIOS, which)) {
      const { code, written, output, calls, seconds } = await run(name, agent, scenario);
      const has = output.includes(TEXT);
      const good = scenario.fails ? code !== 0 && !has : code === 0 && has && written === scenario.writes;
      failed += good ? 0 : 1;
      console.log(`| ${name} | ${title} | ${code} | ${has ? "whole" : "none"} | ${calls.length} | ${seconds.toFixed(1)} |${good ? "" : " **wrong**"}`);
      if (!good) console.error(`--- ${name}, ${title}:\n${output.slice(-2000)}\n--- calls: ${calls.map((call) => call.path).join(" ")}`);
    }
  }
  process.exit(failed ? 1 : 0);
}

if (process.env.EVERTURN_AGENTS_INSIDE) await main();
else inside();
