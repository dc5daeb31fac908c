// How each agent is asked once, and what its user's environment has. The provider stands where the vendor would.

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

// A file below the agent's home, as its user would have written it.
function write(home, name, value) {
  mkdirSync(dirname(join(home, name)), { recursive: true });
  writeFileSync(join(home, name), JSON.stringify(value));
}

const ANTHROPIC = { ANTHROPIC_API_KEY: "sk-ant-client" };

// `program`: its executable, if not the key. `prepare`: writes a file that names the provider, given its address and the agent's home;
// only `everturn with` without a server finds that. `words`: its arguments. `variables`: its environment behind Everturn, given the provider's address. `direct`: arguments and
// environment that it needs to call the provider itself, given its address and the agent's home.
export const AGENTS = {
  claude: {
    words: ["-p", "say hello", "--model", "claude-sonnet-4-5", "--allowedTools", "Bash"],
    variables: (url) => ({ ...ANTHROPIC, ANTHROPIC_BASE_URL: url, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1" }),
    // `everturn with` sets this too, and it changes what is sent.
    direct: () => ({ variables: { ENABLE_TOOL_SEARCH: "true" } }),
  },
  codex: {
    // The network's namespace is the sandbox; its own needs rights that are not there.
    words: ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "say hello"],
    variables: (url) => ({ OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: "sk-client" }),
    direct: (url) => {
      const provider = `{ name = "OpenAI", base_url = "${url}/v1", wire_api = "responses", env_key = "OPENAI_API_KEY" }`;
      return { words: ["-c", 'model_provider="direct"', "-c", `model_providers.direct=${provider}`] };
    },
  },
  opencode: {
    words: ["run", "-m", "anthropic/claude-sonnet-4-5", "say hello"],
    variables: (url) => ({ ...ANTHROPIC, ANTHROPIC_BASE_URL: url, OPENCODE_DISABLE_AUTOUPDATE: "1" }),
    direct: (url) => {
      const config = { provider: { anthropic: { options: { baseURL: `${url}/v1` } } } };
      return { variables: { OPENCODE_CONFIG_CONTENT: JSON.stringify(config) } };
    },
  },
  pi: {
    words: ["--provider", "anthropic", "--model", "claude-sonnet-4-5", "-p", "say hello"],
    variables: (url) => ({ ...ANTHROPIC, ANTHROPIC_BASE_URL: url, PI_OFFLINE: "1" }),
    direct: (url, home) => {
      const file = join(home, "direct.mjs");
      writeFileSync(file, `export default (pi) => pi.registerProvider("anthropic", { baseUrl: "${url}" });\n`);
      return { words: ["--extension", file] };
    },
  },
  "opencode (Chat)": {
    program: "opencode",
    prepare: (url, home) => {
      const options = { baseURL: `${url}/v1`, apiKey: "sk-client" };
      const own = { npm: "@ai-sdk/openai-compatible", name: "own", options, models: { m1: { name: "m1", tool_call: true } } };
      write(home, ".config/opencode/opencode.json", { provider: { own } });
    },
    words: ["run", "-m", "own/m1", "say hello"],
    variables: () => ({ OPENCODE_DISABLE_AUTOUPDATE: "1" }),
    direct: () => ({}),
  },
  "pi (Chat)": {
    program: "pi",
    prepare: (url, home) => {
      const own = { baseUrl: `${url}/v1`, api: "openai-completions", apiKey: "sk-client", models: [{ id: "m1" }] };
      write(home, ".pi/agent/models.json", { providers: { own } });
    },
    words: ["--provider", "own", "--model", "m1", "-p", "say hello"],
    variables: () => ({ PI_OFFLINE: "1" }),
    direct: () => ({}),
  },
};
