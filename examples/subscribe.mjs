#!/usr/bin/env node
// Watches a conversation and says when a retry waits, why, and how it ended. No packages needed.
//
//   node subscribe.mjs [SERVER] [CONVERSATION]
//
// Without a conversation it starts one. It listens over WebSocket where Node has it built in (from 22 on, or 20 with
// --experimental-websocket), else over server-sent events: the events are the same.
import { setTimeout as sleep } from 'node:timers/promises';

/** The server understood and said no: asking again will not help. */
class Refusal extends Error {}

const [server = 'http://127.0.0.1:4777', given] = process.argv.slice(2);
const conversationId = given ?? (await begin('Hello!'));

// A cursor names a place between two events. 0 is the very beginning; without one, a subscriber starts with the running
// turn. After a broken connection the last one received continues with what was missed, each event once.
let cursor = '0';
const connect = globalThis.WebSocket ? overWebSocket : overServerSentEvents;
console.log(`watching ${conversationId}, ${connect.name}`);

watching: for (;;) {
  try {
    for await (const [event, place] of await connect()) {
      cursor = place;
      const line = describe(event);
      if (line) console.log(line);
      // A conversation has no end; this script ends with the turn.
      if (event.type === 'turn-sealed') break watching;
    }
  } catch (error) {
    if (error instanceof Refusal) {
      console.error(error.message);
      process.exit(1);
    }
  }
  console.log('connection lost: trying again in a second');
  await sleep(1000);
}

function describe(event) {
  switch (event.type) {
    case 'provider-retry':
      return `retry ${event.attempt + 1} in ${event.delayMs} ms: ${event.message.slice(0, 80)}`;
    case 'retry-ended':
      return `${event.outcome} after ${event.attempts} retries`;
    case 'error':
      return `gave up: ${event.message}`;
    case 'done':
      return `done: ${event.reason}`;
  }
}

/** Starts a turn and leaves it to itself: nobody has to listen for it to go on. */
async function begin(message) {
  const body = JSON.stringify({ message });
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${server}/chat`, { method: 'POST', headers, body });
  if (!response.ok) throw new Error(`POST /chat: ${response.status} ${await response.text()}`);
  await response.body.cancel();
  return response.headers.get('x-conversation-id');
}

function overWebSocket() {
  const socket = new WebSocket(`${server.replace(/^http/, 'ws')}/ws`);
  const hangUp = () => {
    socket.onclose = null;
    socket.close();
  };
  const start = (events) => {
    socket.onopen = () =>
      socket.send(JSON.stringify({ type: 'chat.subscribe', conversationId, cursor, extensions: true }));
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.type === 'chat.delta') events.enqueue([message.event, message.cursor]);
      if (message.type === 'chat.error') {
        hangUp();
        events.error(new Refusal(message.message));
      }
    };
    socket.onclose = () => events.close();
  };
  return new ReadableStream({ start, cancel: hangUp });
}

async function* overServerSentEvents() {
  const response = await fetch(`${server}/conversations/${conversationId}/events?extensions=true`, {
    headers: { 'last-event-id': cursor },
  });
  if (!response.ok) throw new Refusal((await response.json()).error);
  let text = '';
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    // A blank line ends a message; a piece may end anywhere.
    const messages = text.split('\n\n');
    text = messages.pop();
    for (const message of messages) {
      const id = /^id: ?(.*)$/m.exec(message)?.[1];
      const data = /^data: ?(.*)$/m.exec(message)?.[1];
      if (data) yield [JSON.parse(data), id];
    }
  }
}
