// OpenAI's client with Everturn in place of OpenAI. Its protocol has no waits or approvals, so this page gets
// them over Everturn's own WebSocket. A client that needs neither can omit that part.
import OpenAI from 'openai';
import { page, server } from './page.js';

const client = new OpenAI({ baseURL: `${server}/v1`, apiKey: 'none', dangerouslyAllowBrowser: true });
// With a name, the conversation is stored and can be watched.
const conversationId = crypto.randomUUID();
const messages = [];
const items = [];
let [wait, error, busy] = [null, null, false];

async function send(content) {
  messages.push({ role: 'user', content });
  items.push({ role: 'user', text: content });
  const answer = { role: 'assistant', text: '' };
  [error, busy] = [null, true];
  show();
  try {
    const [model] = (await client.models.list()).data;
    const stream = await client.chat.completions.create({
      model: model.id,
      messages,
      stream: true,
      metadata: { conversation_id: conversationId },
    });
    for await (const chunk of stream) {
      answer.text += chunk.choices[0]?.delta.content ?? '';
      if (answer.text && !items.includes(answer)) items.push(answer);
      show();
    }
    messages.push({ role: 'assistant', content: answer.text });
  } catch (failure) {
    error = failure.message;
  }
  [wait, busy] = [null, false];
  show();
}

const socket = new WebSocket(`${server.replace(/^http/, 'ws')}/ws`);
const tell = (command) => socket.send(JSON.stringify({ conversationId, ...command }));
let isWatched = false;
socket.onmessage = ({ data }) => {
  const message = JSON.parse(data);
  const event = message.event ?? {};
  if ((event.conversationId ?? message.conversationId) !== conversationId) return;
  // The conversation exists once its first turn has begun.
  if (!isWatched) tell({ type: 'chat.subscribe', extensions: true });
  isWatched = true;
  // The provider's id of a call is unique only in its step.
  const id = `${event.stepId}/${event.toolCallId}`;
  const call = items.find(({ call }) => call?.id === id)?.call;
  if (event.type === 'provider-retry') wait = event;
  if (event.type === 'retry-ended') wait = null;
  if (event.type === 'tool-call') items.push({ call: { id, name: event.toolName, input: event.input } });
  if (event.type === 'approval-requested' && call) call.waits = event;
  if (event.type === 'approval-resolved' && call) call.waits = null;
  if (event.type === 'tool-result' && call) Object.assign(call, { output: event.content, waits: null });
  show();
};

const view = page("OpenAI's client on Everturn", {
  send,
  stop: () => tell({ type: 'chat.stop' }),
  decide: (id, approved) => {
    const { turnId, stepId, toolCallId } = items.find(({ call }) => call?.id === id).call.waits;
    tell({ type: 'approval.answer', turnId, stepId, toolCallId, verdict: approved ? 'allowed' : 'denied' });
  },
});

function show() {
  view.show({ items, wait, error, busy });
}
