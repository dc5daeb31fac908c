// Generated from the Rust types by `cargo xtask generate`. Do not edit.
//
// An optional field is absent if unknown, never null. Unions are discriminated by `type`:
// `switch (event.type) { case "provider-retry": event.delayMs; }`. Additions of a newer server end up in the `default`
// case, as an `UnknownEvent`, `UnknownChunk` or `UnknownMessage`. Skip them.

/** A `type` that is not listed here. No literal has this type, so comparing with a listed `type` excludes it. */
export type UnknownType = `${string & { readonly newer: true }}`;

/** What to do about a failure after part of an answer was shown. */
export type AfterContent =
  /** End the turn, and keep what was shown. */
  | "keep"
  /** Withdraw what was shown, and ask again. */
  | "rewind"
  /** A value from a newer server. */
  | (string & {});

/** An event, as every transport sends it. */
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
  | QuestionAskedEvent
  | QuestionSettledEvent
  | ReviewStartedEvent
  | ReviewCompletedEvent
  | CompactionStartedEvent
  | CompactionCompletedEvent
  | ReportMissingEvent
  | ReportForcedEvent
  | StepsCollapsedEvent
  | FinalReportEvent
  | UnknownEvent;

/** Response of `POST /conversations/:id/approvals`. */
export interface Answered {
  /** The conversation. */
  conversationId: ConversationId;
  /** Whether the call was waiting for this answer. A late or second answer changes nothing. */
  answered: boolean;
}

/** Request body of `POST /conversations/:id/approvals`: a person's answer to a request for approval. */
export interface ApprovalAnswer {
  /** The turn. */
  turnId: TurnId;
  /** The step that made the call. */
  stepId: StepId;
  /** The id of the call. */
  toolCallId: string;
  /** `allowed` or `denied`; any other word is refused. */
  verdict: Verdict;
  /** The person's name, shown to later readers of the conversation, at most 200 bytes. Not verified. */
  name?: string;
  /** The reason, at most 4,096 bytes. The model receives the reason for a denial. */
  reason?: string;
  /** What is allowed; only this call if absent. Ignored for a denial. */
  scope?: ApprovalScope;
  /**
   * The client that the person answers with, such as `page` or `terminal`, at most 200 bytes; the transport if
   * absent.
   */
  via?: string;
}

/** Answers a request for approval. A late or second answer changes nothing. */
export interface ApprovalAnswerCommand {
  type: "approval.answer";
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn. */
  turnId: TurnId;
  /** The step that made the call. */
  stepId: StepId;
  /** The id of the call. */
  toolCallId: string;
  /** `allowed` or `denied`; any other word is refused. */
  verdict: Verdict;
  /** The person's name, shown to later readers of the conversation, at most 200 bytes. Not verified. */
  name?: string;
  /** The reason, at most 4,096 bytes. The model receives the reason for a denial. */
  reason?: string;
  /** What is allowed; only this call if absent. Ignored for a denial. */
  scope?: ApprovalScope;
  /**
   * The client that the person answers with, such as `page` or `terminal`, at most 200 bytes; `websocket` if
   * absent.
   */
  via?: string;
}

/** What happens to the calls of a turn that need a person's approval. */
export type ApprovalMode =
  /** The turn waits for an answer. */
  | "ask"
  /** They are denied at once, because nobody is there to answer. */
  | "deny"
  /** A value from a newer server. */
  | (string & {});

/** A tool call that waits for a person's approval. */
export interface ApprovalRequest {
  /** The turn. */
  turnId: TurnId;
  /** The step that made the call. */
  stepId: StepId;
  /** The id of the call, unique within its step. */
  toolCallId: string;
  /** The tool's name. */
  toolName: string;
  /** The arguments: any JSON. */
  input: unknown;
  /** Why approval is needed, for display. */
  reason?: string;
  /** When the call is denied if nobody answers, in epoch milliseconds; absent = never. */
  until?: number;
}

/** Extension: a tool call needs a user's approval. Transient. */
export interface ApprovalRequestedEvent {
  type: "approval-requested";
  /** The step that made the call. */
  stepId: StepId;
  /** The id of the call. */
  toolCallId: string;
  /** The tool's name. */
  toolName: string;
  /** The arguments: any JSON. */
  input: unknown;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /** Why approval is needed, for display. */
  reason?: string;
  /** When the call is denied if nobody answers, in epoch milliseconds; absent = never. */
  until?: number;
}

/** Extension: the wait for a user's approval ended. Transient. */
export interface ApprovalResolvedEvent {
  type: "approval-resolved";
  /** The step that made the call. */
  stepId: StepId;
  /** The id of the call. */
  toolCallId: string;
  /** The outcome. */
  verdict: Verdict;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /** The user's name, as their client gave it. */
  name?: string;
  /** The user's reason. */
  reason?: string;
  /** What the user allowed; the call alone if absent. */
  scope?: ApprovalScope;
  /** The client that the user answered with, such as `page` or `terminal`. */
  via?: string;
}

/** What a person allows. */
export type ApprovalScope =
  /** This call. */
  | "call"
  /** Every call of this tool in the conversation from now on, until revoked. Never overrides a policy that denies. */
  | "conversation"
  /** A value from a newer server. */
  | (string & {});

/** Response of `GET /conversations/:id/approvals`. */
export interface Approvals {
  /** The conversation. */
  conversationId: ConversationId;
  /** The calls that wait for an answer, in call order. */
  pending: Array<ApprovalRequest>;
  /** The tools that were allowed for the whole conversation, by name. */
  allowedTools: Array<string>;
}

/** Response of `GET /conversations/:id/attempts`. */
export interface Attempts {
  /** The newest failed attempts, oldest first. */
  attempts: Array<FailedAttempt>;
  /** True if older ones were left out. */
  more?: boolean;
}

/** One thing that was done, or refused. */
export interface AuditEntry {
  /** Increases from entry to entry: when it was written, in microseconds since 1970. */
  id: number;
  /** The same as a moment, in UTC. */
  at: string;
  /** A route, such as `DELETE /providers/{name}`, a command, or `sign-in`. */
  action: string;
  /** `done`, the HTTP status of a failure, `client left`, or `asked` for a command of a WebSocket. */
  outcome: string;
  /** The address that it came from; absent = a command on the server's machine. */
  from?: string;
  /** How many refusals before this entry were left out, because there were too many. */
  leftOut?: number;
  /** What it was done to. */
  object?: string;
  /** The name of a caller; absent = the administrator, or nobody if a sign-in was refused. */
  who?: string;
  /** Why a sign-in was refused. */
  why?: string;
}

/** Response of `GET /audit`. */
export interface AuditLog {
  /** Newest first. */
  entries: Array<AuditEntry>;
}

/** It may. */
export interface AutoToolChoice {
  type: "auto";
}

/** Why a call waits. `Display` says it in words. */
export type Because =
  /** The provider said when to ask again. */
  | "hint"
  /** The limit on requests that the provider reported is used up. */
  | "requests"
  /** The limit on tokens that the provider reported has no room for the call. */
  | "tokens"
  /** As many calls were accepted lately as the provider is known to accept. */
  | "rate"
  /** As many calls are running as the provider is known to accept. */
  | "concurrency"
  /** Another turn was refused, and the provider did not say for how long. */
  | "refused"
  /** Another call is finding out whether the provider answers again. */
  | "probe"
  /** Calls are made one after another, because it is not known how many are accepted. */
  | "ramp"
  /** Others came first. */
  | "line"
  /** The turn's caller used up a limit that this server sets it. */
  | "caller-limit"
  /** There is no network, or the provider is not there. */
  | "offline"
  /** A value from a newer server. */
  | (string & {});

/**
 * A call that is passed through began, waits, goes on or is over. Sent to every subscriber with extension events that sees
 * the call.
 */
export interface CallChangedMessage {
  type: "call.changed";
  /** Its id. */
  id: string;
  /** The model, as the caller named it. */
  model: string;
  /** The target that is being asked, or will be asked next. */
  target: string;
  /** What it is doing. */
  phase: CallPhase;
  /** When it began, in epoch milliseconds. */
  startedAt: number;
  /** Number of retries so far. */
  retries: number;
  /** Sum of the waits so far, in milliseconds. */
  waitedMs: number;
  /** Number of clients that wait for the answer, or receive it. */
  listeners: number;
  /** The failure that it waits for, for people; absent if it does not wait. */
  because?: string;
  /** Whose call it is, for the administrator; absent if it is the administrator's own. */
  caller?: string;
  /** The failure's category; absent if it does not wait. */
  category?: Category;
  /** When its wait ends, in epoch milliseconds; absent if it does not wait. */
  nextAt?: number;
  /** The caller's program; absent if it does not say. */
  program?: string;
  /** The caller's name of its session; absent if it does not say. */
  session?: string;
  /** True if it waits behind other calls, or for a limit of its caller: the wait may end before `nextAt`. */
  shared?: boolean;
}

/** A call that is passed through. Never has its content, nor a credential. */
export interface CallInfo {
  /** Its id. */
  id: string;
  /** The model, as the caller named it. */
  model: string;
  /** The target that is being asked, or will be asked next. */
  target: string;
  /** What it is doing. */
  phase: CallPhase;
  /** When it began, in epoch milliseconds. */
  startedAt: number;
  /** Number of retries so far. */
  retries: number;
  /** Sum of the waits so far, in milliseconds. */
  waitedMs: number;
  /** Number of clients that wait for the answer, or receive it. */
  listeners: number;
  /** The failure that it waits for, for people; absent if it does not wait. */
  because?: string;
  /** Whose call it is, for the administrator; absent if it is the administrator's own. */
  caller?: string;
  /** The failure's category; absent if it does not wait. */
  category?: Category;
  /** When its wait ends, in epoch milliseconds; absent if it does not wait. */
  nextAt?: number;
  /** The caller's program; absent if it does not say. */
  program?: string;
  /** The caller's name of its session; absent if it does not say. */
  session?: string;
  /** True if it waits behind other calls, or for a limit of its caller: the wait may end before `nextAt`. */
  shared?: boolean;
}

/** Response of `POST /calls/:id/retry-now` and `POST /calls/:id/give-up`. */
export interface CallOrdered {
  /** The call. */
  callId: string;
}

/** What a call is doing. */
export type CallPhase =
  /** A provider is being asked, and has said nothing yet. */
  | "asking"
  /** It waits before the next attempt. */
  | "waiting"
  /** The answer is being passed on. */
  | "answering"
  /** It is over; its answer waits for a repeated request. */
  | "kept"
  /** It is over, and no longer listed. Only in `call.changed`. */
  | "ended"
  /** A value from a newer server. */
  | (string & {});

/** A tool call that was handed to the caller. */
export interface CallerCall {
  /** The id of the call. Its result must have the same id. */
  toolCallId: string;
  /** The tool's name. */
  toolName: string;
  /** The arguments. */
  input: unknown;
}

/** A caller. */
export interface CallerInfo {
  /** Its name. */
  name: string;
  /** What it may use: `chat`, `calls`, `proxy`, `admin`. */
  scopes: Array<string>;
  /** Whether its token counts: `valid`, `expired` or `revoked`. */
  status: string;
  /** Whether it belongs to the configuration, where alone it can be changed. */
  configured: boolean;
  /** Patterns of the models and routes that it may use; absent = all. */
  models?: Array<string>;
  /** What these calls cost in a day, in the currency of the configured prices. */
  moneyPerDay?: number;
  /** Calls to models at once. */
  parallel?: number;
  /** The highest priority of its calls; absent = interactive. */
  priority?: Priority;
  /** Calls to models that begin in a minute. */
  requestsPerMinute?: number;
  /** Tokens of these calls in a day, in UTC. */
  tokensPerDay?: number;
  /** Tokens of these calls in a minute. */
  tokensPerMinute?: number;
  /** When its token expires; absent = never. */
  until?: string;
}

/** What a caller may use of providers, and the body of `PUT /callers/{name}/limits`. Absent = no limit. */
export interface CallerLimits {
  /** Patterns of the models and routes that it may use; absent = all. */
  models?: Array<string>;
  /** What these calls cost in a day, in the currency of the configured prices. */
  moneyPerDay?: number;
  /** Calls to models at once. */
  parallel?: number;
  /** The highest priority of its calls; absent = interactive. */
  priority?: Priority;
  /** Calls to models that begin in a minute. */
  requestsPerMinute?: number;
  /** Tokens of these calls in a day, in UTC. */
  tokensPerDay?: number;
  /** Tokens of these calls in a minute. */
  tokensPerMinute?: number;
}

/** Response of `GET /callers`. */
export interface CallerList {
  /** All of them, also those that were revoked. */
  callers: Array<CallerInfo>;
}

/** A tool that the caller runs. The model's calls of it end the turn and are handed to the caller. */
export interface CallerTool {
  /** The name that the model uses: 1 to 64 of the characters A-Z a-z 0-9 _ -. */
  name: string;
  /** Its description for the model. */
  description?: string;
  /** JSON Schema of its arguments; none if absent. */
  inputSchema?: unknown;
}

/** Response of `GET /calls`. */
export interface Calls {
  /** The calls in progress, and those whose answer nobody has taken yet; the oldest first. */
  calls: Array<CallInfo>;
}

/** The category of a failure. */
export type Category =
  /** A rate limit of this client; temporary. */
  | "rate_limited"
  /** The provider lacks capacity; temporary. */
  | "overloaded"
  /** An internal error of the provider. */
  | "server_error"
  /** The connection failed or was dropped. */
  | "network"
  /** Nothing arrived in time. */
  | "timeout"
  /** The answer was malformed, truncated or empty. */
  | "invalid_response"
  /** A plan, credit or daily quota is exhausted; waiting within this turn does not help. */
  | "quota_exhausted"
  /** The request exceeds the model's context window. */
  | "context_overflow"
  /** The provider rejects the request as invalid. */
  | "invalid_request"
  /** The model or URL does not exist. */
  | "not_found"
  /** The content was refused. */
  | "content_policy"
  /** The credential is missing, wrong or expired. */
  | "auth"
  /** The credential is valid but lacks the permission. */
  | "permission"
  /** Cancelled by the caller or the provider's operator. */
  | "cancelled"
  /** A fault in Everturn itself, such as a panic in a provider adapter. */
  | "internal"
  /** Not recognized, or a category from a newer version. */
  | "unknown"
  /** A value from a newer server. */
  | (string & {});

/** An event, verbatim. */
export interface ChatDeltaMessage {
  type: "chat.delta";
  /** The event. */
  event: AgentEvent;
  /** The position in the event stream right after it. */
  cursor?: string;
}

/** A command failed. */
export interface ChatErrorMessage {
  type: "chat.error";
  /** What is wrong, and what to do. */
  message: string;
  /** The conversation, if the command named one. */
  conversationId?: ConversationId;
  /** The message that was not queued, if the command was a `chat.queue` with a `messageId`. */
  messageId?: string;
}

/** Removes a queued message. */
export interface ChatQueueCancelCommand {
  type: "chat.queue.cancel";
  /** The conversation. */
  conversationId: ConversationId;
  /** The message. */
  messageId: string;
}

/** Queues a user message: it is injected at the next tool-result boundary or starts the next turn. */
export interface ChatQueueCommand {
  type: "chat.queue";
  /** The conversation. */
  conversationId: ConversationId;
  /** The user message. */
  text: string;
  /** An id chosen by the client, used to cancel the message; the server creates one if absent. */
  messageId?: string;
}

/**
 * Repeats a turn that ended in an error or was stopped, over the same history; with `seq`, answers a user message
 * again instead. Refused while a turn runs. Subscribes the sender.
 */
export interface ChatRetryCommand {
  type: "chat.retry";
  /** The conversation. */
  conversationId: ConversationId;
  /**
   * How calls that need a person's approval are treated; if absent, as in the turn that is repeated or that has
   * the message.
   */
  approvals?: ApprovalMode;
  /** Whether to send extension events too. */
  extensions?: boolean;
  /** With `seq`: new text for that message, which is superseded too; its images are kept. 1 byte to 1 MiB. */
  message?: string;
  /** The model, as `provider/model`, or the route, as `route/name`; the conversation's last one if absent. */
  model?: string;
  /** Retry settings for the new turn only. */
  retry?: RetrySettings;
  /** The `seq` of the user message to answer again. Everything after it is superseded. */
  seq?: number;
  /**
   * The conversation's last turn. The command is refused if another turn is the last by now. Required without
   * `seq`.
   */
  turnId?: TurnId;
}

/** Starts a turn, in a new conversation if none is given. Subscribes the sender. */
export interface ChatSendCommand {
  type: "chat.send";
  /** The user message. */
  message: string;
  /** How calls that need a person's approval are treated; if absent, the turn waits for an answer. */
  approvals?: ApprovalMode;
  /** The conversation; a new one if absent. */
  conversationId?: ConversationId;
  /** Whether to send extension events too. */
  extensions?: boolean;
  /**
   * The report that the turn must end with; if absent, that of its route or of the server's configuration, if
   * any.
   */
  finalReport?: RequiredReport;
  /** Images attached to the message. */
  images?: Array<Image>;
  /** The model, as `provider/model`; the server's default if absent. */
  model?: string;
  /** What the conversation sets for its model from this message on, in place of what it set before. */
  modelSettings?: ModelSettings;
  /** Whether the turn gives way to others when calls have to wait; if absent, it does not. */
  priority?: Priority;
  /** Reasoning effort, in the provider's terms. */
  reasoningEffort?: string;
  /** Retry settings for this turn only. */
  retry?: RetrySettings;
}

/** Stops the running turn. */
export interface ChatStopCommand {
  type: "chat.stop";
  /** The conversation. */
  conversationId: ConversationId;
}

/** Subscribes to a conversation's events: those after the cursor, or else the running turn from its start. */
export interface ChatSubscribeCommand {
  type: "chat.subscribe";
  /** The conversation. */
  conversationId: ConversationId;
  /** The last cursor received. */
  cursor?: string;
  /** Whether to send extension events too. */
  extensions?: boolean;
}

/** Unsubscribes from a conversation's events. */
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
  /** Its conversation. */
  conversationId: ConversationId;
  /** Position in the conversation: starts at 1, has no gaps. */
  seq: number;
  /** Its author. */
  role: Role;
  /** The chunk. */
  chunk: Chunk;
  /** The first `seq` that it supersedes: chunks from there up to this one are no longer sent to models. */
  supersedes?: number;
}

/** A server that shares its conversations with others. */
export interface ClusterNode {
  /** Its id, a new one at each start. */
  id: string;
  /** Its name. */
  name: string;
  /** The version of its program. */
  version: string;
  /** When it started, in epoch milliseconds. */
  startedAt: number;
  /** The number of unfinished turns that it drives or is going to wake, as of a few seconds ago. */
  turns: number;
  /** The models and routes that it offers, at most 100. It continues turns of other servers that use one of them. */
  models?: Array<string>;
  /** The MCP servers that it is configured with, at most 100. */
  toolSources?: Array<string>;
}

/** Response of `GET /cluster`. */
export interface ClusterState {
  /** All servers that share the conversations and are alive, this one included, by id. */
  nodes: Array<ClusterNode>;
  /** The id of this server; absent if it shares its conversations with no other. */
  node?: string;
}

/** A frame from client to server. Parse untrusted frames with [`Command::parse`], which bounds the memory used. */
export type Command =
  | ChatSendCommand
  | ChatSubscribeCommand
  | ChatUnsubscribeCommand
  | ChatQueueCommand
  | ChatQueueCancelCommand
  | ChatStopCommand
  | ChatRetryCommand
  | ApprovalAnswerCommand
  | QuestionAnswerCommand
  | RetryAbortCommand
  | RetryNowCommand
  | RetrySetCommand;

/** Why a history is summarized. */
export type CompactionCause =
  /** The provider rejected it as too long for the model. */
  | "overflow"
  /** It would barely fit the model's context window. */
  | "ahead"
  /** A person asked for it. The turn ends with the summary. */
  | "requested"
  /** A value from a newer server. */
  | (string & {});

/**
 * Extension: the compaction ended; sent once per `compaction-started`. The summary is kept as a `system` chunk.
 * Transient.
 */
export interface CompactionCompletedEvent {
  type: "compaction-completed";
  /** The step. */
  stepId: StepId;
  /** The outcome. */
  outcome: CompactionOutcome;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /**
   * The `seq` of the first chunk that the model still receives unchanged. The summary replaces the chunks before
   * it.
   */
  keepsFrom?: number;
  /** Why there is no summary, for display. */
  message?: string;
  /** The summary. */
  summary?: string;
}

/** How a compaction ended. */
export type CompactionOutcome =
  /** A summary replaces the older history. */
  | "summarized"
  /** No summary could be made. */
  | "failed"
  /** The turn ended first. */
  | "cancelled"
  /** A value from a newer server. */
  | (string & {});

/** Extension: the history does not fit the model's context; its older part is being summarized. Transient. */
export interface CompactionStartedEvent {
  type: "compaction-started";
  /** The step whose request does not fit. It is asked again afterwards. */
  stepId: StepId;
  /** The reason. */
  cause: CompactionCause;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /** The HTTP status of the refusal as text, if known. */
  code?: string;
  /** When it did, in epoch milliseconds. */
  failedAt?: number;
  /** The target that refused the request, as `provider/model`; absent if none did. */
  failedTarget?: string;
  /** Time from the call to the refusal, in milliseconds. */
  latencyMs?: number;
  /** The failure, if an overflow is the cause: the provider's refusal, verbatim, or that the request barely fits. */
  message?: string;
}

/** The id of a conversation: an append-only log of chunks with one writer. */
export type ConversationId = string;

/** A conversation; its chunks follow. */
export interface ConversationLine {
  type: "conversation";
  /** The conversation. */
  id: ConversationId;
  /** When it was created, in epoch milliseconds. */
  createdAt: number;
  /** When its latest chunk was added, in epoch milliseconds. */
  lastActivityAt: number;
  /** The beginning of its first message. */
  title: string;
  /** Its status. While a turn runs or waits, its chunks follow as far as they are saved. */
  status: ConversationStatus;
  /** The `seq` of its last chunk, which is also the number of chunks; 0 = none. */
  latestSeq: number;
  /** Why its last turn ended; absent while a turn runs, if there was none, or if it is not known. */
  endReason?: DoneReason;
  /** The model of its last turn, as `provider/model`. */
  model?: string;
}

export type ConversationList = Array<ConversationSummary>;

/** Response of `GET /conversations/:id/status`. */
export interface ConversationState {
  /** The conversation. */
  conversationId: ConversationId;
  /** Whether a turn is running or waiting. */
  isActive: boolean;
  /** Its status. */
  status: ConversationStatus;
  /** The tool calls that wait for a person's approval; absent if there are none. */
  approvals?: Array<ApprovalRequest>;
  /** Whether failures are retried automatically. */
  autoRetry?: boolean;
  /** The open questions of running tools; absent if there are none. */
  questions?: Array<Question>;
  /** The queued messages, oldest first; absent if there are none. */
  queue?: Array<QueuedMessage>;
  /** The retry in progress, if any. */
  retry?: RetryState;
  /** The `seq` of the running turn's first chunk. Chunks from here on are also in a replay of the turn's events. */
  turnSeq?: number;
}

/** The status of a conversation. */
export type ConversationStatus =
  /** A turn is running or waiting. */
  | "active"
  /** A turn waits for people alone: a tool call needs their approval. */
  | "queued"
  /** No turn is running. */
  | "idle"
  /** Closed; a new message reopens it. */
  | "closed"
  /** A value from a newer server. */
  | (string & {});

/** A conversation's status changed; sent to every client that sees the conversation. */
export interface ConversationStatusChangedMessage {
  type: "conversation.statusChanged";
  /** The conversation. */
  conversationId: ConversationId;
  /** Its new status. */
  status: ConversationStatus;
  /** The workspace it belongs to. */
  workspaceId: string;
}

/** A conversation in a list. */
export interface ConversationSummary {
  /** The conversation. */
  id: ConversationId;
  /** When it was created, in epoch milliseconds. */
  createdAt: number;
  /** When its latest chunk was added, in epoch milliseconds. */
  lastActivityAt: number;
  /** The beginning of the first message. */
  title: string;
  /** Its status. */
  status: ConversationStatus;
  /** The workspace it belongs to. */
  workspaceId: string;
  /** Why the last turn ended; absent while a turn runs, if there was none, or if it is not known. */
  endReason?: DoneReason;
  /** The model or route of its last turn; absent if none was chosen. */
  model?: string;
  /** The message in which a search found its words; absent if the title has them, and in lists that are no search. */
  passage?: FoundPassage;
  /** When the running turn's wait ends, in epoch milliseconds; absent if it is not waiting for a moment in time. */
  waitsUntil?: number;
}

/** Who decides whether a tool call may run. */
export type Decider =
  /** A person who was asked. */
  | "person"
  /** A review. */
  | "review"
  /** The policy of the tool, or of the turn's message. */
  | "rule"
  /** An earlier answer of a person, who allowed the tool for the whole conversation. */
  | "grant"
  /** A value from a newer server. */
  | (string & {});

/** A decision on whether a tool call may run. Kept with the call's result. */
export interface Decision {
  /** Who decided. */
  by: Decider;
  /** The outcome. `timed-out` for a person: nobody answered in time. */
  verdict: Verdict;
  /** The person's name, as given by their client. Not verified. */
  name?: string;
  /** A person's reason, a reviewer's rationale, or why a review reached no decision. */
  reason?: string;
  /** The reviewer's rating of the risk, in its own words. */
  riskLevel?: string;
  /** What a person allowed; only this call if absent. */
  scope?: ApprovalScope;
  /** The reviewer's rating of how far the user asked for the call, in its own words. */
  userAuthorization?: string;
  /** The client that the person answered with, such as `page` or `terminal`; `http` or `websocket` if it did not say. */
  via?: string;
}

/** The turn's work ended: the model finished, a failure ended it, or it was stopped. */
export interface DoneEvent {
  type: "done";
  /** The reason. */
  reason: DoneReason;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /** Tool calls that the caller must run, sending the results with its next request; absent if there are none. */
  calls?: Array<CallerCall>;
  /** Input plus output tokens of the last step: the context size from which the next request starts. */
  contextSize?: number;
  /** Time since the start of the turn, in milliseconds. */
  durationMs?: number;
  /**
   * Time from the start of the turn to the first token shown, including waits, in milliseconds; absent if
   * nothing was shown.
   */
  firstTokenMs?: number;
  /** The model that answered last, as `provider/model`; absent if it is not known. */
  model?: string;
  /** Token counts, summed over the steps. */
  usage?: Usage;
}

/** Why the model finished: a known word or the provider's own. */
export type DoneReason =
  | "stop" | "tool-calls" | "length" | "content-filter" | "max-steps" | "error" | "aborted"
  | (string & {});

/**
 * Opaque provider data, such as a signature or encrypted reasoning, that must be sent back with the piece it came
 * with. Only the provider that issued it can interpret it.
 */
export interface Echo {
  /** The issuer, as API and host, e.g. `anthropic api.anthropic.com`. The data is sent back only to it. */
  origin: string;
  /** The data, as the provider sent it. */
  data: unknown;
}

/** The body of every error response. */
export interface ErrorBody {
  /** What is wrong and what to do. */
  error: string;
}

/** The failure that ended a turn. Shown to users, never sent to a model. */
export interface ErrorChunk {
  type: "error";
  /** The provider's error, verbatim. */
  message: string;
  /** What the user can do about it, in one sentence. */
  advice?: string;
  /** The category of the failure. */
  category?: Category;
  /** The HTTP status as text, if known. */
  code?: string;
  /** Details about `outcome`, for display. */
  detail?: string;
  /** Why a retryable failure was not retried further: `exhausted` or `too-long`. Absent if it is not retryable. */
  outcome?: RetryOutcome;
  /** Set if an image was rejected. */
  rejectedImage?: RejectedImage;
  /** Number of retries of the step before it; absent = none. */
  retries?: number;
  /** Sum of their scheduled waits, in milliseconds; absent = none. */
  waitedMs?: number;
}

/** The failure that ends the turn. Sent once, and persisted as an error chunk. */
export interface ErrorEvent {
  type: "error";
  /** The provider's error, verbatim. */
  message: string;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /** What the user can do about it, in one sentence. */
  advice?: string;
  /** The category of the failure. */
  category?: Category;
  /** The HTTP status as text, if known. */
  code?: string;
  /** Details about `outcome`, for display. */
  detail?: string;
  /** Why a retryable failure was not retried further: `exhausted` or `too-long`. Absent if it is not retryable. */
  outcome?: RetryOutcome;
  /** Set if an image was rejected. */
  rejectedImage?: RejectedImage;
  /** Number of retries of the step before it; absent = none. */
  retries?: number;
  /** Sum of their scheduled waits, in milliseconds; absent = none. */
  waitedMs?: number;
}

/** A frame could not be parsed. */
export interface ErrorMessage {
  type: "error";
  /** What is wrong, and what to do. */
  message: string;
}

/** One line of an export. Each conversation precedes its chunks, which are ordered by `seq`. */
export type ExportLine =
  | ConversationLine
  | ChunkLine;

/** A provider call that failed, whether it was retried or ended its turn. Never sent to a model. */
export interface FailedAttempt {
  /** The turn. */
  turnId: TurnId;
  /** 0-based number of the step. */
  step: number;
  /** 0-based number of the attempt within its step, as `provider-retry` counts, without waits before which nobody was asked. */
  attempt: number;
  /** The provider's error, truncated to 500 characters. */
  message: string;
  /** When it failed, in epoch milliseconds. */
  failedAt: number;
  /** Why it waited that long; absent if it waited as its schedule says. */
  because?: Because;
  /** The category of the failure; absent if it is not known. */
  category?: Category;
  /** The HTTP status as text, if known. */
  code?: string;
  /** Time from the call to its failure, in milliseconds; absent if it is not known. */
  latencyMs?: number;
  /** The target that was asked, as `provider/model`; absent if it is not known. */
  target?: string;
  /** The wait that was scheduled after it, in milliseconds; absent if it ended the turn. */
  waitMs?: number;
}

/** A diagnosed provider error. */
export interface Failure {
  /** Its category. */
  category: Category;
  /** Whether the same request with the same credential can succeed later in the turn. */
  retryable: boolean;
  /** The provider's error, verbatim but capped and with secrets removed, e.g. `HTTP 429: {"error":...}`. */
  message: string;
  /** What the user can do about it, in one sentence. */
  advice?: string;
  /** The HTTP status as text, if one was received. */
  code?: string;
  /** The wait that the provider asked for, in milliseconds. */
  hintMs?: number;
  /** The provider's own error type or code, e.g. `overloaded_error`. */
  providerCode?: string;
  /** Whether the provider rejected the request because of an image in it, as far as is known. */
  rejectsImage?: boolean;
  /** Why the request did not reach the provider, if it did not. */
  unreached?: Unreached;
}

/** The type of a field's value. */
export type FieldKind =
  /** A string. */
  | "text"
  /** A number. */
  | "number"
  /** A whole number. */
  | "integer"
  /** True or false. */
  | "boolean"
  /** The value of one of the options, as a string. */
  | "choice"
  /** The values of any number of the options, as an array of strings. */
  | "choices"
  /** A value from a newer server. */
  | (string & {});

/** An option of a field. */
export interface FieldOption {
  /** Its value in the answer. */
  value: string;
  /** Its label; the value if absent. */
  title?: string;
}

/** The final report of a turn that must end with one: the model's report, or the reason why there is none. */
export interface FinalReport {
  /** Whether the model gave a report that fits its schema. */
  success: boolean;
  /** How far the turn got: its steps and attempts. */
  context?: string;
  /** The reason why there is no report. */
  reason?: string;
  /** The model's report: any JSON that fits the schema. Absent if there is none. */
  report?: unknown;
}

/** Extension: the report of a turn that must end with one, sent before its `done`. Exactly one per such turn. */
export interface FinalReportEvent {
  type: "final-report";
  /** Whether the model gave a report that fits its schema. */
  success: boolean;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /** How far the turn got: its steps and attempts. */
  context?: string;
  /** The reason why there is no report. */
  reason?: string;
  /** The model's report: any JSON that fits the schema. Absent if there is none. */
  report?: unknown;
}

/** Why only the final report is on offer. */
export type ForcedBy =
  /** The turn has no steps left. */
  | "max-steps"
  /** The history does not fit the model's context. */
  | "overflow"
  /** No retries are left, of failed calls or of failed replies. */
  | "exhausted"
  /** A value from a newer server. */
  | (string & {});

/** A part of a message around what was searched. */
export interface FoundPassage {
  /** The `seq` of the message's chunk. */
  seq: number;
  /** Who said it: `user` or `assistant`. */
  role: Role;
  /**
   * The part around the first of the words: on one line, at most 200 characters of the message. An ellipsis (`…`) marks
   * where more precedes or follows.
   */
  text: string;
}

/** Response of `GET /health`. */
export interface Health {
  /** Always true: a server that is not healthy does not answer. */
  ok: boolean;
}

/** Response of `GET /conversations/:id`. */
export interface HistoryWindow {
  /** The chunks, in order of `seq`. */
  chunks: Array<StoredChunk>;
  /** The last chunk's `seq`; the requested `sinceSeq` if there are no chunks. */
  latestSeq: number;
  /** True if a server limit truncated the window and more chunks follow. */
  more?: boolean;
  /** The sealed turns that these chunks belong to, oldest first; absent if none is known. */
  turns?: Array<TurnMetrics>;
}

/** An image or a PDF attached to a message. */
export interface Image {
  /** The URL: `https:`, or `data:` in base64. */
  url: string;
  /** The media type, if known. A PDF at an `https:` URL needs it: `application/pdf`. */
  mimeType?: string;
}

/** An image from the user. */
export interface ImageChunk {
  type: "image";
  /** Its URL: `https:`, or `data:` in base64. */
  url: string;
  /** Its media type, if known. */
  mimeType?: string;
}

/** Any JSON object. */
export interface JsonObjectFormat {
  type: "json-object";
}

/** JSON that fits a schema. */
export interface JsonSchemaFormat {
  type: "json-schema";
  /** The schema's name. */
  name: string;
  /** The JSON Schema. */
  schema: unknown;
  /** Whether the answer must match the schema exactly, if the API offers that choice. */
  strict?: boolean;
}

/** A token that was made. It is told only now. */
export interface MadeToken {
  /** The token. */
  token: string;
  /** Whose it is. */
  caller: CallerInfo;
}

/** Consecutive chunks of one role. */
export interface Message {
  /** Its author. */
  role: Role;
  /** Its chunks, in order. */
  chunks: Array<Chunk>;
}

/** Details of a model. */
export interface ModelInfo {
  /** Maximum number of tokens in a request. */
  contextWindow?: number;
  /** Maximum number of tokens in an answer. */
  maxOutputTokens?: number;
}

/**
 * What a conversation sets for its model: kept with it, and used by each turn from the next on, unless its message says
 * otherwise. What is absent is as configured.
 */
export interface ModelSettings {
  /** Maximum number of tokens in an answer. */
  maxOutputTokens?: number;
  /** Reasoning effort, in the provider's terms. */
  reasoningEffort?: string;
  /** Instructions at the beginning of every request, in place of the configured ones. At most 128 KiB. */
  systemPrompt?: string;
  /** Sampling temperature, from 0 to 2. */
  temperature?: number;
}

/** Response of `GET /models`. */
export interface Models {
  /** The models, each as `provider/model`; the first is the default. */
  models: Array<string>;
  /** Details of the models, by the same names. */
  modelInfo?: Record<string, ModelInfo>;
}

/** Body of `POST /callers`. */
export interface NewCaller {
  /** Its name: 1 to 32 of the characters a-z 0-9 . _ - */
  name: string;
  /** Patterns of the models and routes that it may use; absent = all. */
  models?: Array<string>;
  /** What these calls cost in a day, in the currency of the configured prices. */
  moneyPerDay?: number;
  /** Calls to models at once. */
  parallel?: number;
  /** The highest priority of its calls; absent = interactive. */
  priority?: Priority;
  /** Calls to models that begin in a minute. */
  requestsPerMinute?: number;
  /** What it may use; absent = `chat` and `calls`. */
  scopes?: Array<string>;
  /** Tokens of these calls in a day, in UTC. */
  tokensPerDay?: number;
  /** Tokens of these calls in a minute. */
  tokensPerMinute?: number;
  /** When its token expires: a day, at whose end in UTC, or a moment; absent = never. */
  until?: string;
}

/** Body of `POST /callers/{name}/rotate`. */
export interface NewToken {
  /** When the new token expires, as in [`NewCaller`]. */
  until?: string;
}

/** It must not. */
export interface NoneToolChoice {
  type: "none";
}

/** What to do at a usage limit that ends after the longest wait. */
export type OnQuota =
  /** End the turn. */
  | "fail"
  /** Wait until the limit ends. */
  | "park"
  /** A value from a newer server. */
  | (string & {});

/** The output stream of a tool. */
export type OutputStream =
  /** Standard output. */
  | "stdout"
  /** Standard error. */
  | "stderr"
  /** A value from a newer server. */
  | (string & {});

/** Whose call goes first when calls have to wait. */
export type Priority =
  /** Somebody waits for the answer. */
  | "interactive"
  /** Nobody waits for it. One in eight admitted calls is a background call, if any waits. */
  | "background"
  /** A value from a newer server. */
  | (string & {});

/** A retry was scheduled: sent once per retry, before its wait. Transient. */
export interface ProviderRetryEvent {
  type: "provider-retry";
  /** 0-based number of this retry within its step. */
  attempt: number;
  /** The scheduled wait, in milliseconds. */
  delayMs: number;
  /** The provider's error, verbatim. */
  message: string;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /** Why it waits; absent if it waits as its schedule says, or if a version sent it that did not tell. */
  because?: Because;
  /**
   * Remaining retry budget after this wait, in milliseconds; absent if unbounded, or if the wait is not charged
   * to the budget (for a usage limit or the network).
   */
  budgetLeftMs?: number;
  /** The category of the failure. */
  category?: Category;
  /** True if the target asked for a longer wait, which the schedule deliberately cut short. */
  clamped?: boolean;
  /** The HTTP status as text, if known. */
  code?: string;
  /** The target whose call failed, as `provider/model`; absent if no call was made. */
  failedTarget?: string;
  /** True if the provider asked for this wait. */
  hinted?: boolean;
  /** Time from that call to its failure, in milliseconds. */
  latencyMs?: number;
  /** Maximum number of retries; absent if unbounded, or if this retry does not count against it. */
  maxAttempts?: number;
  /** When the wait ends, in epoch milliseconds. */
  nextAt?: number;
  /** True if this turn made no call, because others were refused or come first. The wait uses up no attempt. */
  shared?: boolean;
  /** The target of the retry, as `provider/model`. */
  target?: string;
}

/**
 * Extension: no part of the answer has arrived for a while. Repeated during the silence, which ends with the
 * step's next event. If nothing of the step has been shown, `retry.now` repeats the call at once. Transient.
 */
export interface ProviderSilentEvent {
  type: "provider-silent";
  /** The step. */
  stepId: StepId;
  /** Length of the silence so far, in milliseconds. */
  silentMs: number;
  /** True if the connection shows signs of life, such as keep-alive comments. */
  alive: boolean;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /** When the call times out if the silence continues, in epoch milliseconds. */
  givesUpAt?: number;
}

/** A question of a running tool to a person. Its call goes on when somebody answers. */
export interface Question {
  /** The id of the question. */
  questionId: string;
  /** The step that made the call. */
  stepId: StepId;
  /** The id of the call. */
  toolCallId: string;
  /** The tool's name. */
  toolName: string;
  /** Who asks: the name of the tool's source, such as an MCP server. */
  asker: string;
  /** What is asked for. */
  kind: QuestionKind;
  /** What the asker says, as plain text. */
  message: string;
  /** The fields of a form, in the order in which they are shown; at most 32. */
  fields?: Array<QuestionField>;
  /** The page to open, for the kind `url`. Must be opened by a person, never by a program. */
  url?: string;
}

/** What a person does with a question. */
export type QuestionAction =
  /** Answers it. */
  | "accept"
  /** Declines to answer. The call goes on without. */
  | "decline"
  /** Dismisses it without a decision. */
  | "cancel"
  /** A value from a newer server. */
  | (string & {});

/** Request body of `POST /conversations/:id/questions`: a person's answer to a question. */
export interface QuestionAnswer {
  /** The question. */
  questionId: string;
  /** `accept`, `decline` or `cancel`; any other word is refused. */
  action: QuestionAction;
  /** The values of the form's fields by name, as an object of at most 64 KiB. Only with `accept`. */
  content?: unknown;
  /** The person's name, shown to later readers of the conversation, at most 200 bytes. Not verified. */
  name?: string;
  /**
   * The client that the person answers with, such as `page` or `terminal`, at most 200 bytes; the transport if
   * absent.
   */
  via?: string;
}

/**
 * Answers a question of a running tool. An answer that does not fit is refused, and the question stays open; a late or second
 * answer changes nothing.
 */
export interface QuestionAnswerCommand {
  type: "question.answer";
  /** The conversation. */
  conversationId: ConversationId;
  /** The question. */
  questionId: string;
  /** `accept`, `decline` or `cancel`; any other word is refused. */
  action: QuestionAction;
  /** The values of the form's fields by name, as an object of at most 64 KiB. Only with `accept`. */
  content?: unknown;
  /** The person's name, shown to later readers of the conversation, at most 200 bytes. Not verified. */
  name?: string;
  /**
   * The client that the person answers with, such as `page` or `terminal`, at most 200 bytes; `websocket` if
   * absent.
   */
  via?: string;
}

/**
 * Extension: a running tool asks a person. Its `tool-result` and the end of its turn settle the question, too, and so does
 * another question of the same call. Transient.
 */
export interface QuestionAskedEvent {
  type: "question-asked";
  /** The id of the question. */
  questionId: string;
  /** The step that made the call. */
  stepId: StepId;
  /** The id of the call. */
  toolCallId: string;
  /** The tool's name. */
  toolName: string;
  /** Who asks: the name of the tool's source, such as an MCP server. */
  asker: string;
  /** What is asked for. */
  kind: QuestionKind;
  /** What the asker says, as plain text. */
  message: string;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /** The fields of a form, in the order in which they are shown; at most 32. */
  fields?: Array<QuestionField>;
  /** The page to open, for the kind `url`. Must be opened by a person, never by a program. */
  url?: string;
}

/** A field of a form. */
export interface QuestionField {
  /** The name of the field in the answer. */
  name: string;
  /** The type of its value. */
  kind: FieldKind;
  /** What is filled in before: any JSON. */
  default?: unknown;
  /** An explanation. */
  description?: string;
  /** The format of a text: `email`, `uri`, `date` or `date-time`. */
  format?: string;
  /** The maximum, likewise. */
  maximum?: number;
  /** The minimum: of a number, of the length of a text in characters, or of the number of choices. */
  minimum?: number;
  /** What can be chosen; at most 100. */
  options?: Array<FieldOption>;
  /** True if the answer must have it. */
  required?: boolean;
  /** Its label; the name if absent. */
  title?: string;
}

/** What a question asks for. */
export type QuestionKind =
  /** The values of a form. */
  | "form"
  /** Whether the person opens a page, which asks for the rest. */
  | "url"
  /** A login at the asker. The question ends when somebody has logged in. */
  | "login"
  /** A value from a newer server. */
  | (string & {});

/** How a question ended. */
export type QuestionOutcome =
  /** A person answered it; of a login: somebody has logged in. */
  | "accepted"
  /** A person declined. */
  | "declined"
  /** A person dismissed it. */
  | "cancelled"
  /** The asker does not wait any more. */
  | "withdrawn"
  /** A value from a newer server. */
  | (string & {});

/** Extension: a question was answered or withdrawn. The answer itself is in no event. Transient. */
export interface QuestionSettledEvent {
  type: "question-settled";
  /** The question. */
  questionId: string;
  /** The step that made the call. */
  stepId: StepId;
  /** The id of the call. */
  toolCallId: string;
  /** The outcome. */
  outcome: QuestionOutcome;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /** Who asked; absent from events of older versions. */
  asker?: string;
  /** What was asked for; absent from events of older versions. */
  kind?: QuestionKind;
  /** The person's name, as their client gave it. */
  name?: string;
  /** The client that the person answered with, such as `page` or `terminal`. */
  via?: string;
}

/** Response of `DELETE /conversations/:id/queue/:messageId`. */
export interface QueueCancelled {
  /** The conversation. */
  conversationId: ConversationId;
  /** Whether the message was still queued. */
  cancelled: boolean;
  /** All queued messages, oldest first. */
  queue: Array<QueuedMessage>;
}

/** Extension: the queue of user messages for the next tool-result boundary changed. Transient. */
export interface QueueChangedEvent {
  type: "queue-changed";
  /** All queued messages, oldest first. */
  queue: Array<QueuedMessage>;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
}

/** Request body of `POST /conversations/:id/queue`. */
export interface QueueRequest {
  /** The user message. */
  text: string;
  /** An id chosen by the client, used to cancel the message; the server creates one if absent. */
  messageId?: string;
}

/** Response of `POST /conversations/:id/queue`. */
export interface Queued {
  /** The conversation. */
  conversationId: ConversationId;
  /** True if no turn was running and the message started one at once. */
  startedTurn: boolean;
  /** All queued messages, oldest first. */
  queue: Array<QueuedMessage>;
}

/** A user message queued for the next tool-result boundary or the end of the turn. */
export interface QueuedMessage {
  /** The id, used to cancel the message. */
  messageId: string;
  /** The text. */
  text: string;
}

/** A piece of the model's reasoning. */
export interface ReasoningDeltaEvent {
  type: "reasoning-delta";
  /** The piece. */
  delta: string;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
}

/**
 * A provider rejected a request because of an image in it. Later requests to this model have a note in place of the
 * images added since its last answer, or of all images if there are none.
 */
export interface RejectedImage {
  /** The model that rejected it, by its id. Absent if unknown: then no model receives the image again. */
  model?: string;
}

/** Request body of `PATCH /conversations/:id`. */
export interface RenameRequest {
  /** The new title: 1 to 200 characters, on one line. */
  title: string;
}

/** Response of `PATCH /conversations/:id`. */
export interface Renamed {
  /** The conversation. */
  conversationId: ConversationId;
  /** The new title. */
  title: string;
}

/** Extension: the model is asked for its final report, and nothing else is on offer. */
export interface ReportForcedEvent {
  type: "report-forced";
  /** The step that is for the report alone. */
  stepId: StepId;
  /** The reason. */
  by: ForcedBy;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
}

/** Extension: a reply failed in a turn that must end with a report. The model is told why and asked again. */
export interface ReportMissingEvent {
  type: "report-missing";
  /** The step of the reply. */
  stepId: StepId;
  /** What was wrong with it. */
  reason: string;
  /** Number of failed replies so far. */
  attempt: number;
  /** Number of failed replies after which the turn ends without a report. */
  maxAttempts: number;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
}

/** What a provider reports of an answer, as it says it. */
export interface Reported {
  /** What the call cost, in the provider's own unit. */
  cost?: number;
  /** Its name of the model that answered, which may be more precise than the one that was asked. */
  model?: string;
  /** The tier that served the request. */
  serviceTier?: string;
  /** The configuration that the model ran with. */
  systemFingerprint?: string;
}

/** A report that a turn must end with. */
export interface RequiredReport {
  /** JSON Schema of the report: an object. */
  schema: unknown;
  /** Maximum number of failed replies of a step, and of the last step for the report alone, 1 to 100; 3 if absent. */
  maxAttempts?: number;
}

/** It must call at least one. */
export interface RequiredToolChoice {
  type: "required";
}

/** The format of an answer. */
export type ResponseFormat =
  | TextFormat
  | JsonObjectFormat
  | JsonSchemaFormat;

/** Response of `POST /conversations/:id/retry` and `POST /conversations/:id/compact`. */
export interface Retried {
  /** The conversation. */
  conversationId: ConversationId;
  /** The new turn. */
  turnId: TurnId;
  /** The position in the event stream at which it begins. */
  cursor: string;
}

/** Stops the running turn if its step is being retried: it waits for a retry, or the retry has shown nothing yet. */
export interface RetryAbortCommand {
  type: "retry.abort";
  /** The conversation. */
  conversationId: ConversationId;
}

/** Response of `POST /conversations/:id/retry/abort` and `/retry/now`. */
export interface RetryControl {
  /** The conversation. */
  conversationId: ConversationId;
  /** Whether there was a retry to skip to or cancel: a waiting one or, for `abort`, one in phase `asking`. */
  wasRetrying: boolean;
}

/** Extension: a series of retries ended. Transient. */
export interface RetryEndedEvent {
  type: "retry-ended";
  /** Number of retries made. */
  attempts: number;
  /** The outcome. */
  outcome: RetryOutcome;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /** Details, for display. */
  message?: string;
  /** The target that answered, when the retries recovered. */
  target?: string;
}

/** Skips the wait for the next retry. Also repeats the call of a silent provider, if nothing was shown. */
export interface RetryNowCommand {
  type: "retry.now";
  /** The conversation. */
  conversationId: ConversationId;
  /**
   * The model, as `provider/model`, or the route, as `route/name`, with which the turn continues; if absent, the
   * schedule decides.
   */
  model?: string;
}

/** Request body of `POST /conversations/:id/retry/now`. Optional. */
export interface RetryNowRequest {
  /**
   * The model, as `provider/model`, or the route, as `route/name`, with which the turn continues; if absent, the
   * schedule decides.
   */
  model?: string;
}

/** The outcome of a series of retries. */
export type RetryOutcome =
  /** The provider answered. */
  | "recovered"
  /** The schedule has no further retry. */
  | "exhausted"
  /** A user cancelled the wait. */
  | "cancelled"
  /** The next wait would exceed the budget. */
  | "too-long"
  /** The next failure was not retryable. */
  | "not-retryable"
  /** A value from a newer server. */
  | (string & {});

/**
 * Request body of `PATCH /retry` and `PATCH /conversations/:id/retry`. Null resets a field, so that it is inherited;
 * an absent field is unchanged. Fields and ranges are those of `RetrySettings`.
 */
export interface RetryPatch {
  /** What to do about a failure after part of an answer was shown. */
  afterContent?: AfterContent | null;
  /** The first wait, in milliseconds. */
  baseDelayMs?: number | null;
  /** Whether failures are retried automatically. */
  enabled?: boolean | null;
  /** Models to ask instead of a model that fails: all chains of this scope. */
  fallbackChains?: Record<string, Array<string>> | null;
  /** Maximum deviation as a fraction of the wait. */
  jitter?: number | null;
  /** The longest wait, in milliseconds; 0 = no limit. */
  maxDelayMs?: number | null;
  /** Maximum number of retries of a step. */
  maxRetries?: number | null;
  /** The schedule. */
  preset?: RetryPreset | null;
  /** What to do at a usage limit that ends after the longest wait. */
  quota?: OnQuota | null;
  /** When a turn goes back to the first target of its route. */
  revert?: RouteRevert | null;
}

/** The phase of a retry. */
export type RetryPhase =
  /** The wait before the retry is in progress. */
  | "waiting"
  /** The provider has been called and nothing of its answer has been shown. */
  | "asking"
  /** A value from a newer server. */
  | (string & {});

/** A schedule, by name. */
export type RetryPreset =
  /** 5 s, 10 s, 30 s and so on up to 30 min, for 8 h in total. */
  | "patient"
  /** Doubling waits. */
  | "exponential"
  /** Few, short retries, and another target before any wait. */
  | "interactive"
  /** The targets of a route in turn. */
  | "cycling"
  /** A value from a newer server. */
  | (string & {});

/** Request body of `POST /conversations/:id/retry`. Names a turn by `turnId`, a user message by `seq`, or both. */
export interface RetryRequest {
  /**
   * How calls that need a person's approval are treated; if absent, as in the turn that is repeated or that has the
   * message.
   */
  approvals?: ApprovalMode;
  /** With `seq`: new text for that message, which is superseded too; its images are kept. 1 byte to 1 MiB. */
  message?: string;
  /** The model, as `provider/model`, or the route, as `route/name`; the conversation's last one if absent. */
  model?: string;
  /** Retry settings for the new turn only. */
  retry?: RetrySettings;
  /** The `seq` of a user message to answer again. Everything after it is superseded. */
  seq?: number;
  /**
   * The conversation's last turn. The request is refused if another turn is the last by now. Without `seq`, this
   * turn is repeated; it must have ended in an error or been stopped.
   */
  turnId?: TurnId;
}

/**
 * Changes the retry settings of a conversation, or the global ones. `enabled` turns automatic retries on or off;
 * null resets a field, so that it is inherited. Sockets that asked for extension events receive
 * `retry.settingsChanged`.
 */
export interface RetrySetCommand {
  type: "retry.set";
  /** What to do about a failure after part of an answer was shown. */
  afterContent?: AfterContent | null;
  /** The first wait, in milliseconds. */
  baseDelayMs?: number | null;
  /** The conversation; absent for the global settings. */
  conversationId?: ConversationId;
  /** Whether failures are retried automatically. */
  enabled?: boolean | null;
  /** Models to ask instead of a model that fails: all chains of this scope. */
  fallbackChains?: Record<string, Array<string>> | null;
  /** Maximum deviation as a fraction of the wait. */
  jitter?: number | null;
  /** The longest wait, in milliseconds; 0 = no limit. */
  maxDelayMs?: number | null;
  /** Maximum number of retries of a step. */
  maxRetries?: number | null;
  /** The schedule. */
  preset?: RetryPreset | null;
  /** What to do at a usage limit that ends after the longest wait. */
  quota?: OnQuota | null;
  /** When a turn goes back to the first target of its route. */
  revert?: RouteRevert | null;
}

/** Retry settings of a scope or a message. Absent fields are inherited. */
export interface RetrySettings {
  /** What to do about a failure after part of an answer was shown. */
  afterContent?: AfterContent;
  /** The first wait, in milliseconds, 1 to 86,400,000 (a day). For `exponential` and `interactive`. */
  baseDelayMs?: number;
  /** Whether failures are retried automatically. The only setting that also applies to running turns. */
  enabled?: boolean;
  /** Models to ask instead of a model that fails. A scope's chains replace those of weaker scopes. */
  fallbackChains?: Record<string, Array<string>>;
  /** Maximum deviation as a fraction of the wait, 0 to 1; 0 = exact. For `exponential` and `interactive`. */
  jitter?: number;
  /**
   * The longest wait, in milliseconds, at most 2,592,000,000 (30 days); 0 = no limit. For `exponential`, which shortens
   * longer waits to it, and `interactive`, which gives up instead. A negative number is read as 0.
   */
  maxDelayMs?: number;
  /** Maximum number of retries of a step, 0 to 1000. For `exponential`, `interactive` and `cycling`. */
  maxRetries?: number;
  /** The schedule. */
  preset?: RetryPreset;
  /**
   * What to do if a provider asks for a wait beyond the budget, or does not say when a usage limit resets, and no
   * other target can be asked.
   */
  quota?: OnQuota;
  /** When a turn goes back to the first target of its route. For `interactive` and `cycling`. */
  revert?: RouteRevert;
}

/**
 * Retry settings changed. Changes of a conversation's settings are sent to its subscribers with extension events;
 * changes of the global settings, to every subscriber with extension events.
 */
export interface RetrySettingsChangedMessage {
  type: "retry.settingsChanged";
  /** What is set in this scope. */
  set: RetrySettings;
  /**
   * The settings of the next turn in this scope: `set`, and what it inherits. `preset` is absent if an embedder
   * supplies the schedule; a number is absent if the preset does not use it.
   */
  effective: RetrySettings;
  /** The conversation; absent for the global settings. */
  conversationId?: ConversationId;
}

/** Response of `GET` and `PATCH` of `/retry` and `/conversations/:id/retry`. */
export interface RetrySettingsState {
  /** What is set in this scope. */
  set: RetrySettings;
  /**
   * The settings of the next turn in this scope: `set`, and what it inherits. `preset` is absent if an embedder
   * supplies the schedule; a number is absent if the preset does not use it.
   */
  effective: RetrySettings;
  /** The conversation; absent for the global settings. */
  conversationId?: ConversationId;
}

/** The retries of a step, from its first failure until part of an answer is shown or the step is given up. */
export interface RetryState {
  /** Whether the retry is waiting or the provider has been called. */
  phase: RetryPhase;
  /** 0-based number of the retry within its step. */
  attempt: number;
  /** Scheduled length of the wait before it, in milliseconds. */
  delayMs: number;
  /** Why it waits; absent if it waits as its schedule says, or if a version sent it that did not tell. */
  because?: Because;
  /** The category of the failure. */
  category?: Category;
  /** The HTTP status as text, if known. */
  code?: string;
  /** Maximum number of retries; absent if unbounded, or if this retry does not count against it. */
  maxAttempts?: number;
  /** The provider's error, verbatim; absent if the turn was saved by a version that did not store it. */
  message?: string;
  /** When the wait ends, in epoch milliseconds; absent while `asking`. */
  nextAt?: number;
  /** True if this turn made no call, because others were refused or come first. The wait uses up no attempt. */
  shared?: boolean;
  /** The target that the retry asks, as `provider/model`; absent if the turn has only one. */
  target?: string;
}

/** Extension: the review ended; sent once per `review-started`. Transient. */
export interface ReviewCompletedEvent {
  type: "review-completed";
  /** The step that made the call. */
  stepId: StepId;
  /** The id of the call. */
  toolCallId: string;
  /** The outcome. */
  verdict: Verdict;
  /** Number of calls to the reviewer. */
  attemptCount: number;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /** Duration of the review with all its attempts and waits, in milliseconds. */
  durationMs?: number;
  /** The reviewer's reason. */
  rationale?: string;
  /** The reviewer's rating of the risk, in its own words. */
  riskLevel?: string;
  /** The reviewer's rating of how far the user asked for the call, in its own words. */
  userAuthorization?: string;
}

/** Extension: a reviewer model started to review a tool call before it runs. Transient. */
export interface ReviewStartedEvent {
  type: "review-started";
  /** The step that made the call. */
  stepId: StepId;
  /** The id of the call. */
  toolCallId: string;
  /** The tool's name. */
  toolName: string;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
}

/** Response of `DELETE /conversations/:id/approvals/tools/:tool`. */
export interface Revoked {
  /** The conversation. */
  conversationId: ConversationId;
  /** Whether the tool was allowed for the whole conversation until now. */
  revoked: boolean;
}

/** The author of a message. */
export type Role =
  /** The embedder's instructions. */
  | "system"
  /** The user. */
  | "user"
  /** The model. */
  | "assistant"
  /** Tool results. */
  | "tool"
  /** A value from a newer server. */
  | (string & {});

/** When a turn goes back to the first target of its route. */
export type RouteRevert =
  /** As soon as that target is available again. */
  | "cooldown-expiry"
  /** Only when the target it moved to fails. */
  | "never"
  /** A value from a newer server. */
  | (string & {});

/**
 * Request body of `POST /chat`.
 *
 * If it has any field from `messages` on, or an `Idempotency-Key` header, unknown fields are refused.
 */
export interface SendRequest {
  /** How calls that need a person's approval are treated; if absent, the turn waits for an answer. */
  approvals?: ApprovalMode;
  /** The conversation; a new one if absent. */
  conversationId?: ConversationId;
  /**
   * Whether the conversation exists only for this request: it is not listed, and is removed some time after its last
   * turn.
   */
  ephemeral?: boolean;
  /** Whether to send extension events too. */
  extensions?: boolean;
  /** The report that the turn must end with; if absent, that of its route or of the server's configuration, if any. */
  finalReport?: RequiredReport;
  /** Penalty for tokens according to how often they have occurred. */
  frequencyPenalty?: number;
  /** Images attached to the message. */
  images?: Array<Image>;
  /** Maximum number of tokens in an answer. */
  maxOutputTokens?: number;
  /** The user message. Not with `messages`. */
  message?: string;
  /**
   * The whole history, oldest first, in place of `message`. System messages at its start replace the configured
   * system prompt for this turn. Every tool call has exactly one result, and the last message is from the user or a
   * tool. Messages that the conversation already has are kept; those that differ are superseded.
   */
  messages?: Array<Message>;
  /** The model, as `provider/model`; the server's default if absent. */
  model?: string;
  /** What the conversation sets for its model from this message on, in place of what it set before. */
  modelSettings?: ModelSettings;
  /** Whether the model may call several tools in one step. */
  parallelToolCalls?: boolean;
  /** Penalty for tokens that have occurred. */
  presencePenalty?: number;
  /** Whether the turn gives way to others when calls have to wait; if absent, it does not. */
  priority?: Priority;
  /** Reasoning effort, in the provider's terms. */
  reasoningEffort?: string;
  /** The format of the answer. */
  responseFormat?: ResponseFormat;
  /** Retry settings for this turn only. */
  retry?: RetrySettings;
  /** Seed for sampling, if the API attempts reproducible answers. */
  seed?: number;
  /** Sequences at which the model stops. */
  stop?: Array<string>;
  /** Sampling temperature. This and all fields below are refused if the model's API has no such parameter. */
  temperature?: number;
  /** Whether the model may or must call tools. */
  toolChoice?: ToolChoice;
  /**
   * Tools that the caller runs, replacing the server's. A call of one ends the turn and is in its `done` event; the
   * next request has the result in its `messages`.
   */
  tools?: Array<CallerTool>;
  /** Nucleus sampling: the probability mass to sample from. */
  topP?: number;
}

/** A frame from server to client. */
export type ServerMessage =
  | ChatDeltaMessage
  | ChatErrorMessage
  | ConversationStatusChangedMessage
  | RetrySettingsChangedMessage
  | CallChangedMessage
  | ErrorMessage
  | UnknownMessage;

/** How a question ended, without what was asked and what was answered. Kept with the result of its call. */
export interface SettledQuestion {
  /** The question. */
  questionId: string;
  /** Who asked. */
  asker: string;
  /** What was asked for. */
  kind: QuestionKind;
  /** The outcome. */
  outcome: QuestionOutcome;
  /** The person's name, as given by their client. Not verified. */
  name?: string;
  /** The client that the person answered with, such as `page` or `terminal`; `http` or `websocket` if it did not say. */
  via?: string;
}

/** The conversation's status changed, or its retry went from `waiting` to `asking`. */
export interface StatusEvent {
  type: "status";
  /** The new status. */
  status: ConversationStatus;
  /** The conversation. */
  conversationId: ConversationId;
  /** The retry in progress. Sent with an unchanged status when a wait ends and the provider is called again. */
  retry?: RetryState;
  /** The turn; absent on `status` only. */
  turnId?: TurnId;
}

/** A queued user message was injected at the tool-result boundary. */
export interface SteeringEvent {
  type: "steering";
  /** Its text. */
  text: string;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
}

/** The step's stream ended. */
export interface StepCompleteEvent {
  type: "step-complete";
  /** The step. */
  stepId: StepId;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /** Time from the first token to the end of the stream, in milliseconds. */
  decodeMs?: number;
  /** `ttftMs + decodeMs`; absent without a first token. */
  genTotalMs?: number;
  /** What the provider reports of the answer; absent if nothing. */
  reported?: Reported;
  /** Time from the provider call to its first token, in milliseconds. */
  ttftMs?: number;
}

/** The id of a step (one model round trip of a turn). Opaque to clients, equal for all calls of one step. */
export type StepId = string;

/** Extension: discard what was shown of this step; it will be streamed again. Transient. */
export interface StepRewoundEvent {
  type: "step-rewound";
  /** The step. */
  stepId: StepId;
  /** The reason, for display. */
  reason: string;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
}

/** Extension: an attempt to report reduced the remaining steps to one. Sent once per turn. */
export interface StepsCollapsedEvent {
  type: "steps-collapsed";
  /** The step of the attempt. */
  stepId: StepId;
  /** The maximum number of steps before. */
  from: number;
  /** The maximum number of steps now. */
  to: number;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
}

/** Response of `POST /conversations/:id/stop` and `/close`, and of `DELETE /conversations/:id`. */
export interface Stopped {
  /** The conversation. */
  conversationId: ConversationId;
  /** Whether a turn was running. */
  abortedTurn: boolean;
}

/** A chunk with its position in the conversation. */
export interface StoredChunk {
  /** Position in the conversation. Starts at 1, has no gaps, in append order. */
  seq: number;
  /** Its author. */
  role: Role;
  /** The chunk. */
  chunk: Chunk;
  /**
   * Supersedes the chunks from this `seq` up to this chunk: users still see them, but they are no longer sent to a
   * model. Set on the first chunk of a turn that repeats another or edits a user message.
   */
  supersedes?: number;
}

/** Text for the model written by neither the user nor the model: instructions, guidance, or a summary. */
export interface SystemChunk {
  type: "system";
  /** The text. */
  text: string;
  /** On a summary: in requests to a model, it replaces the chunks before this `seq`. Users still see those. */
  keepsFrom?: number;
}

/** Extension: the turn returned to its preferred target. Transient. */
export interface TargetRestoredEvent {
  type: "target-restored";
  /** The target, as `provider/model`. */
  to: string;
  /** What the target is asked for. */
  role: TargetRole;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
}

/** The purpose of a call to a target. */
export type TargetRole =
  /** Answering the user. */
  | "main"
  /** Reviewing tool calls. */
  | "reviewer"
  /** Summarizing a long history. */
  | "compactor"
  /** A value from a newer server. */
  | (string & {});

/** Whether a target can be asked at present. */
export interface TargetState {
  /** The target, as `provider/model`. */
  target: string;
  /** The category of the last relevant failure; absent if it can be asked now. */
  category?: Category;
  /** When it can be asked again, in epoch milliseconds; absent if it can be asked now. */
  until?: number;
}

/** Extension: the turn switched to another target. Transient. */
export interface TargetSwitchedEvent {
  type: "target-switched";
  /** The target that failed, as `provider/model`. */
  from: string;
  /** The new target, as `provider/model`. */
  to: string;
  /** What the target is asked for. */
  role: TargetRole;
  /** The reason, for display. */
  reason: string;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
}

/** Response of `GET /targets`. */
export interface Targets {
  /** All targets, in the order in which they are configured. */
  targets: Array<TargetState>;
}

/** Visible text. */
export interface TextChunk {
  type: "text";
  /** The text. */
  text: string;
}

/** A piece of visible text. */
export interface TextDeltaEvent {
  type: "text-delta";
  /** The piece. */
  delta: string;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
}

/** Plain text. */
export interface TextFormat {
  type: "text";
}

/** The model's reasoning. */
export interface ThinkingChunk {
  type: "thinking";
  /** The text. Empty if the provider hides it and only requires its echo. */
  text: string;
  /** Opaque provider data that must be sent back with it. */
  echo?: Echo;
}

/** Claims of a tool's source about the tool. Not verified. */
export interface ToolAnnotations {
  /** Its changes may destroy data. */
  destructive?: boolean;
  /** A second call with the same arguments has no further effect. */
  idempotent?: boolean;
  /** It interacts with the world outside its source. */
  openWorld?: boolean;
  /** The tool changes nothing. */
  readOnly?: boolean;
  /** A title for display. */
  title?: string;
}

/** A tool call by the model. The history has exactly one `tool-result` for it. */
export interface ToolCallChunk {
  type: "tool-call";
  /** The provider's id of the call, unique within its step. */
  toolCallId: string;
  /** The tool's name. */
  toolName: string;
  /** The arguments: any JSON, or the raw text if they did not parse. */
  input: unknown;
  /** Opaque provider data that must be sent back with it. */
  echo?: Echo;
  /** The step that made the call. */
  stepId?: StepId;
}

/** The model called a tool; the arguments are complete. */
export interface ToolCallEvent {
  type: "tool-call";
  /** The step that made the call. */
  stepId: StepId;
  /** The provider's id of the call. */
  toolCallId: string;
  /** The tool's name. */
  toolName: string;
  /** The arguments: any JSON. */
  input: unknown;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /**
   * True if it was told before: what is left of a step is told again after `step-rewound`. Such a repetition is an
   * extension event.
   */
  again?: boolean;
}

/** Whether the model may or must call tools. */
export type ToolChoice =
  | AutoToolChoice
  | NoneToolChoice
  | RequiredToolChoice
  | ToolToolChoice;

/** A tool offered to new turns. */
export interface ToolInfo {
  /** The name that models use. */
  name: string;
  /** Its description for models. */
  description: string;
  /** JSON Schema of its arguments. */
  inputSchema: unknown;
  /** How calls of the tool are treated. */
  policy: ToolPolicy;
  /** Claims of the source about the tool. */
  annotations?: ToolAnnotations;
}

/** Live output of a running tool. Transient. */
export interface ToolOutputEvent {
  type: "tool-output";
  /** The id of the call. */
  toolCallId: string;
  /** The piece. */
  data: string;
  /** The output stream. */
  stream: OutputStream;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /** The step that made the call. */
  stepId?: StepId;
}

/** How calls of a tool are treated. */
export type ToolPolicy =
  /** They run. */
  | "allow"
  /** A person is asked. */
  | "ask"
  /** A model reviews them. */
  | "review"
  /** They do not run, and the model gets an error. */
  | "deny"
  /** A value from a newer server. */
  | (string & {});

/** The result of a tool call. */
export interface ToolResultChunk {
  type: "tool-result";
  /** The id of the call. */
  toolCallId: string;
  /** The tool's name. */
  toolName: string;
  /** The text that the model receives. */
  content: string;
  /** Whether the tool failed, was interrupted or could not be run. */
  isError: boolean;
  /**
   * Decisions on whether the call may run, in order. A review without a decision may precede a person's answer.
   * Empty if the call needed no permission. Shown to users, never sent to a model.
   */
  decisions?: Array<Decision>;
  /** Images sent to the model with the text, if its API accepts images. The text describes them. */
  images?: Array<Image>;
  /** The questions that the call asked people, in order, without the answers. Shown to users, never sent to a model. */
  questions?: Array<SettledQuestion>;
  /** The step that made the call. */
  stepId?: StepId;
}

/** The result of a tool call. There is exactly one per call. */
export interface ToolResultEvent {
  type: "tool-result";
  /** The step that made the call. */
  stepId: StepId;
  /** The id of the call. */
  toolCallId: string;
  /** The tool's name. */
  toolName: string;
  /** The text that the model receives. */
  content: string;
  /** True if the tool failed, was interrupted or could not be run. */
  isError: boolean;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /** True if it was told before, as with `tool-call`. */
  again?: boolean;
  /** Decisions on whether the call may run, as kept with the result. Empty if the call needed no permission. */
  decisions?: Array<Decision>;
  /** How long the tool ran, in milliseconds. */
  durationMs?: number;
  /** The questions that the call asked people, as kept with the result. */
  questions?: Array<SettledQuestion>;
}

/** A source of tools. */
export interface ToolSourceInfo {
  /** Its name in the configuration. */
  name: string;
  /** Whether its tools can be called. */
  status: ToolSourceStatus;
  /** The tools offered to new turns, by name. While the source is down: those that it last offered. */
  tools: Array<ToolInfo>;
  /** The login that it asks for or has. Absent = it asks for none. */
  login?: ToolSourceLogin;
  /** Why it is down, when it will be restarted, or which of its tools cannot be offered. */
  message?: string;
}

/** The login of a person at a tool source. */
export type ToolSourceLogin =
  /** It asks for one; its tools cannot be called. */
  | "needed"
  /** There is one. */
  | "done"
  /** A value from a newer version. The original is not kept; it serializes as `unknown`. */
  | "unknown"
  /** A value from a newer server. */
  | (string & {});

/** Whether the tools of a source can be called. */
export type ToolSourceStatus =
  /** Not yet: calls wait for it for a limited time. */
  | "starting"
  /** They can. */
  | "up"
  /** They cannot: calls fail, and the model gets an error. */
  | "down"
  /** A value from a newer server. */
  | (string & {});

/** It must call this one. */
export interface ToolToolChoice {
  type: "tool";
  /** Its name. */
  name: string;
}

/** Response of `GET /tools`. */
export interface Tools {
  /** The server's own tools, by name. */
  tools: Array<ToolInfo>;
  /** The sources of further tools, such as MCP servers, in configuration order. */
  sources: Array<ToolSourceInfo>;
}

/** The id of a turn. */
export type TurnId = string;

/** Metrics of one turn. */
export interface TurnMetrics {
  /** The turn. */
  turnId: TurnId;
  /** Token counts, summed over its steps. */
  usage: Usage;
  /** Number of steps (model round trips). */
  steps: number;
  /** How calls that needed a person's approval were treated; absent = they waited for an answer. */
  approvals?: ApprovalMode;
  /** Tool calls handed to the caller; absent if there were none. */
  calls?: Array<CallerCall>;
  /** The category of the failure that ended it, if one did. */
  category?: Category;
  /** Input plus output tokens of its last step. */
  contextSize?: number;
  /** Time from start to seal, in milliseconds; absent while it runs. */
  durationMs?: number;
  /** Failed attempts, oldest first; only the newest 100. Absent if none is known. Not in a `HistoryWindow`. */
  failedAttempts?: Array<FailedAttempt>;
  /** The final report, if the turn had to end with one. In a `HistoryWindow`, without the report itself. */
  finalReport?: FinalReport;
  /**
   * The `seq` of its first chunk. That of a turn without chunks is one more than `lastSeq`, and the turn is listed with the
   * windows on both sides of it.
   */
  firstSeq?: number;
  /** Time from its start to the first token shown, including waits, in milliseconds; absent if nothing was shown. */
  firstTokenMs?: number;
  /** The `seq` of its last chunk. */
  lastSeq?: number;
  /** The model that answered last, as `provider/model`. */
  model?: string;
  /**
   * Number of calls made to providers for its answer, failed ones included; without calls for summaries, and without
   * those that a restart repeated. Absent in turns of older versions.
   */
  providerCalls?: number;
  /** Why it ended. */
  reason?: DoneReason;
  /** Number of retries in all its steps; absent = none. */
  retries?: number;
  /** The turn that it repeated. */
  retryOf?: TurnId;
  /** Sum of the waits before them, in milliseconds; absent = none. */
  waitedMs?: number;
}

/** Response of `GET /conversations/:id/metrics`. */
export interface TurnMetricsList {
  /** Sealed turns, oldest first. */
  turns: Array<TurnMetrics>;
}

/** All chunks are persisted and history is final. The last event of every turn. */
export interface TurnSealedEvent {
  type: "turn-sealed";
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
}

/** The turn begins its first step. */
export interface TurnStartEvent {
  type: "turn-start";
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /** The `seq` of the user message that the turn begins with; absent in a turn that repeats another one. */
  messageSeq?: number;
  /** The turn that this one repeats: same history, no new message, so no `user-message` precedes it. */
  retryOf?: TurnId;
  /**
   * What the turn supersedes, as its first chunk will say (see `StoredChunk`); absent = nothing. A turn that
   * ends before its first chunk supersedes nothing.
   */
  supersedes?: number;
}

/** An addition of a newer server. Skip it. It has further fields. */
export interface UnknownChunk {
  type: UnknownType;
}

/** An addition of a newer server. Skip it. It has further fields. */
export interface UnknownEvent {
  type: UnknownType;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId?: TurnId;
}

/** An addition of a newer server. Skip it. It has further fields. */
export interface UnknownMessage {
  type: UnknownType;
}

/** Why a request did not reach the provider. */
export type Unreached =
  /** No route to the host. */
  | "no-route"
  /** The host name did not resolve. */
  | "no-name"
  /** No connection could be established in time. */
  | "no-connection"
  /** A value from a newer server. */
  | (string & {});

/** Token counts. */
export interface Usage {
  /** Tokens of the request, including those read from a cache. */
  inputTokens: number;
  /** Tokens of the answer, including reasoning. */
  outputTokens: number;
  /** Tokens of the request that were read from a cache. */
  cacheReadTokens?: number;
  /** Tokens of the request that were written to a cache. */
  cacheWriteTokens?: number;
  /** Tokens of the answer that were reasoning, if the provider says so. */
  reasoningTokens?: number;
}

/** Token counts of a step. */
export interface UsageEvent {
  type: "usage";
  /** The counts. */
  usage: Usage;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
  /** The step. */
  stepId?: StepId;
}

/** What a row of a [`UsageReport`] can be for. */
export type UsageKey =
  /** A caller. */
  | "caller"
  /** A model, whatever the credential. */
  | "model"
  /** A target: a model with a credential. */
  | "target"
  /** A day, in UTC. */
  | "day"
  /** A value from a newer server. */
  | (string & {});

/** Response of `GET /usage`. */
export interface UsageReport {
  /** The first day, such as `2026-11-25`, in UTC. */
  from: string;
  /** The last day. */
  to: string;
  /** What the rows are for. */
  by: Array<UsageKey>;
  /** A row for each combination that was used, in order of `by`. */
  rows: Array<UsageRow>;
  /** The sum of all rows. */
  total: UsageRow;
}

/** What was used, and what came of it. */
export interface UsageRow {
  /** Turns and passed-through calls that ended. They count on the day, and for the target, with which they ended. */
  turns: number;
  /** Those of `turns` that met at least one failure and were answered all the same. */
  survived: number;
  /** Those of `turns` that a failure ended. */
  failed: number;
  /** How long `turns` waited, in milliseconds. */
  waitedMs: number;
  /** Requests made to providers. */
  requests: number;
  /** Those of `requests` that were refused, or failed otherwise. */
  refusals: number;
  /** Tokens of requests, including those read from a cache. */
  inputTokens: number;
  /** Tokens of answers, including reasoning. */
  outputTokens: number;
  /** Tokens of requests that were read from a cache. */
  cacheReadTokens: number;
  /** Tokens of requests that were written to a cache. */
  cacheWriteTokens: number;
  /** Tokens of answers that were reasoning, as far as providers say so. */
  reasoningTokens: number;
  /** The caller, in a row for one; absent = the administrator. `(other)`: callers beyond the number that is kept apart. */
  caller?: string;
  /** What the tokens cost by the prices that are configured now; absent if none of their models has a price. */
  cost?: number;
  /** The day, in a row for one. */
  day?: string;
  /** The model, in a row for one. `(other)`: models beyond the number that is kept apart. */
  model?: string;
  /** The target, as `provider/model`, in a row for one. */
  target?: string;
  /** Targets whose tokens are not in `cost`, because their model has no price; at most 20. Absent = none. */
  unpriced?: Array<string>;
}

/** The prompt. It is the first event of a turn, so that other subscribers see it. */
export interface UserMessageEvent {
  type: "user-message";
  /** The prompt's text. */
  text: string;
  /** The conversation. */
  conversationId: ConversationId;
  /** The turn; absent on `status` only. */
  turnId: TurnId;
}

/** The outcome of an approval request. Only `allowed` lets the tool run. */
export type Verdict =
  /** The tool may run. */
  | "allowed"
  /** The tool may not run. */
  | "denied"
  /** No decision: the reviewer failed. */
  | "failed"
  /** No decision in time. */
  | "timed-out"
  /** The turn ended first. */
  | "cancelled"
  /** A value from a newer server. */
  | (string & {});
