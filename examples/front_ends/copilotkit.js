// CopilotKit's core, the part below its React components, with Everturn as its runtime.
import { CopilotKitCore } from '@copilotkit/core';
import { page, server } from './page.js';

const core = new CopilotKitCore({ runtimeUrl: `${server}/copilotkit` });
let [agent, decisions, wait, error, busy] = [null, new Map(), null, null, false];

core.subscribe({
  // The agent is known once the server has answered.
  onAgentsChanged: () => {
    if (agent || !core.getAgent('default')) return;
    agent = core.getAgent('default');
    agent.threadId = sessionStorage.thread ??= crypto.randomUUID();
    agent.subscribe({
      onMessagesChanged: show,
      onCustomEvent: ({ event: { name, value } }) => {
        if (name === 'everturn.provider-retry') wait = value;
        if (name === 'everturn.retry-ended') wait = null;
        show();
      },
    });
    // After a reload, this restores the conversation and follows the running turn.
    return follow(core.connectAgent({ agent }));
  },
  onError: ({ error: failure }) => {
    error = failure.message;
    show();
  },
});

/** Shows a run until it ends. */
async function follow(run) {
  [decisions, error, busy] = [new Map(), null, true];
  show();
  await run;
  [wait, busy] = [null, false];
  show();
}

const view = page('CopilotKit on Everturn', {
  send: (content) => {
    agent.addMessage({ id: crypto.randomUUID(), role: 'user', content });
    return follow(core.runAgent({ agent }));
  },
  // Stops the turn, too.
  stop: () => core.stopAgent({ agent }),
  // A call that needs approval ends the run. The next run must answer all calls that wait.
  decide: (id, approved) => {
    decisions.set(id, approved);
    if (decisions.size < agent.pendingInterrupts.length) return show();
    const resume = [...decisions].map(([interruptId, approved]) => ({ interruptId, status: 'resolved', payload: { approved } }));
    return follow(core.runAgent({ agent, resume }));
  },
});

function show() {
  const messages = agent?.messages ?? [];
  const outputs = new Map(messages.filter(({ role }) => role === 'tool').map((result) => [result.toolCallId, result.content]));
  const waiting = new Set(busy ? [] : agent?.pendingInterrupts.map((interrupt) => interrupt.id));
  const items = messages.flatMap(({ role, content, toolCalls = [] }) => [
    ...(content && role !== 'tool' && role !== 'reasoning' ? [{ role, text: content }] : []),
    ...toolCalls.map(({ id, function: { name, arguments: input } }) => ({
      call: { id, name, input: JSON.parse(input || '{}'), output: outputs.get(id), waits: waiting.has(id) && !decisions.has(id) },
    })),
  ]);
  view.show({ items, wait, error, busy });
}
