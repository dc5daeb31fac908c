// Made from the Rust types by `cargo xtask generate`. Do not edit.
//
// An optional field is absent when it is unknown, never null. Unions are told apart by `type`:
// `switch (event.type) { case "provider-retry": event.delayMs; }`. What a newer server sends beyond the known is in the
// `default` case: an `UnknownEvent`, `UnknownChunk` or `UnknownMessage`. Pass it over.

/** A `type` that is not listed here. No literal is one, so that comparing with a listed `type` rules it out. */
export type UnknownType = `${string & { readonly newer: true }}`;

/** One event, as every transport sends it. */
export type AgentEvent =
  | StatusEvent
  | UserMessageEvent
  | TurnStartEvent
  | TextDeltaEvent
  | ReasoningDeltaEvent
  | ToolCallEvent
  | ToolOutputEvent
  | ToolResultEvent
  | UsageEvent
  | StepCompleteEvent
  | ProviderRetryEvent
  | ErrorEvent
  | SteeringEvent
  | DoneEvent
  | TurnSealedEvent
  | StepRewoundEvent
  | RetryEndedEvent
  | ProviderSilentEvent
  | QueueChangedEvent
  | TargetSwitchedEvent
  | TargetRestoredEvent
  | ApprovalRequestedEvent
  | ApprovalResolvedEvent
  | ReviewStartedEvent
  | ReviewCompletedEvent
  | UnknownEvent;

/** Extension: a tool call waits for a person's permission. Transient. */
export interface ApprovalRequestedEvent {
  type: "approval-requested";
  /** The step that asked. */
  stepId: StepId;
  /** The call. */
  toolCallId: string;
  /** The tool's name. */
  toolName: string;
  /** The arguments: any JSON. */
  input: unknown;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
  /** Why permission is needed, for people. */
  reason?: string;
}

/** Extension: the wait for a person's permission is over. Transient. */
export interface ApprovalResolvedEvent {
  type: "approval-resolved";
  /** The call. */
  toolCallId: string;
  /** How it ended. */
  verdict: Verdict;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
}

/** What kind of failure it is. Decides, together with `retryable`, what a turn does about it. */
export type Category =
  /** Our own rate limit at the provider; passes by itself. */
  | "rate_limited"
  /** The provider's capacity; passes by itself. */
  | "overloaded"
  /** The provider broke. */
  | "server_error"
  /** The connection could not be made or was cut. */
  | "network"
  /** Nothing arrived in time. */
  | "timeout"
  /** The answer could not be understood, was cut short or was empty. */
  | "invalid_response"
  /** A plan, credit or daily wall; waiting in this turn does not help. */
  | "quota_exhausted"
  /** The request has more tokens than the model takes. */
  | "context_overflow"
  /** The provider refuses the request as it is. */
  | "invalid_request"
  /** No such model or address. */
  | "not_found"
  /** Refused for what it says. */
  | "content_policy"
  /** The credential is missing, wrong or expired. */
  | "auth"
  /** The credential is good but may not do this. */
  | "permission"
  /** Cancelled by the caller or the provider's operator. */
  | "cancelled"
  /** A fault on our own side of the wire, such as a panic in a provider adapter. */
  | "internal"
  /** Not recognized, or a word of a newer version. */
  | "unknown"
  /** A word that only a newer server sends. */
  | (string & {});

/** An event, verbatim. */
export interface ChatDeltaMessage {
  type: "chat.delta";
  /** The event. */
  event: AgentEvent;
  /** The place in the event stream right after it. */
  cursor?: string;
}

/** A command about a conversation could not be carried out. */
export interface ChatErrorMessage {
  type: "chat.error";
  /** What is wrong and what to do. */
  message: string;
  /** The conversation, when one was named. */
  conversationId?: ConversationId;
}

/** Take a queued message back. */
export interface ChatQueueCancelCommand {
  type: "chat.queue.cancel";
  /** The conversation. */
  conversationId: ConversationId;
  /** The message. */
  messageId: string;
}

/** Queue a user message: injected at the next tool-result boundary, or the next turn. */
export interface ChatQueueCommand {
  type: "chat.queue";
  /** The conversation. */
  conversationId: ConversationId;
  /** The user message. */
  text: string;
  /** A name of the client's choice for cancelling it; the server makes one when absent. */
  messageId?: string;
}

/** Ask again over the same history: for a turn that ended in an error or was stopped. Subscribes the sender. */
export interface ChatRetryCommand {
  type: "chat.retry";
  /** The conversation. */
  conversationId: ConversationId;
  /** Its last turn; refused when that is another one by now. */
  turnId: TurnId;
  /** Whether to be sent extension events too. */
  extensions?: boolean;
}

/** Start a turn; without a conversation, in a new one. Subscribes the sender. */
export interface ChatSendCommand {
  type: "chat.send";
  /** The user message. */
  message: string;
  /** The conversation; a new one when absent. */
  conversationId?: ConversationId;
  /** Whether to be sent extension events too. */
  extensions?: boolean;
  /** Images that go with it. */
  images?: Array<Image>;
  /** `credential/model`; the server's default when absent. */
  model?: string;
  /** How hard the model should think, in the provider's words. */
  reasoningEffort?: string;
}

/** End the running turn. */
export interface ChatStopCommand {
  type: "chat.stop";
  /** The conversation. */
  conversationId: ConversationId;
}

/** Be sent a conversation's events: what follows the cursor, else the running turn from its start. */
export interface ChatSubscribeCommand {
  type: "chat.subscribe";
  /** The conversation. */
  conversationId: ConversationId;
  /** The last cursor seen. */
  cursor?: string;
  /** Whether to be sent extension events too. */
  extensions?: boolean;
}

/** No longer be sent a conversation's events. */
export interface ChatUnsubscribeCommand {
  type: "chat.unsubscribe";
  /** The conversation. */
  conversationId: ConversationId;
}

/** One persisted piece of a message. */
export type Chunk =
  | TextChunk
  | ThinkingChunk
  | ToolCallChunk
  | ToolResultChunk
  | ErrorChunk
  | SystemChunk
  | ImageChunk
  | UnknownChunk;

/** A stored chunk. */
export interface ChunkLine {
  type: "chunk";
  /** The conversation it is in. */
  conversationId: ConversationId;
  /** Per conversation, starts at 1, never skips. */
  seq: number;
  /** Who it is from. */
  role: Role;
  /** The chunk. */
  chunk: Chunk;
}

/** A frame from client to server. Of a stranger, read one with [`Command::parse`], which bounds what that costs. */
export type Command =
  | ChatSendCommand
  | ChatSubscribeCommand
  | ChatUnsubscribeCommand
  | ChatQueueCommand
  | ChatQueueCancelCommand
  | ChatStopCommand
  | ChatRetryCommand
  | RetryAbortCommand
  | RetryNowCommand
  | RetrySetCommand;

/** Names a conversation: an append-only log of chunks with one writer. */
export type ConversationId = string;

/** A conversation; its chunks follow. */
export interface ConversationLine {
  type: "conversation";
  /** The conversation. */
  id: ConversationId;
  /** Epoch milliseconds. */
  createdAt: number;
  /** Epoch milliseconds of its latest chunk. */
  lastActivityAt: number;
  /** The beginning of its first message. */
  title: string;
  /** Its status. */
  status: ConversationStatus;
  /** The `seq` of its last chunk, which is how many follow; 0 = none. */
  latestSeq: number;
  /** The model of its last turn, as `credential/model`. */
  model?: string;
}

export type ConversationList = Array<ConversationSummary>;

/** Answer of `GET /conversations/:id/status`. */
export interface ConversationState {
  /** The conversation. */
  conversationId: ConversationId;
  /** Whether a turn runs or waits. */
  isActive: boolean;
  /** Its status. */
  status: ConversationStatus;
  /** Whether failures are retried by themselves. */
  autoRetry?: boolean;
  /** The chain of retries that the running step is in. */
  retry?: RetryState;
  /** The `seq` of the running turn's first chunk: what of the history a replay of the turn shows again. */
  turnSeq?: number;
}

/** The status of a conversation. */
export type ConversationStatus =
  /** A turn runs or waits. */
  | "active"
  /** A turn is wanted but has not begun. */
  | "queued"
  /** Nothing runs. */
  | "idle"
  /** Closed by someone; a new message opens it again. */
  | "closed"
  /** A word that only a newer server sends. */
  | (string & {});

/** A conversation's status changed; sent to every client. */
export interface ConversationStatusChangedMessage {
  type: "conversation.statusChanged";
  /** The conversation. */
  conversationId: ConversationId;
  /** What its status is now. */
  status: ConversationStatus;
  /** The workspace it belongs to. */
  workspaceId: string;
}

/** A conversation in a list. */
export interface ConversationSummary {
  /** The conversation. */
  id: ConversationId;
  /** Epoch milliseconds. */
  createdAt: number;
  /** Epoch milliseconds of its latest chunk. */
  lastActivityAt: number;
  /** The beginning of its first message. */
  title: string;
  /** Its status. */
  status: ConversationStatus;
  /** The workspace it belongs to. */
  workspaceId: string;
}

/** The model finished. */
export interface DoneEvent {
  type: "done";
  /** Why. */
  reason: DoneReason;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
  /** Input plus output tokens of the last step: what the next request starts from. */
  contextSize?: number;
  /** From the start of the turn, in milliseconds. */
  durationMs?: number;
  /**
   * From the start of the turn to the first token shown, waits included, in milliseconds; absent where nothing
   * was shown.
   */
  firstTokenMs?: number;
  /** Sum over the steps. */
  usage?: Usage;
}

/** Why the model finished: a known word or the provider's own. */
export type DoneReason =
  | "stop" | "tool-calls" | "length" | "content-filter" | "max-steps" | "error" | "aborted"
  | (string & {});

/**
 * What a provider wants back, unread, with the piece it came with: a signature or an encrypted form of reasoning.
 * It means nothing to anyone else.
 */
export interface Echo {
  /** Who gave it, and alone may get it back: an API and a host, e.g. `anthropic api.anthropic.com`. */
  origin: string;
  /** What it is, in the provider's own form. */
  data: unknown;
}

/** Every answer that is not a success. */
export interface ErrorBody {
  /** What is wrong and what to do. */
  error: string;
}

/** The failure that ended a turn. For people; never sent to a model. */
export interface ErrorChunk {
  type: "error";
  /** The failure, verbatim. */
  message: string;
  /** What a person can do about it, in one sentence. */
  advice?: string;
  /** What kind of failure it was. */
  category?: Category;
  /** The HTTP code as text, when known. */
  code?: string;
  /** More about that, for people. */
  detail?: string;
  /** Why a retryable failure was not retried (again): `exhausted` or `too-long`. Absent where no retry helps. */
  outcome?: RetryOutcome;
  /** How many retries its step had before; absent = none. */
  retries?: number;
  /** The sum of the scheduled waits before them, in milliseconds; absent = none. */
  waitedMs?: number;
}

/** The failure that ends the turn; once, and persisted as an error chunk too. */
export interface ErrorEvent {
  type: "error";
  /** The failure, verbatim. */
  message: string;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
  /** What a person can do about it, in one sentence. */
  advice?: string;
  /** What kind of failure it was. */
  category?: Category;
  /** The HTTP code as text, when known. */
  code?: string;
  /** More about that, for people. */
  detail?: string;
  /** Why a retryable failure was not retried (again): `exhausted` or `too-long`. Absent where no retry helps. */
  outcome?: RetryOutcome;
  /** How many retries its step had before; absent = none. */
  retries?: number;
  /** The sum of the scheduled waits before them, in milliseconds; absent = none. */
  waitedMs?: number;
}

/** A frame that could not be understood. */
export interface ErrorMessage {
  type: "error";
  /** What is wrong and what to do. */
  message: string;
}

/** One line of an export. Each conversation's line comes before those of its chunks, which ascend by `seq`. */
export type ExportLine =
  | ConversationLine
  | ChunkLine;

/** A diagnosed provider error. */
export interface Failure {
  /** What kind of failure it is. */
  category: Category;
  /** Whether the same request with the same credential can succeed later in the same turn. */
  retryable: boolean;
  /** The provider's error, verbatim but capped and with secrets removed, e.g. `HTTP 429: {"error":...}`. */
  message: string;
  /** What a person can do about it, in one sentence. */
  advice?: string;
  /** The HTTP status as text, when one was received. */
  code?: string;
  /** The wait that the provider asked for, in milliseconds. */
  hintMs?: number;
  /** The provider's own type or code of the error, e.g. `overloaded_error`. */
  providerCode?: string;
}

/** Answer of `GET /health`. */
export interface Health {
  /** Always true: a server that cannot serve does not answer. */
  ok: boolean;
}

/** Answer of `GET /conversations/:id`. */
export interface HistoryWindow {
  /** Ascending by `seq`. */
  chunks: Array<StoredChunk>;
  /** The last chunk's `seq`; the asked-for `sinceSeq` when there is none. */
  latestSeq: number;
  /** True where the window was cut by a limit of the server and there are more chunks after its last one. */
  more?: boolean;
  /** The sealed turns that these chunks are of, oldest first; absent where none of them is known. */
  turns?: Array<TurnMetrics>;
}

/** An image that goes with a message. */
export interface Image {
  /** Where it is: `https:` or `data:`. */
  url: string;
  /** Its media type, when known. */
  mimeType?: string;
}

/** An image of the person. */
export interface ImageChunk {
  type: "image";
  /** Where it is: `https:` or `data:`. */
  url: string;
  /** Its media type, when known. */
  mimeType?: string;
}

/** Consecutive chunks of one role. */
export interface Message {
  /** Who it is from. */
  role: Role;
  /** Its pieces, in order. */
  chunks: Array<Chunk>;
}

/** What is known about a model. */
export interface ModelInfo {
  /** The most tokens a request may have. */
  contextWindow?: number;
  /** The most tokens an answer may have. */
  maxOutputTokens?: number;
}

/** Answer of `GET /models`. */
export interface Models {
  /** Each as `credential/model`; the first is the default. */
  models: Array<string>;
  /** What is known about them, by the same names. */
  modelInfo?: Record<string, ModelInfo>;
}

/** Which stream of a tool. */
export type OutputStream =
  /** Standard output. */
  | "stdout"
  /** Standard error. */
  | "stderr"
  /** A word that only a newer server sends. */
  | (string & {});

/** A retry was scheduled: sent once per retry, before its wait. Transient. */
export interface ProviderRetryEvent {
  type: "provider-retry";
  /** 0-based: the Nth retry of this step that is about to happen. */
  attempt: number;
  /** The scheduled wait, in milliseconds. */
  delayMs: number;
  /** The provider's error, verbatim. */
  message: string;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
  /** What is left of the cumulative wait after this one, in milliseconds. */
  budgetLeftMs?: number;
  /** What kind of failure it was. */
  category?: Category;
  /** The HTTP code as text, when known. */
  code?: string;
  /** True when the provider asked for this wait. */
  hinted?: boolean;
  /** How many retries the schedule has in all, when it is bounded. */
  maxAttempts?: number;
  /** When the wait ends, in epoch milliseconds. */
  nextAt?: number;
  /** Who is asked next, as `credential/model`. */
  target?: string;
}

/**
 * Extension: nothing of the answer has arrived for a while; sent again as the silence goes on. Over when anything of
 * the step is told. While nothing was shown of the step, `retry.now` asks again at once. Transient.
 */
export interface ProviderSilentEvent {
  type: "provider-silent";
  /** The step. */
  stepId: StepId;
  /** How long nothing of the answer has arrived, in milliseconds. */
  silentMs: number;
  /** Whether the connection shows signs of life, such as comments that keep it open. */
  alive: boolean;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
  /** When the call is given up if it stays like this, in epoch milliseconds. */
  givesUpAt?: number;
}

/** Answer of `DELETE /conversations/:id/queue/:messageId`. */
export interface QueueCancelled {
  /** The conversation. */
  conversationId: ConversationId;
  /** Whether the message was still waiting. */
  cancelled: boolean;
  /** All that waits now, oldest first. */
  queue: Array<QueuedMessage>;
}

/** Extension: the messages that wait for the next tool-result boundary changed. Transient. */
export interface QueueChangedEvent {
  type: "queue-changed";
  /** All that wait now, oldest first. */
  queue: Array<QueuedMessage>;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
}

/** Body of `POST /conversations/:id/queue`. */
export interface QueueRequest {
  /** The user message. */
  text: string;
  /** A name of the client's choice for cancelling it; the server makes one when absent. */
  messageId?: string;
}

/** Answer of `POST /conversations/:id/queue`. */
export interface Queued {
  /** The conversation. */
  conversationId: ConversationId;
  /** Whether nothing was running, so that the message started a turn at once. */
  startedTurn: boolean;
  /** All that waits now, oldest first. */
  queue: Array<QueuedMessage>;
}

/** A user message that waits for the next tool-result boundary, or for the end of the turn. */
export interface QueuedMessage {
  /** Names it for cancelling. */
  messageId: string;
  /** Its text. */
  text: string;
}

/** Thinking. */
export interface ReasoningDeltaEvent {
  type: "reasoning-delta";
  /** The next piece. */
  delta: string;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
}

/** Answer of `POST /conversations/:id/retry`. */
export interface Retried {
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn that has begun. */
  turnId: TurnId;
  /** The place in the event stream where it begins. */
  cursor: string;
}

/** End the running turn if its step is being retried: it waits, or was asked again and has shown nothing yet. */
export interface RetryAbortCommand {
  type: "retry.abort";
  /** The conversation. */
  conversationId: ConversationId;
}

/** Answer of `POST /conversations/:id/retry/abort` and `/retry/now`. */
export interface RetryControl {
  /** The conversation. */
  conversationId: ConversationId;
  /** Whether there was a retry to skip to or to end: one that waits, or, for `abort`, one that is being asked. */
  wasRetrying: boolean;
}

/** Extension: a series of retries is over. Transient. */
export interface RetryEndedEvent {
  type: "retry-ended";
  /** How many retries there were. */
  attempts: number;
  /** How it ended. */
  outcome: RetryOutcome;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
  /** More about it, for people. */
  message?: string;
}

/** Skip the wait for the next retry; or ask again at once where the provider is silent and nothing was shown. */
export interface RetryNowCommand {
  type: "retry.now";
  /** The conversation. */
  conversationId: ConversationId;
}

/** How a series of retries ended. */
export type RetryOutcome =
  /** The provider answered. */
  | "recovered"
  /** The schedule or the budget has no further retry. */
  | "exhausted"
  /** Someone ended the wait. */
  | "cancelled"
  /** The next wait would be longer than is allowed. */
  | "too-long"
  /** The next failure was of a kind that waiting does not cure. */
  | "not-retryable"
  /** A word that only a newer server sends. */
  | (string & {});

/** Where in a chain of retries a step is. */
export type RetryPhase =
  /** The next retry waits for its time. */
  | "waiting"
  /** The provider is being asked and has shown nothing yet. */
  | "asking"
  /** A word that only a newer server sends. */
  | (string & {});

/** Body of `POST /conversations/:id/retry`. */
export interface RetryRequest {
  /** The turn to try again: the conversation's last one, which ended in an error or was stopped. */
  turnId: TurnId;
}

/** Turn automatic retries on or off, for one conversation or for all. */
export interface RetrySetCommand {
  type: "retry.set";
  /** Whether failures are retried. */
  enabled: boolean;
  /** The conversation; all of them when absent. */
  conversationId?: ConversationId;
}

/**
 * The chain of retries that a step is in: from its first failure until something of an answer is shown, or it is given
 * up.
 */
export interface RetryState {
  /** Whether the retry is still to come or the provider is being asked. */
  phase: RetryPhase;
  /** 0-based number of the retry in its step. */
  attempt: number;
  /** How long the wait before it was decided to be, in milliseconds. */
  delayMs: number;
  /** What kind of failure it was. */
  category?: Category;
  /** The HTTP code as text, when known. */
  code?: string;
  /** How many retries the schedule has in all, when it is bounded. */
  maxAttempts?: number;
  /** The provider's error, verbatim; absent where a turn was saved by a version that did not keep it. */
  message?: string;
  /** When a waiting retry comes, in epoch milliseconds; absent once the provider is being asked. */
  nextAt?: number;
}

/** Extension: the review is over; once per `review-started`. Transient. */
export interface ReviewCompletedEvent {
  type: "review-completed";
  /** The call. */
  toolCallId: string;
  /** How it ended. */
  verdict: Verdict;
  /** How often the reviewer was asked. */
  attemptCount: number;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
  /** Why it decided so. */
  rationale?: string;
  /** How dangerous the reviewer thinks the call is, in its own word. */
  riskLevel?: string;
  /** How far the reviewer thinks the person asked for it, in its own word. */
  userAuthorization?: string;
}

/** Extension: a reviewer model looks at a tool call before it runs. Transient. */
export interface ReviewStartedEvent {
  type: "review-started";
  /** The call. */
  toolCallId: string;
  /** The tool's name. */
  toolName: string;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
}

/** Who a message is from. */
export type Role =
  /** Instructions of the embedder. */
  | "system"
  /** The person. */
  | "user"
  /** The model. */
  | "assistant"
  /** Results of tools. */
  | "tool"
  /** A word that only a newer server sends. */
  | (string & {});

/** Body of `POST /chat`. */
export interface SendRequest {
  /** The user message. */
  message: string;
  /** The conversation; a new one when absent. */
  conversationId?: ConversationId;
  /** Whether to be sent extension events too. */
  extensions?: boolean;
  /** Images that go with it. */
  images?: Array<Image>;
  /** `credential/model`; the server's default when absent. */
  model?: string;
  /** How hard the model should think, in the provider's words. */
  reasoningEffort?: string;
}

/** A frame from server to client. */
export type ServerMessage =
  | ChatDeltaMessage
  | ChatErrorMessage
  | ConversationStatusChangedMessage
  | ErrorMessage
  | UnknownMessage;

/** The conversation's status changed, or a retry of its turn went from waiting to asking. */
export interface StatusEvent {
  type: "status";
  /** What it is now. */
  status: ConversationStatus;
  /** Where it happened. */
  conversationId: ConversationId;
  /** The retry under way: sent, with an unchanged status, when a wait is over and the provider is asked again. */
  retry?: RetryState;
  /** In which turn; absent on `status` only. */
  turnId?: TurnId;
}

/** A queued user message was injected at the tool-result boundary. */
export interface SteeringEvent {
  type: "steering";
  /** Its text. */
  text: string;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
}

/** After the step's stream ended. */
export interface StepCompleteEvent {
  type: "step-complete";
  /** The step. */
  stepId: StepId;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
  /** From the first token to the end of the stream, in milliseconds. */
  decodeMs?: number;
  /** `ttftMs + decodeMs` when a first token was seen. */
  genTotalMs?: number;
  /** From the provider call to its first token, in milliseconds. */
  ttftMs?: number;
}

/** Names a step (one model round trip of a turn). Opaque to clients, equal for all calls of one step. */
export type StepId = string;

/** Extension: drop what was shown of this step; it will be streamed again. Transient. */
export interface StepRewoundEvent {
  type: "step-rewound";
  /** The step. */
  stepId: StepId;
  /** Why, for people. */
  reason: string;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
}

/** Answer of `POST /conversations/:id/stop` and `/close`. */
export interface Stopped {
  /** The conversation. */
  conversationId: ConversationId;
  /** Whether a turn was running. */
  abortedTurn: boolean;
}

/** A chunk with its place in the conversation. */
export interface StoredChunk {
  /** Per conversation, starts at 1, never skips, in append order. */
  seq: number;
  /** Who it is from. */
  role: Role;
  /** The chunk. */
  chunk: Chunk;
  /**
   * Chunks from this `seq` up to this chunk are superseded: people can still read them, a model is no longer sent
   * them. Set on the first chunk of a turn that tries another one again.
   */
  supersedes?: number;
}

/** Text of the embedder for the model. */
export interface SystemChunk {
  type: "system";
  /** The text. */
  text: string;
}

/** Extension: the turn is back at the target it prefers. Transient. */
export interface TargetRestoredEvent {
  type: "target-restored";
  /** The target, as `credential/model`. */
  to: string;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
}

/** Extension: the turn asks another target from now on. Transient. */
export interface TargetSwitchedEvent {
  type: "target-switched";
  /** The target that failed, as `credential/model`. */
  from: string;
  /** The target asked next, as `credential/model`. */
  to: string;
  /** Why, for people. */
  reason: string;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
}

/** Visible text. */
export interface TextChunk {
  type: "text";
  /** The text. */
  text: string;
}

/** Visible text. */
export interface TextDeltaEvent {
  type: "text-delta";
  /** The next piece. */
  delta: string;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
}

/** The model's reasoning. */
export interface ThinkingChunk {
  type: "thinking";
  /** The text. Empty where the provider hides it and only wants its echo: then there is nothing to show. */
  text: string;
  /** What the provider wants back with it. */
  echo?: Echo;
}

/** The model asked for a tool. Has exactly one `tool-result` in the same history. */
export interface ToolCallChunk {
  type: "tool-call";
  /** The provider's id of the call, unique in its step. */
  toolCallId: string;
  /** The tool's name. */
  toolName: string;
  /** The arguments: any JSON; the raw text where they did not parse. */
  input: unknown;
  /** What the provider wants back with it. */
  echo?: Echo;
  /** The step that asked. */
  stepId?: StepId;
}

/** The model asked for a tool; the arguments are complete. */
export interface ToolCallEvent {
  type: "tool-call";
  /** The step that asked. */
  stepId: StepId;
  /** The provider's id of the call. */
  toolCallId: string;
  /** The tool's name. */
  toolName: string;
  /** The arguments: any JSON. */
  input: unknown;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
}

/** Live output of a running tool. Transient. */
export interface ToolOutputEvent {
  type: "tool-output";
  /** The call. */
  toolCallId: string;
  /** The next piece. */
  data: string;
  /** Which of its streams. */
  stream: OutputStream;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
  /** The step that asked. */
  stepId?: StepId;
}

/** What a tool answered. */
export interface ToolResultChunk {
  type: "tool-result";
  /** The call that this answers. */
  toolCallId: string;
  /** The tool's name. */
  toolName: string;
  /** What the model is told. */
  content: string;
  /** Whether the tool failed, was interrupted or could not be run. */
  isError: boolean;
  /** The step that asked. */
  stepId?: StepId;
}

/** What a tool answered: exactly one per call. */
export interface ToolResultEvent {
  type: "tool-result";
  /** The step that asked. */
  stepId: StepId;
  /** The call that this answers. */
  toolCallId: string;
  /** The tool's name. */
  toolName: string;
  /** What the model is told. */
  content: string;
  /** Whether the tool failed, was interrupted or could not be run. */
  isError: boolean;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
  /** How long it ran, in milliseconds. */
  durationMs?: number;
}

/** Names a turn: one user message until sealed. */
export type TurnId = string;

/** One turn's figures. */
export interface TurnMetrics {
  /** The turn. */
  turnId: TurnId;
  /** Sum over its steps. */
  usage: Usage;
  /** Model round trips. */
  steps: number;
  /** What kind of failure ended it, when one did. */
  category?: Category;
  /** Input plus output tokens of its last step. */
  contextSize?: number;
  /** From start to seal, in milliseconds; absent while it runs. */
  durationMs?: number;
  /** The `seq` of its first chunk. */
  firstSeq?: number;
  /** From its start to the first token shown, waits included, in milliseconds; absent where nothing was shown. */
  firstTokenMs?: number;
  /** The `seq` of its last chunk. */
  lastSeq?: number;
  /** The model that answered last, as `credential/model`. */
  model?: string;
  /** Why it ended. */
  reason?: DoneReason;
  /** Retries of all its steps; absent = none. */
  retries?: number;
  /** The turn that it tried again. */
  retryOf?: TurnId;
  /** The sum of the waits before them, in milliseconds; absent = none. */
  waitedMs?: number;
}

/** Answer of `GET /conversations/:id/metrics`. */
export interface TurnMetricsList {
  /** Sealed turns, oldest first. */
  turns: Array<TurnMetrics>;
}

/** All chunks are persisted, history is final. The last event of every turn. */
export interface TurnSealedEvent {
  type: "turn-sealed";
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
}

/** Before the first step. */
export interface TurnStartEvent {
  type: "turn-start";
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
  /** The turn that this one tries again: same history, no new message, so no `user-message` comes before it. */
  retryOf?: TurnId;
}

/** What only a newer server sends: pass it over. It has further fields. */
export interface UnknownChunk {
  type: UnknownType;
}

/** What only a newer server sends: pass it over. It has further fields. */
export interface UnknownEvent {
  type: UnknownType;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId?: TurnId;
}

/** What only a newer server sends: pass it over. It has further fields. */
export interface UnknownMessage {
  type: UnknownType;
}

/** Token counts. */
export interface Usage {
  /** Tokens of the request, those read from a cache included. */
  inputTokens: number;
  /** Tokens of the answer, reasoning included. */
  outputTokens: number;
  /** Of the request's tokens, those read from a cache. */
  cacheReadTokens?: number;
  /** Of the request's tokens, those written to a cache. */
  cacheWriteTokens?: number;
}

/** Token counts of a step. */
export interface UsageEvent {
  type: "usage";
  /** The counts. */
  usage: Usage;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
  /** The step. */
  stepId?: StepId;
}

/** The prompt: first event of a turn, so that a pure watcher sees it. */
export interface UserMessageEvent {
  type: "user-message";
  /** The prompt's text. */
  text: string;
  /** Where it happened. */
  conversationId: ConversationId;
  /** In which turn; absent on `status` only. */
  turnId: TurnId;
}

/** How a question for permission ended. Only `allowed` lets the tool run. */
export type Verdict =
  /** The tool may run. */
  | "allowed"
  /** The tool may not run. */
  | "denied"
  /** Nobody could decide: the reviewer broke. */
  | "failed"
  /** Nobody decided in time. */
  | "timed-out"
  /** The turn was ended first. */
  | "cancelled"
  /** A word that only a newer server sends. */
  | (string & {});
