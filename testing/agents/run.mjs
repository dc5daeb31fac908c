// Runs real coding agents behind `everturn with`, without a network: each scenario is a provider that fails and then answers.
//
//   node run.mjs EVERTURN BIN [AGENT,...] [SCENARIO,...]
//
// EVERTURN is the program, BIN the directory with the agents' executables. Prints a table in Markdown. `cargo xtask agents`
// installs the agents and calls this.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { cut, html, limited, overloaded, refused, start, TEXT } from "./provider.mjs";

const MOST_SECONDS = 600;

const [everturn, bin, only, which] = process.argv.slice(2);

// How each agent is asked once, and what its user's environment has. The provider stands where the vendor would.
const AGENTS = {
  claude: {
    words: ["-p", "say hello", "--model", "claude-sonnet-4-5"],
    variables: (url) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-client", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1" }),
  },
  codex: {
    words: ["exec", "--skip-git-repo-check", "say hello"],
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
  "401, always": { plan: Array(20).fill(refused), fails: true },
};

function inside() {
  // An empty network: no program can look for the outside.
  const words = process.argv.slice(1).map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
  const command = `ip link set lo up && exec '${process.execPath}' ${words}`;
  const ended = spawnSync("unshare", ["-rn", "sh", "-c", command], { stdio: "inherit", env: { ...process.env, EVERTURN_AGENTS_INSIDE: "1" } });
  process.exit(ended.status ?? 1);
}

async function run(name, { words, variables }, { plan }) {
  const provider = await start(plan);
  // Not below /tmp: codex refuses to keep its helpers there.
  const base = join(process.cwd(), "target", "agents");
  mkdirSync(base, { recursive: true });
  const home = mkdtempSync(join(base, "home-"));
  const work = join(home, "work");
  mkdirSync(work);
  const env = { HOME: home, PATH: [resolve(bin), process.env.PATH].join(delimiter), TERM: "dumb", TMPDIR: tmpdir(), ...variables(provider.url) };
  const began = Date.now();
  const child = spawn(resolve(everturn), ["with", name, ...words], { cwd: work, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (output += piece));
  const limit = setTimeout(() => child.kill("SIGKILL"), MOST_SECONDS * 1000);
  const code = await new Promise((done) => child.on("close", (code, signal) => done(code ?? signal)));
  clearTimeout(limit);
  provider.close();
  rmSync(home, { recursive: true, force: true });
  return { code, output, calls: provider.calls, seconds: (Date.now() - began) / 1000 };
}

async function main() {
  const chosen = (all, list) => Object.entries(all).filter(([name]) => !list || list.split(",").some((part) => name.startsWith(part)));
  let failed = 0;
  console.log("| agent | provider | exit code | answer | calls | seconds |\n|---|---|---|---|---|---|");
  for (const [name, agent] of chosen(AGENTS, only)) {
    for (const [title, scenario] of chosen(SCENARIOS, which)) {
      const { code, output, calls, seconds } = await run(name, agent, scenario);
      const has = output.includes(TEXT);
      const good = scenario.fails ? code !== 0 && !has : code === 0 && has;
      failed += good ? 0 : 1;
      console.log(`| ${name} | ${title} | ${code} | ${has ? "whole" : "none"} | ${calls.length} | ${seconds.toFixed(1)} |${good ? "" : " **wrong**"}`);
      if (!good) console.error(`--- ${name}, ${title}:\n${output.slice(-2000)}\n--- calls: ${calls.map((call) => call.path).join(" ")}`);
    }
  }
  process.exit(failed ? 1 : 0);
}

if (process.env.EVERTURN_AGENTS_INSIDE) await main();
else inside();
