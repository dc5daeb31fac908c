// An MCP server that asks for a login, and its authorization server: the TypeScript SDK's own routes, with everything kept in
// memory. Its port is in PORT. `POST /control` changes how it behaves, `GET /control` says what happened.
import { randomUUID } from 'node:crypto';
import express from 'express';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { mcpAuthRouter, getOAuthProtectedResourceMetadataUrl } from '@modelcontextprotocol/sdk/server/auth/router.js';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import { InvalidGrantError, InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js';

const port = Number(process.env.PORT);
const base = `http://127.0.0.1:${port}`;
const resource = new URL(`${base}/mcp`);

/** How it behaves: seconds until a token expires; whether people refuse, see a page first; whether the token endpoint is down. */
const control = { expiresIn: 3600, refuses: false, asks: false, isDown: false };
const seen = { registered: 0, issued: 0, refreshed: 0, refused: 0, listed: 0, calls: 0, secrets: [] };

const clients = new Map();
const codes = new Map();
const tokens = new Map();
const refreshes = new Map();

function issue(client, scopes, kind) {
  if (control.isDown) throw new Error('down');
  seen[kind] += 1;
  const [access, refresh] = [`access-${randomUUID()}`, `refresh-${randomUUID()}`];
  seen.secrets.push(access, refresh);
  const expiresAt = Math.floor(Date.now() / 1000) + control.expiresIn;
  tokens.set(access, { token: access, clientId: client.client_id, scopes, expiresAt, resource });
  refreshes.set(refresh, scopes);
  return { access_token: access, token_type: 'bearer', expires_in: control.expiresIn, refresh_token: refresh, scope: scopes.join(' ') };
}

const provider = {
  clientsStore: {
    getClient: (id) => clients.get(id),
    registerClient(client) {
      seen.registered += 1;
      const known = { ...client, client_id: randomUUID() };
      clients.set(known.client_id, known);
      return known;
    },
  },
  async authorize(client, { state, scopes = [], redirectUri, codeChallenge }, response) {
    const back = (answer) => {
      const url = new URL(redirectUri);
      for (const [name, value] of Object.entries({ ...answer, state })) url.searchParams.set(name, value);
      return url.href;
    };
    const code = `code-${randomUUID()}`;
    seen.secrets.push(code);
    codes.set(code, { clientId: client.client_id, scopes, codeChallenge });
    const [yes, no] = [back({ code }), back({ error: 'access_denied', error_description: 'you said no' })];
    if (!control.asks) return response.redirect(control.refuses ? no : yes);
    const link = (href, text) => `<a href="${href.replaceAll('&', '&amp;')}">${text}</a>`;
    response.send(`<!doctype html><title>Log in</title><h1>Let ${client.client_name} in?</h1>${link(yes, 'Allow')} ${link(no, 'Deny')}`);
  },
  challengeForAuthorizationCode: async (_, code) => codes.get(code)?.codeChallenge,
  async exchangeAuthorizationCode(client, code) {
    const known = codes.get(code);
    codes.delete(code);
    if (known?.clientId !== client.client_id) throw new InvalidGrantError('no such code');
    return issue(client, known.scopes, 'issued');
  },
  async exchangeRefreshToken(client, refresh) {
    const scopes = refreshes.get(refresh);
    // Good for one use, as the specification demands for public clients.
    refreshes.delete(refresh);
    if (!scopes) {
      seen.refused += 1;
      throw new InvalidGrantError('no such refresh token');
    }
    return issue(client, scopes, 'refreshed');
  },
  async verifyAccessToken(token) {
    const known = tokens.get(token);
    if (!known || known.expiresAt * 1000 < Date.now()) throw new InvalidTokenError('no such token');
    return known;
  },
};

const app = express();
app.use(express.json());
app.get('/control', (_, response) => response.json(seen));
app.post('/control', ({ body }, response) => {
  if (body.revoke) {
    tokens.clear();
    if (body.revoke === 'all') refreshes.clear();
  }
  Object.assign(control, body);
  response.json(seen);
});
const open = { rateLimit: false };
app.use(mcpAuthRouter({
  provider,
  issuerUrl: new URL(base),
  resourceServerUrl: resource,
  scopesSupported: ['tools'],
  authorizationOptions: open,
  tokenOptions: open,
  clientRegistrationOptions: open,
  revocationOptions: open,
}));
const guard = requireBearerAuth({ verifier: provider, resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource) });
app.all('/mcp', guard, async (request, response) => {
  if (request.body?.method === 'tools/list') seen.listed += 1;
  const server = new McpServer({ name: 'locked', version: '1' });
  const text = (text) => ({ content: [{ type: 'text', text }] });
  server.registerTool('greet', { description: 'Greets' }, () => {
    seen.calls += 1;
    return text('hello, friend');
  });
  server.registerTool('leak', { description: 'Repeats the token' }, () => text(`you sent ${request.headers.authorization}`));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on('close', () => transport.close());
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});
app.listen(port, '127.0.0.1');
