//! The table of provider error codes.
//!
//! Names are compared without case or punctuation, and match with or without a final `Error` or `Exception`. One row
//! thus covers `overloaded_error`, `OverloadedException` and `OVERLOADED`.

use crate::code::Rank::{self, Broad, Exact, Vague};
use crate::kind::Kind;

/// (weight, meaning, names). Names with the same meaning are grouped by who uses them.
pub(crate) const CODES: &[(Rank, Kind, &[&str])] = &[
    (Exact, Kind::Overflow, OVERFLOW),
    (Exact, Kind::Wall, WALL),
    (Broad, Kind::Wall, &["credit_limit"]),
    (Exact, Kind::Window, WINDOW),
    (Exact, Kind::Quota, QUOTA),
    (Exact, Kind::Size, &["image_too_large", "image_file_too_large", "file_too_large"]),
    // The text may say that tokens are meant.
    (Broad, Kind::Size, SIZE),
    (Exact, Kind::Policy, POLICY),
    (Exact, Kind::Auth, AUTH),
    (Exact, Kind::Permission, REGION),
    (Broad, Kind::Permission, PERMISSION),
    (Exact, Kind::Overloaded, OVERLOADED),
    (Broad, Kind::Overloaded, UNAVAILABLE),
    (Broad, Kind::RateLimited, RATE_LIMITED),
    (Broad, Kind::NotFound, NOT_FOUND),
    (Exact, Kind::Timeout, TIMEOUT),
    (Exact, Kind::Response, RESPONSE),
    (Broad, Kind::Response, INCOMPLETE),
    (Broad, Kind::Network, NETWORK),
    (Exact, Kind::Request, REQUEST),
    (Exact, Kind::Cancelled, CANCELLED),
    (Vague, Kind::Request, BAD_REQUEST),
    (Vague, Kind::Server, SERVER),
];

#[rustfmt::skip]
const OVERFLOW: &[&str] = &[
    "context_length_exceeded", "context_window_exceeded", "model_context_window_exceeded",
    "model_max_context_length_exceeded", "exceed_context_size", "context_too_long", "context_overflow",
    "prompt_too_long", "input_too_long", "max_input_tokens_exceeded", "tokens_limit_reached",
    // Zhipu, MiniMax
    "1261", "base_resp.1039",
];

const SIZE: &[&str] =
    &["request_too_large", "request_entity_too_large", "payload_too_large", "content_too_large"];

#[rustfmt::skip]
const WALL: &[&str] = &[
    // OpenAI and compatible APIs
    "insufficient_quota", "billing", "billing_not_active", "billing_hard_limit_reached",
    "organization_spend_limit_exceeded", "organization_usage_limit_exceeded", "project_spend_limit_exceeded",
    "project_usage_limit_exceeded", "usage_not_included", "payment_required", "insufficient_balance",
    "insufficient_credits", "insufficient_funds", "credits", "credits_exhausted", "credit_balance_too_low",
    "credit_limit_reached", "out_of_credits", "budget_exceeded", "exceeded_budget",
    "credit_balance_exhausted", "key_limit_exceeded",
    // Moonshot
    "exceeded_current_quota",
    // Alibaba, Volcengine
    "arrearage", "account_overdue", "allocation_quota.free_tier_only",
    // one-api and new-api
    "insufficient_user_quota", "pre_consume_token_quota_failed",
    // Zhipu, MiniMax
    "1113", "1309", "base_resp.1008",
];

#[rustfmt::skip]
const WINDOW: &[&str] = &[
    "usage_limit", "usage_limit_reached", "usage_limit_exceeded", "go_usage_limit", "free_usage_limit",
    "plan_limit_reached",
    // Zhipu: windows of hours, a day, a week or a month; MiniMax
    "1308", "1304", "1310", "base_resp.2056",
];

#[rustfmt::skip]
const QUOTA: &[&str] = &[
    "quota_exceeded", "quota_exhausted", "daily_limit_exceeded", "daily_quota_exceeded", "monthly_limit_exceeded",
    "free_tier_limit_exceeded", "service_quota_exceeded",
    // Volcengine: a limit set by the user
    "set_limit_exceeded",
    // iFlytek
    "11201",
];

#[rustfmt::skip]
const POLICY: &[&str] = &[
    "content_policy_violation", "content_filter", "content_filtered", "content_blocked", "content_moderation",
    "moderation_blocked", "policy_violation", "responsible_ai_policy_violation", "refusal", "guardrail_intervened",
    // Google, as finish and block reasons
    "safety", "prohibited_content", "blocklist", "recitation", "spii", "image_safety", "image_prohibited_content",
    "jailbreak", "model_armor",
    // Alibaba, Volcengine, Zhipu
    "data_inspection_failed", "input_text_sensitive_content_detected", "output_text_sensitive_content_detected",
    "sensitive_content_detected", "sensitive", "1301",
    // MiniMax
    "base_resp.1026", "base_resp.1027",
];

#[rustfmt::skip]
const AUTH: &[&str] = &[
    "authentication", "authentication_failed", "invalid_authentication", "unauthenticated", "unauthorized",
    "invalid_api_key", "incorrect_api_key", "missing_api_key", "no_api_key", "api_key_invalid", "api_key_expired",
    "expired_api_key", "invalid_token", "token_expired", "expired_token", "access_token_expired",
    "access_token_type_unsupported", "credentials_missing", "invalid_credentials", "invalid_grant", "login_required",
    "no_organization", "invalid_organization", "mismatched_organization", "account_deactivated",
    "the request does not have valid authentication credentials",
    // AWS
    "unrecognized_client", "missing_authentication_token", "invalid_signature", "incomplete_signature",
    "signature_does_not_match", "invalid_client_token_id",
    // MiniMax
    "base_resp.1004", "base_resp.2049",
];

#[rustfmt::skip]
const REGION: &[&str] = &[
    "unsupported_country_region_territory", "region", "region_not_supported", "model_terms_required",
    "service_disabled", "model_access_denied",
];

#[rustfmt::skip]
const PERMISSION: &[&str] = &[
    "permission", "permission_denied", "access_denied", "forbidden", "request_forbidden", "not_authorized",
    "insufficient_permissions", "missing_scope",
    "the caller does not have permission to execute the specified operation",
    // Zhipu
    "1220",
];

#[rustfmt::skip]
const OVERLOADED: &[&str] = &[
    "overloaded", "server_overloaded", "server_is_overloaded", "engine_overloaded", "model_overloaded",
    "service_overloaded", "model_capacity_exhausted", "capacity_exceeded", "flex_capacity_exceeded",
    "service_tier_capacity_exceeded", "insufficient_capacity", "no_capacity", "no_capacity_available", "server_busy",
    "model_not_ready", "model_loading", "insufficient_system_resource",
    // Mistral, Zhipu
    "3505", "1312",
    "slow_down",
];

#[rustfmt::skip]
const UNAVAILABLE: &[&str] = &[
    "unavailable", "service_unavailable", "temporarily_unavailable", "model_unavailable", "backend_unavailable",
    "the service is currently unavailable",
    // Zhipu, for its own load and for the client's
    "1305",
];

#[rustfmt::skip]
const RATE_LIMITED: &[&str] = &[
    "rate_limit", "rate_limited", "rate_limit_exceeded", "rate_limit_reached", "user_rate_limit_exceeded",
    "too_many_requests", "requests_limit_exceeded", "request_limit_exceeded", "tokens_limit_exceeded",
    "concurrency_limit_exceeded", "throttled", "throttling", "throttling_error", "request_throttled",
    "resource_exhausted", "some resource has been exhausted",
    // OpenAI names the bucket in `type`.
    "tokens", "requests",
    // AWS
    "provisioned_throughput_exceeded", "too_many_requests_exception",
    // Cerebras
    "token_quota_exceeded", "request_quota_exceeded", "too_many_tokens",
    // Alibaba
    "throttling.rate_quota", "throttling.burst_rate", "throttling.allocation_quota", "limit_burst_rate",
    "limit_requests",
    // Mistral, Zhipu
    "1300", "1302", "1303",
    // MiniMax
    "base_resp.1002", "base_resp.1041", "base_resp.2045",
    // iFlytek
    "11202", "11203",
];

#[rustfmt::skip]
const NOT_FOUND: &[&str] = &[
    "not_found", "model_not_found", "model_not_exist", "model_decommissioned", "model_deprecated", "model_not_supported", "model_not_available", "unknown_model",
    "no_such_model", "deployment_not_found", "endpoint_not_found", "resource_not_found", "specified_api_not_found",
    "unknown_url", "some requested entity was not found",
    // Zhipu
    "1211",
];

#[rustfmt::skip]
const TIMEOUT: &[&str] = &[
    "timeout", "request_timeout", "gateway_timeout", "upstream_timeout", "model_timeout", "stream_timeout",
    "deadline_exceeded", "idle_timeout", "api_timeout", "api_connection_timeout",
    // MiniMax
    "base_resp.1001",
];

#[rustfmt::skip]
const RESPONSE: &[&str] = &[
    "malformed_function_call", "malformed_response", "unexpected_tool_call", "too_many_tool_calls",
    "missing_thought_signature", "tool_use_failed", "json_validate_failed", "empty_response", "invalid_response",
    "incomplete_generation",
];

const INCOMPLETE: &[&str] =
    &["stream_incomplete", "incomplete_stream", "stream_error", "response.incomplete"];

const NETWORK: &[&str] =
    &["connection", "api_connection", "network", "connection_reset", "upstream_connection"];

#[rustfmt::skip]
const REQUEST: &[&str] = &[
    "unknown_parameter", "invalid_value", "invalid_type", "invalid_json", "invalid_encrypted_content",
    "invalid_function_parameters", "invalid_image", "invalid_image_format", "invalid_image_url", "image_parse",
    "unsupported_parameter", "unsupported_value", "unsupported_model", "missing_required_parameter",
    "string_above_max_length", "string_below_min_length", "array_above_max_length", "array_below_min_length",
    "integer_above_max_value", "integer_below_min_value", "decimal_above_max_value", "decimal_below_min_value",
    "empty_array",
    // OpenAI's Responses API, about images
    "invalid_base64_image", "invalid_image_mode", "image_too_small",
    "image_file_not_found", "empty_image_file", "unsupported_image_media_type", "failed_to_download_image",
    // pydantic
    "extra_forbidden", "json_invalid", "string_type", "value_error",
];

const CANCELLED: &[&str] =
    &["cancelled", "canceled", "client_closed_request", "response.cancelled", "request_cancelled", "abort"];

#[rustfmt::skip]
const BAD_REQUEST: &[&str] = &[
    "invalid_request", "invalid_request_prompt", "invalid_prompt", "invalid_argument", "invalid_parameter",
    "bad_request", "badrequest", "validation", "unprocessable_entity", "failed_precondition", "out_of_range",
    "client specified an invalid argument",
    // Zhipu, MiniMax
    "1210", "1214", "base_resp.2013",
];

#[rustfmt::skip]
const SERVER: &[&str] = &[
    "server", "server_error", "internal", "internal_error", "internal_server", "internal_failure", "api", "api_error",
    "backend", "provider", "upstream", "upstream_error", "model_error", "model_stream", "model_stream_error",
    "generation", "aborted", "data_loss", "bad_gateway",
    // Zhipu, MiniMax
    "1230", "1234", "base_resp.1000", "base_resp.1013", "base_resp.1024", "base_resp.1033",
];

#[cfg(test)]
mod tests {
    use super::CODES;
    use crate::code::meaning;

    #[test]
    fn every_name_has_one_meaning() {
        for (rank, kind, names) in CODES {
            for name in *names {
                assert_eq!(meaning(name), Some((*rank, *kind)), "{name}");
                let loud = name.to_uppercase().replace('_', "-");
                assert_eq!(meaning(&loud), Some((*rank, *kind)), "{loud}");
            }
        }
    }
}
