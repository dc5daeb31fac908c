// `useChat` of the AI SDK as a plain object, for each supported version.
import * as react2 from 'react-sdk2';
import * as react3 from 'react-sdk3';
import * as react4 from 'react-sdk4';
import * as ai5 from 'ai5';
import * as ai6 from 'ai6';
import * as ai7 from 'ai7';

export const VERSIONS = [
  { ui: 7, Chat: react4.Chat, ai: ai7 },
  { ui: 6, Chat: react3.Chat, ai: ai6 },
  { ui: 5, Chat: react2.Chat, ai: ai5 },
];

/** A chat of this version with the server. `told` records the data passed to the app, `errors` the errors. */
export function openChat({ ui, Chat, ai }, url, id, { headers, transport, messages = [], ...more } = {}) {
  const told = [];
  const errors = [];
  const chat = new Chat({
    id,
    messages,
    transport: transport ?? new ai.DefaultChatTransport({ api: `${url}/api/chat?ui=${ui}`, headers }),
    onData: (part) => told.push(part),
    onError: (error) => errors.push(error),
    sendAutomaticallyWhen: ai.lastAssistantMessageIsCompleteWithApprovalResponses,
    ...more,
  });
  return { chat, told, errors };
}

/** The visible text of a message. */
export const textOf = (message) =>
  message.parts
    .filter(({ type }) => type === 'text')
    .map(({ text }) => text)
    .join('');

/** The visible messages of a chat, with their roles. */
export const shown = (chat) => chat.messages.map((message) => `${message.role}: ${textOf(message)}`);

/** Waits for a condition. */
export async function until(condition, what = 'nothing happened') {
  for (const end = Date.now() + 60_000; !(await condition()); await new Promise((resolve) => setTimeout(resolve, 5))) {
    if (Date.now() > end) throw new Error(what);
  }
}
