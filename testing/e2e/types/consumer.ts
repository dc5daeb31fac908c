// A client of the generated declarations. It is only compiled; what it must not be able to do is marked as an error.
import type {
  AgentEvent,
  Category,
  Chunk,
  Command,
  ConversationStatus,
  DoneReason,
  HistoryWindow,
  ProviderRetryEvent,
  RetrySettingsChangedMessage,
  ServerMessage,
  UnknownChunk,
  UnknownEvent,
  UnknownMessage,
} from "../../../wire/generated/everturn";

/** Narrowing on `type` gives each event its own fields; leaving one out would not compile. */
export function line(event: AgentEvent): string {
  switch (event.type) {
    case "status":
      return event.status;
    case "user-message":
    case "steering":
      return event.text;
    case "text-delta":
    case "reasoning-delta":
      return event.delta;
    case "tool-call":
      return `${event.toolName}(${JSON.stringify(event.input)})`;
    case "tool-output":
      return event.stream === "stderr" ? `! ${event.data}` : event.data;
    case "tool-result":
      return `${event.isError ? "failed" : "done"} in ${event.durationMs?.toFixed(0) ?? "?"} ms: ${event.content}`;
    case "usage":
      return `${event.usage.inputTokens + (event.usage.cacheReadTokens ?? 0)}`;
    case "step-complete":
      return `${event.stepId} ${event.ttftMs ?? 0}`;
    case "provider-retry":
      return countdown(event);
    case "error":
      return `${event.code ?? ""} ${event.message}`;
    case "done":
      return finished(event.reason);
    case "turn-start":
    case "turn-sealed":
      return event.turnId;
    case "step-rewound":
    case "target-switched":
      return event.reason;
    case "retry-ended":
      return event.outcome === "too-long" ? "too long" : `${event.attempts}`;
    case "provider-silent":
      return `${event.alive ? "quiet" : "silent"} for ${event.silentMs} ms`;
    case "queue-changed":
      return event.queue.map((queued) => queued.messageId).join();
    case "target-restored":
      return event.to;
    case "approval-requested":
    case "review-started":
      return event.toolName;
    case "approval-resolved":
    case "review-completed":
      return event.verdict;
    case "question-asked":
      return `${event.asker}: ${event.message}`;
    case "question-settled":
      return event.outcome;
    case "compaction-started":
      return event.cause;
    case "compaction-completed":
      return event.outcome === "summarized" ? `${event.summary} (up to ${event.keepsFrom})` : `${event.message}`;
    case "report-missing":
      return `${event.reason} (${event.attempt} of ${event.maxAttempts})`;
    case "report-forced":
      return event.by;
    case "steps-collapsed":
      return `${event.from} to ${event.to} steps`;
    case "final-report":
      return event.success ? JSON.stringify(event.report) : `${event.reason}`;
    default:
      return passedOver(event);
  }
}

/** Only additions of a newer server are left. Their fields are unknown, but their location is known. */
function passedOver(event: UnknownEvent): string {
  const type: string = event.type;
  return `${type} in ${event.conversationId}`;
}

/** Integers are numbers, an absent field is undefined. */
function countdown(event: ProviderRetryEvent): string {
  const seconds: number = Math.ceil(event.delayMs / 1000);
  const until: Date | undefined = event.nextAt === undefined ? undefined : new Date(event.nextAt);
  return `retrying in ${seconds} s ${until?.toISOString() ?? ""}`;
}

/** A known value narrows; a provider's own word is still a reason. */
function finished(reason: DoneReason): string {
  const own: DoneReason = "pause_turn";
  return reason === "stop" ? own : reason;
}

/** So is any other value that a server may add. */
export function shown(status: ConversationStatus, category: Category): string {
  const added: [ConversationStatus, Category] = ["paused", "region_blocked"];
  return status === "active" || category === "unknown" ? "" : added.join();
}

/** The turn is readable without narrowing; only a status may lack it. */
export function turnOf(event: AgentEvent): string | undefined {
  return event.turnId;
}

/** Frames of the WebSocket. */
export function receive(message: ServerMessage): Command | undefined {
  switch (message.type) {
    case "chat.delta":
      return { type: "chat.subscribe", conversationId: message.event.conversationId, extensions: true };
    case "conversation.statusChanged":
      return { type: "chat.stop", conversationId: message.conversationId };
    case "retry.settingsChanged":
      return reset(message);
    case "call.changed":
    case "chat.error":
    case "error":
      return undefined;
    default:
      return passed(message);
  }
}

/** Null resets a setting; a setting itself is never null. */
function reset({ conversationId, set }: RetrySettingsChangedMessage): Command {
  const retries: number = set.maxRetries ?? 3;
  const change = { type: "retry.set", baseDelayMs: null, maxRetries: retries } as const;
  return conversationId === undefined ? change : { ...change, conversationId };
}

function passed(_: UnknownMessage): undefined {}

/** HTTP bodies. */
export function texts(history: HistoryWindow): string[] {
  return history.chunks.map(({ chunk }) => text(chunk)).filter((part) => part !== "");
}

function text(chunk: Chunk): string {
  if (chunk.type === "system") return chunk.keepsFrom === undefined ? "" : `Summarized: ${chunk.text}`;
  return chunk.type === "text" || chunk.type === "thinking" ? chunk.text : "";
}

/** A stored piece of a newer kind is not shown. */
export function known(chunks: Chunk[]): Exclude<Chunk, UnknownChunk>[] {
  return chunks.filter((chunk) => chunk.type === "text" || chunk.type === "image");
}

// @ts-expect-error a field of another event
export const foreign = (event: AgentEvent) => event.type === "text-delta" && event.status;
// @ts-expect-error null is never sent
export const nothing: Command = { type: "retry.set", conversationId: null, enabled: true };
// @ts-expect-error a required field is missing
export const incomplete: Command = { type: "chat.queue", conversationId: "c1" };
// @ts-expect-error a type that does not exist
export const unknown: Command = { type: "chat.shout", conversationId: "c1" };
