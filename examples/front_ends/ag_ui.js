// `HttpAgent` of AG-UI with Everturn as the agent.
import { HttpAgent } from '@ag-ui/client';
import { page, server } from './page.js';

const threadId = crypto.randomUUID();
const agent = new HttpAgent({ url: `${server}/ag-ui`, threadId });
let [interrupts, decisions, wait, error, busy] = [[], new Map(), null, null, false];

async function run(parameters = {}) {
  [interrupts, decisions, error, busy] = [[], new Map(), null, true];
  try {
    await agent.runAgent(parameters, {
      onMessagesChanged: show,
      onCustomEvent: ({ event: { name, value } }) => {
        if (name === 'everturn.provider-retry') wait = value;
        if (name === 'everturn.retry-ended') wait = null;
        show();
      },
      // A call that needs approval ends the run.
      onRunFinishedEvent: ({ event }) => void (interrupts = event.outcome?.interrupts ?? []),
    });
  } catch (failure) {
    error = failure.message;
  }
  [wait, busy] = [null, false];
  show();
}

const view = page('AG-UI on Everturn', {
  send: (content) => {
    agent.addMessage({ id: crypto.randomUUID(), role: 'user', content });
    return run();
  },
  // `abortRun()` only ends the stream; this stops the turn.
  stop: () => fetch(`${server}/ag-ui/${threadId}/stop`, { method: 'POST' }),
  // The next run must answer all calls that wait.
  decide: (id, approved) => {
    decisions.set(id, approved);
    if (decisions.size < interrupts.length) return show();
    const resume = [...decisions].map(([interruptId, approved]) => ({ interruptId, status: 'resolved', payload: { approved } }));
    return run({ resume });
  },
});

function show() {
  const outputs = new Map(agent.messages.filter(({ role }) => role === 'tool').map((result) => [result.toolCallId, result.content]));
  const items = agent.messages.flatMap(({ role, content, toolCalls = [] }) => [
    ...(content && role !== 'tool' && role !== 'reasoning' ? [{ role, text: content }] : []),
    ...toolCalls.map(({ id, function: { name, arguments: input } }) => ({
      call: { id, name, input: JSON.parse(input || '{}'), output: outputs.get(id), waits: interrupts.some((open) => open.id === id) && !decisions.has(id) },
    })),
  ]);
  view.show({ items, wait, error, busy });
}
