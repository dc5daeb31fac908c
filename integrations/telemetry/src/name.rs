//! Attribute names: OpenTelemetry's GenAI and HTTP conventions, and custom names with the prefix `everturn.`.
//!
//! The GenAI conventions are still in development, and the constants in OpenTelemetry's crate are deprecated. Renamed
//! attributes are updated here.

pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
pub(crate) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(crate) const REQUEST_STREAM: &str = "gen_ai.request.stream";
pub(crate) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(crate) const FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(crate) const CACHE_CREATION_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(crate) const TOOL_CALL: &str = "gen_ai.tool.call.id";
pub(crate) const TOOL_TYPE: &str = "gen_ai.tool.type";

// The content of messages, exported only if asked for.
pub(crate) const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
pub(crate) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(crate) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(crate) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const TOOL_RESULT: &str = "gen_ai.tool.call.result";

pub(crate) const ERROR_TYPE: &str = "error.type";
pub(crate) const METHOD: &str = "http.request.method";
pub(crate) const RESEND_COUNT: &str = "http.request.resend_count";
pub(crate) const STATUS_CODE: &str = "http.response.status_code";
pub(crate) const SERVER_ADDRESS: &str = "server.address";
pub(crate) const SERVER_PORT: &str = "server.port";
pub(crate) const URL: &str = "url.full";

/// A wait before a retry, as an event of the step.
pub(crate) const RETRY_EVENT: &str = "everturn.retry";
pub(crate) const RETRY_ATTEMPT: &str = "everturn.retry.attempt";
pub(crate) const RETRY_CATEGORY: &str = "everturn.retry.category";
pub(crate) const RETRY_DELAY: &str = "everturn.retry.delay_ms";
pub(crate) const RETRY_FAILED_TARGET: &str = "everturn.retry.failed_target";
pub(crate) const RETRY_SHARED: &str = "everturn.retry.shared";
pub(crate) const RETRY_TARGET: &str = "everturn.retry.target";
pub(crate) const TARGET: &str = "everturn.target";
pub(crate) const TURN: &str = "everturn.turn.id";
pub(crate) const TURN_RETRIES: &str = "everturn.turn.retries";
pub(crate) const TURN_STEPS: &str = "everturn.turn.steps";
pub(crate) const TURN_WAITED: &str = "everturn.turn.waited_ms";
