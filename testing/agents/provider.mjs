// A vendor on loopback: fails as planned, then answers.

import { createServer } from "node:http";
import { answers, toolCall } from "./answers.mjs";

export const TEXT = "Hello from the far side.";

// A failure is a function of the response. Each is what vendors were seen to send.
const json = (status, body, headers = {}) => (response) => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
};

export const overloaded = json(529, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } });
export const limited = (seconds) =>
  json(429, { type: "error", error: { type: "rate_limit_error", message: "slow down" } }, { "retry-after": String(seconds) });
export const html = (response) => {
  response.writeHead(503, { "content-type": "text/html" });
  response.end("<html><body><h1>503 Service Temporarily Unavailable</h1></body></html>");
};
export const cut = (response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(": nothing yet\n\n");
  setImmediate(() => response.destroy());
};
// A plan's window that is used up, in each vendor's own form.
export const window = (seconds) => (response, path) => {
  if (path.endsWith("/responses")) {
    const error = { type: "usage_limit_reached", message: "The usage limit has been reached", plan_type: "plus", resets_in_seconds: seconds };
    return json(429, { error })(response);
  }
  if (path.endsWith("/chat/completions")) {
    const message = `Rate limit reached for m1 on tokens per min (TPM): Limit 1, Used 1, Requested 1. Please try again in ${Math.floor(seconds / 60)}m${seconds % 60}s.`;
    return json(429, { error: { message, type: "tokens", param: null, code: "rate_limit_exceeded" } })(response);
  }
  const reset = String(Math.ceil(Date.now() / 1000) + seconds);
  const unified = { status: "rejected", reset, "representative-claim": "five_hour", "5h-status": "rejected", "5h-reset": reset, "5h-utilization": "1.0" };
  const headers = Object.entries(unified).map(([name, value]) => [`anthropic-ratelimit-unified-${name}`, value]);
  const error = { type: "rate_limit_error", message: "This request would exceed your account's rate limit. Please try again later." };
  json(429, { type: "error", error }, Object.fromEntries(headers))(response);
};
// Begins an answer and then says nothing more.
export const silent = (response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(": nothing yet\n\n");
};
// Fails every call, until so many seconds have passed since the first one.
export const outage = (seconds) => {
  let end;
  return () => {
    end ??= Date.now() + seconds * 1000;
    return Date.now() < end ? overloaded : undefined;
  };
};
export const always = (failure) => () => failure;
export const full = (response, path) =>
  /\/(responses|completions)$/.test(path)
    ? json(400, { error: { message: "Your input exceeds the context window of this model.", type: "invalid_request_error", param: "input", code: "context_length_exceeded" } })(response)
    : json(400, { type: "error", error: { type: "invalid_request_error", message: "prompt is too long: 205000 tokens > 200000 maximum" } })(response);
export const refused = json(401, { type: "error", error: { type: "authentication_error", message: "invalid x-api-key" } });

// Starts it with a plan of failures: those of the calls that do the work, in order, or a function that returns the failure of the
// next call, whichever it is. `tool`: a file that the first answer asks the agent to write. Returns its address, and the calls
// that it got.
export async function start(plan, tool) {
  const calls = [];
  let writes = tool;
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://x").pathname;
    const [, answer] = answers.find(([pattern]) => pattern.test(path)) ?? [];
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      if (request.method !== "POST" || !answer) return json(404, { error: { message: "not here" } })(response);
      const body = Buffer.concat(parts);
      const call = { path: request.url, body: body.toString(), at: Date.now() };
      calls.push(call);
      const { model = "m", tools = [] } = JSON.parse(body);
      // A call without tools is one for a title, which agents do not wait for. codex makes none, and puts its tools elsewhere.
      call.works = tools.length > 0 || path.endsWith("/responses");
      const failure = typeof plan === "function" ? plan() : call.works ? plan.shift() : undefined;
      call.failed = failure !== undefined;
      if (failure) return failure(response, path);
      response.writeHead(200, { "content-type": "text/event-stream", "request-id": `req-${calls.length}` });
      const asks = writes && toolCall(path, writes, JSON.parse(body));
      if (asks) writes = undefined;
      for (const piece of asks || answer(TEXT, model)) response.write(piece);
      response.end();
    });
  });
  // By default it closes idle connections after 5 s, which is how long the first wait lasts: one request in a few would meet that.
  server.keepAliveTimeout = 0;
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, calls, close: () => server.closeAllConnections?.() ?? server.close() };
}
