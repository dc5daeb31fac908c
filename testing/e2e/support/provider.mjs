// A scripted Chat Completions provider on loopback, which records requests.
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * `says(answer)` queues an answer: a text; `null` for "overloaded"; a promise of an answer that begins later;
 * `{ breaks: text, once }` for a text after which the connection is cut, when `once` resolves (by default after 100 ms);
 * `{ calls: [{ name, input }] }` for tool calls; or `{ status, headers, body }`. Requests with more than `limit` tokens, of
 * four characters each, are rejected. A request that does not ask for a stream gets the answer in one piece. `usage` is the token usage that answers report, `reports` are other fields of their chunks. `list` has the names of its models;
 * without one, they cannot be listed.
 */
export async function startProvider() {
  const answers = [];
  const requests = [];
  let callsMade = 0;
  const server = createServer(async (request, response) => {
    if (request.method === 'GET') {
      response.writeHead(provider.list ? 200 : 404, { 'content-type': 'application/json' });
      return response.end(JSON.stringify(provider.list ? { data: provider.list.map((id) => ({ id })) } : { error: 'no list' }));
    }
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts).toString();
    const { model, messages, stream } = JSON.parse(body);
    requests.push({ model, said: messages.map(({ content }) => content), headers: request.headers, body });
    if (messages.reduce((sum, { content }) => sum + (content?.length ?? 0), 0) / 4 > provider.limit) {
      response.writeHead(400, { 'content-type': 'application/json' });
      return response.end('{"error":{"code":"context_length_exceeded","message":"Too many tokens."}}');
    }
    const answer = await answers.shift();
    if (answer === null || answer === undefined) {
      response.writeHead(529, { 'content-type': 'application/json' });
      return response.end('{"error":{"type":"overloaded_error","message":"Overloaded"}}');
    }
    if (answer.status) {
      response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
      return response.end(JSON.stringify(answer.body));
    }
    if (!stream) {
      response.writeHead(200, { 'content-type': 'application/json' });
      const message = { role: 'assistant', content: answer };
      return response.end(JSON.stringify({ id: 'c', object: 'chat.completion', model, choices: [{ index: 0, message, finish_reason: 'stop' }] }));
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const chunk = (delta, finish_reason = null) =>
      response.write(`data: ${JSON.stringify({ ...provider.reports, choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    const calls = answer.calls?.map(({ name, input }, index) => {
      const called = { name, arguments: JSON.stringify(input ?? {}) };
      return { index, id: `call-${(callsMade += 1)}`, type: 'function', function: called };
    });
    chunk({ role: 'assistant', ...(calls ? { tool_calls: calls } : { content: answer.breaks ?? answer }) });
    if (answer.breaks) return (answer.once ?? sleep(100)).then(() => response.destroy());
    chunk({}, calls ? 'tool_calls' : 'stop');
    if (provider.usage) response.write(`data: ${JSON.stringify({ choices: [], usage: provider.usage })}\n\n`);
    response.end('data: [DONE]\n\n');
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const provider = {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    requests,
    limit: Infinity,
    usage: undefined,
    reports: undefined,
    list: null,
    says: (...more) => answers.push(...more),
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
  return provider;
}
