// A vendor on loopback: fails as planned, then answers.

import { createServer } from "node:http";
import { answers } from "./answers.mjs";

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
export const refused = json(401, { type: "error", error: { type: "authentication_error", message: "invalid x-api-key" } });

// Starts it with a plan of failures. Returns its address, and the calls that it got.
export async function start(plan) {
  const calls = [];
  const left = [...plan];
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://x").pathname;
    const [, answer] = answers.find(([pattern]) => pattern.test(path)) ?? [];
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      if (request.method !== "POST" || !answer) return json(404, { error: { message: "not here" } })(response);
      const body = Buffer.concat(parts);
      calls.push({ path: request.url, headers: request.headers, body: body.toString(), at: Date.now() });
      const failure = left.shift();
      if (failure) return failure(response);
      const { model = "m" } = JSON.parse(body);
      response.writeHead(200, { "content-type": "text/event-stream", "request-id": `req-${calls.length}` });
      for (const piece of answer(TEXT, model)) response.write(piece);
      response.end();
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, calls, close: () => server.closeAllConnections?.() ?? server.close() };
}
