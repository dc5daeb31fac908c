// An MCP server over stdio that records calls: a line with the tool's name in the given file, and its argument `turn`, if any.
import { appendFileSync } from 'node:fs';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const [file] = process.argv.slice(2);
const tool = (name, annotations) => ({
  name,
  description: 'Notes that it was called.',
  inputSchema: { type: 'object' },
  annotations,
});

const server = new Server({ name: 'counting', version: '1' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: [tool('once', {}), tool('again', { idempotentHint: true })],
}));
server.setRequestHandler(CallToolRequestSchema, ({ params: { name, arguments: { turn } = {} } }) => {
  appendFileSync(file, `${turn === undefined ? name : `${name} ${turn}`}\n`);
  return { content: [{ type: 'text', text: 'noted' }] };
});
await server.connect(new StdioServerTransport());
