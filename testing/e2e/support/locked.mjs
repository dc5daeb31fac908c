// The MCP server that asks for a login (oauth-mcp.mjs), as a separate process.
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('oauth-mcp.mjs', import.meta.url));

const freePort = () =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });

/** Starts it. `control(change)` changes how it behaves, and returns what it has seen. */
export async function startLocked() {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(process.execPath, [SCRIPT], { env: { ...process.env, PORT: String(port) }, stdio: 'ignore' });
  const control = async (change) => {
    const sent = change && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(change) };
    return (await fetch(`${url}/control`, sent)).json();
  };
  while (!(await control().catch(() => null)));
  return { url, control, stop: () => child.kill() };
}
