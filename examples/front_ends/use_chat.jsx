// `useChat` of Vercel's AI SDK with Everturn as its backend. With `?socket` in the URL, it uses a WebSocket.
import { useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  WebSocketChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
} from 'ai';

const parameters = new URLSearchParams(location.search);
const server = parameters.get('server') ?? 'http://127.0.0.1:4777';
const id = (sessionStorage.chat ??= crypto.randomUUID());
const transport = parameters.has('socket')
  ? new WebSocketChatTransport({ url: `${server}/api/chat/ws` })
  : new DefaultChatTransport({ api: `${server}/api/chat` });

function Page() {
  const [wait, setWait] = useState(null);
  const { messages, sendMessage, addToolApprovalResponse, status, error } = useChat({
    id,
    transport,
    messages: JSON.parse(sessionStorage.messages ?? '[]'),
    // After a reload, follow the running turn.
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onData: ({ type, data }) => {
      if (type === 'data-everturn-retry') setWait(data);
      if (type === 'data-everturn-retry-ended') setWait(null);
    },
    onFinish: () => setWait(null),
  });
  useEffect(() => {
    sessionStorage.messages = JSON.stringify(messages);
  }, [messages]);

  const send = (submitted) => {
    submitted.preventDefault();
    const input = submitted.target.elements[0];
    if (input.value.trim()) sendMessage({ text: input.value });
    input.value = '';
  };
  // `stop()` of the SDK only ends the stream; this stops the turn.
  const stop = () => fetch(`${server}/api/chat/${id}/stop`, { method: 'POST' });

  return (
    <main>
      <h1>useChat on Everturn</h1>
      <ol className="log" aria-live="polite">
        {messages.flatMap(({ id, role, parts }) =>
          parts.map((part, at) => {
            if (part.type === 'text') return <li key={id + at} className={role}>{part.text}</li>;
            if (part.type === 'dynamic-tool') return <Tool key={id + at} {...part} decide={addToolApprovalResponse} />;
          }),
        )}
        {error && <li className="error">{error.message}</li>}
      </ol>
      {wait && <Wait {...wait} />}
      <form onSubmit={send}>
        <input aria-label="Message" placeholder="Message" autoFocus />
        <button className="main">Send</button>
        <button type="button" disabled={!wait && (status === 'ready' || status === 'error')} onClick={stop}>Stop</button>
      </form>
    </main>
  );
}

function Tool({ toolName, input, state, output, errorText, approval, decide }) {
  const result = { 'output-denied': 'denied', 'output-error': errorText, 'output-available': output }[state];
  return (
    <li className="tool">
      {toolName} <code>{JSON.stringify(input)}</code>
      {result !== undefined && ` → ${result}`}
      {state === 'approval-requested' && (
        <div>
          <button className="main" onClick={() => decide({ id: approval.id, approved: true })}>Allow</button>
          <button onClick={() => decide({ id: approval.id, approved: false })}>Deny</button>
        </div>
      )}
    </li>
  );
}

function Wait({ nextAt, message }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const ticking = setInterval(() => setNow(Date.now()), 250);
    return () => clearInterval(ticking);
  }, []);
  return (
    <p className="wait" role="status">
      Trying again in {Math.max(0, Math.ceil((nextAt - now) / 1000))} s
      <small>{message}</small>
    </p>
  );
}

createRoot(document.body).render(<Page />);
