// Runs real coding agents behind `everturn with`, without a network: each scenario is a provider that fails and then answers.
//
//   node run.mjs EVERTURN BIN [AGENT,...] [SCENARIO,...]
//
// EVERTURN is the program, BIN the directory with the agents' executables. An agent or scenario is named by its beginning.
// Prints a table in Markdown. `cargo xtask agents` installs the agents and calls this. They mostly wait, so several run at
// once: EVERTURN_AGENTS_AT_ONCE, 10 without it.

import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { AGENTS } from "./agents.mjs";
import { start, TEXT } from "./provider.mjs";
import { SCENARIOS } from "./scenarios.mjs";
import { serve } from "./server.mjs";

const MOST_MINUTES = 50;
const AT_ONCE = Number(process.env.EVERTURN_AGENTS_AT_ONCE ?? 10);

const [everturn, bin, only, which] = process.argv.slice(2);
const program = resolve(everturn);

function inside() {
  // An empty network: no program can look for the outside.
  const words = process.argv.slice(1).map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
  const command = `ip link set lo up && exec '${process.execPath}' ${words}`;
  const ended = spawnSync("unshare", ["-rn", "sh", "-c", command], { stdio: "inherit", env: { ...process.env, EVERTURN_AGENTS_INSIDE: "1" } });
  process.exit(ended.status ?? 1);
}

async function until(condition) {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 100));
}

// One agent through one scenario. `isDirect`: without Everturn.
async function run(agent, { plan, writes, serve: config, token, kill, minutes = MOST_MINUTES }, isDirect) {
  // Not below /tmp: codex refuses to keep its helpers there.
  const base = join(process.cwd(), "target", "agents");
  mkdirSync(base, { recursive: true });
  const home = mkdtempSync(join(base, "home-"));
  const work = join(home, "work");
  mkdirSync(work);
  const file = join(work, "written.txt");
  const name = agent.program;
  const provider = await start(plan(), writes && { file, text: writes });
  const basics = { HOME: home, PATH: [resolve(bin), process.env.PATH].join(delimiter), TERM: "dumb", TMPDIR: tmpdir() };
  agent.prepare?.(provider.url, home);
  const env = { ...basics, EVERTURN_LOG: "everturn_orchestrator::relay=info", ...agent.variables(provider.url) };
  if (token) env.EVERTURN_TOKEN = token;
  let output = "";
  const listen = (piece) => (output += piece);
  const server = config === undefined ? undefined : await serve(program, home, { provider: provider.url, config, env, log: listen });
  let command = [program, "with", ...(server ? ["--server", server.url] : []), name, ...agent.words];
  if (isDirect) {
    const { words = [], variables = {} } = agent.direct(provider.url, home);
    command = [name, ...words, ...agent.words];
    Object.assign(env, variables);
  }
  const began = Date.now();
  const child = spawn(command[0], command.slice(1), { cwd: work, env, stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [child.stdout, child.stderr]) stream.on("data", listen);
  const limit = setTimeout(() => child.kill("SIGKILL"), minutes * 60_000);
  const ended = new Promise((done) => child.on("close", (code, signal) => done(code ?? signal)));
  if (kill) {
    const isOver = ended.then(() => true);
    await Promise.race([isOver, until(() => told(output).length >= kill)]);
    await server.kill();
    await server.start();
  }
  const code = await ended;
  clearTimeout(limit);
  await server?.kill();
  provider.close();
  const written = existsSync(file) ? readFileSync(file, "utf8") : undefined;
  rmSync(home, { recursive: true, force: true });
  return { code, written, output, calls: provider.calls, seconds: (Date.now() - began) / 1000 };
}

// The waits that the log tells of, in milliseconds.
function told(output) {
  const waits = output.matchAll(/a call waits.*?call=(\S+).*?attempt=(\d+) delay_ms=(\d+)/g);
  return [...new Map([...waits].map(([, call, attempt, wait]) => [`${call} ${attempt}`, Number(wait)])).values()];
}

// Whether a wait was shorter than told. For calls that fail one after the other.
function isHurried(calls, waits) {
  const work = calls.filter((call) => call.works);
  return waits.some((wait, at) => work[at + 1]?.at - work[at]?.at < wait - 500);
}

// Whether a request was answered twice.
function isDoubled(calls) {
  const answered = calls.filter((call) => !call.failed).map(({ path, body }) => createHash("sha256").update(`${path} ${body}`).digest("hex"));
  return new Set(answered).size < answered.length;
}

// What an agent prints about a failure, without what differs from run to run.
function said({ output }) {
  const lines = output.replaceAll(/\x1b\[[0-9;]*m/g, "").split("\n");
  const ours = /everturn_orchestrator|^\d{4}-\d\d-\d\dT/;
  return lines
    .filter((line) => !ours.test(line))
    .map((line) => line.replaceAll(/https?:\/\/127\.0\.0\.1:\d+/g, "URL").replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "ID").trimEnd())
    .filter((line) => line && !/^(provider|workdir|session id):/.test(line))
    .join("\n");
}

// Returns the row of a table, and what is wrong, if anything.
async function cell(name, agent, title, scenario) {
  const result = await run(agent, scenario);
  const { code, written, output, calls } = result;
  const has = output.includes(TEXT);
  const [failures, waits] = [calls.filter((call) => call.failed).length, told(output)];
  const isOrdered = Array.isArray(scenario.plan());
  const wrong = [];
  let answer = has ? "whole" : "none";
  if (scenario.fails) {
    const direct = await run(agent, scenario, true);
    const isSame = direct.code === code && direct.calls.length === calls.length && said(direct) === said(result);
    if (!isSame) wrong.push(`direct: exit code ${direct.code}, ${direct.calls.length} calls:\n${said(direct)}\n--- behind Everturn:\n${said(result)}`);
    answer = isSame ? "as direct" : "not as direct";
  } else {
    if (code !== 0 || !has) wrong.push("no answer");
    if (written !== scenario.writes) wrong.push(`written: ${written}`);
    else if (written) answer += ", file written";
    if (failures !== waits.length) wrong.push(`${failures} failures, but ${waits.length} told`);
    if (isOrdered && isHurried(calls, waits)) wrong.push(`waits shorter than ${waits.join(", ")} ms`);
    if (isDoubled(calls)) wrong.push("a request was answered twice");
  }
  const row = `| ${name} | ${title} | ${code} | ${answer} | ${calls.length} | ${scenario.fails ? "" : waits.length} | ${result.seconds.toFixed(0)} |${wrong.length ? " **wrong**" : ""}`;
  if (wrong.length) console.error(`--- ${name}, ${title}: ${wrong.join("; ")}\n${output.slice(-4000)}\n--- calls: ${calls.map((call) => `${call.path}${call.failed ? " failed" : ""}`).join(", ")}`);
  return { row, isWrong: wrong.length > 0 };
}

async function main() {
  const chosen = (all, list) => Object.entries(all).filter(([name]) => !list || list.split(",").some((part) => name.startsWith(part)));
  const scenarios = chosen(SCENARIOS, which).filter(([, { asked }]) => which || !asked);
  const cells = scenarios.flatMap(([title, scenario]) =>
    chosen(AGENTS, only)
      .filter(([, { prepare }]) => !prepare || scenario.serve === undefined)
      .map(([name, agent]) => () => cell(name, { program: name, ...agent }, title, scenario)),
  );
  let failed = 0;
  const rows = [];
  const left = cells.entries();
  const worker = async () => {
    for (const [at, cell] of left) {
      const { row, isWrong } = await cell();
      failed += isWrong;
      rows[at] = row;
      console.error(row);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  console.log("| agent | provider | exit code | answer | calls | waits told | seconds |\n|---|---|---|---|---|---|---|");
  for (const row of rows) console.log(row);
  process.exit(failed ? 1 : 0);
}

if (process.env.EVERTURN_AGENTS_INSIDE) await main();
else inside();
