//! Phrases of responses and events.

use super::{Rule, rule};
use crate::kind::Kind;

/// A limit over time, not per request.
#[rustfmt::skip]
const PER_TIME: &[&str] = &[
    "per minute",
    "per min",
    "per second",
    "per hour",
    "per day",
    "a minute",
    "throttl*",
    "rate limit*",
    "wait",
    "rpm",
    "tpm",
    "peak",
];

/// Windows too long to wait for within a turn.
#[rustfmt::skip]
pub(crate) const LONG: &[&str] = &[
    "per day",
    "per week",
    "per month",
    "daily",
    "weekly",
    "monthly",
    "per 86400s",
    "per 24 hours", "todays", "for today", "tomorrow",
    "rpd",
    "tpd",
    "每日",
    "今日",
    "每天",
    "每周",
    "每月",
];

/// Windows short enough to wait for within a turn.
pub(crate) const SHORT: &[&str] = &["per minute", "per min", "per second", "per hour", "rpm", "tpm"];

/// The usage windows of a plan.
#[rustfmt::skip]
pub(crate) const PLAN: &[&str] = &[
    "usage limit*", "usage cap", "usage quota", "usage window", "plan limit", "plans limit", "session limit", "hour limit",
    "5h limit", "7d limit", "hourly limit", "primary limit", "secondary limit", "primary window", "secondary window",
    "five hour window", "5 hour window", "day window", "weekly window", "hit your limit", "使用上限", "用量上限",
];

/// A limit was exceeded, not merely mentioned.
#[rustfmt::skip]
pub(crate) const PASSED: &[&str] = &[
    "exceed*",
    "reached",
    "hit",
    "too many",
    "too quickly",
    "too fast",
    "too frequent*",
    "throttl*",
    "slow down",
    "over",
    "wait",
    "retry after",
    "try again in",
    "频繁",
    "过快",
    "过高",
    "超",
];

/// Tokens are counted, not bytes.
const TOKENS: &[&str] = &["token*", "context*", "max tokens"];

/// Something in front of the provider refuses this client.
#[rustfmt::skip]
pub(crate) const BLOCKED: &[&str] = &[
    "attention required", "just a moment", "checking your browser", "security service", "you have been blocked",
    "you were blocked", "cookies to continue", "verify you are human", "security checkpoint", "website is blocked",
    "ddos protection", "web application firewall", "access to this page has been denied", "error code 1005",
    "error code 1006", "error code 1009", "error code 1010", "error code 1020",
];

/// Parts of a request with their own limits.
#[rustfmt::skip]
const PART: &[&str] = &[
    "image*",
    "images",
    "file",
    "files",
    "audio",
    "video",
    "pdf",
    "array",
    "tools",
    "stop",
    "name",
    "description",
    "url",
    "schema",
    "output tokens",
    "completion tokens",
    "user",
];

/// The server crashed, whatever it calls that.
pub(crate) const CRASHED: &[&str] =
    &["has crashed", "have crashed", "crashed with*", "process exited", "runner exited"];

/// A part of the request was checked and refused, whatever the error is called.
#[rustfmt::skip]
const VALIDATION: &[&str] = &[
    "validation error*", "validation failed", "failed validation", "input should be", "invalid value", "invalid schema",
    "invalid parameter*", "invalid params", "invalid argument*", "is a required property", "is not one of",
    "supported values are", "must be one of", "must be a string", "must be a number", "must be an integer",
    "must be an array", "must be a list", "must be an object", "must be a valid", "must be greater than",
    "must be less than", "must be at most", "must be between", "must be non empty", "must have non empty",
    "must not be empty", "must be followed by", "must alternate", "match pattern", "match the pattern",
    "matches the pattern", "expected a string", "expected an object", "expected an array", "expected a list",
    "expected a number", "expected an integer", "found without", "unexpected tool use id", "found in tool result",
    "tool call ids did not have", "is not supported with this model",
];

/// The provider is out of capacity.
#[rustfmt::skip]
const CAPACITY: &[&str] = &[
    "overload*", "high demand", "high load", "heavy load", "peak load", "high traffic", "heavy traffic", "peak traffic",
    "currently loading", "loading model", "model is loading", "being loaded", "unloaded", "starting up", "warming up",
    "not ready", "cold start*", "busy", "is degraded", "degraded function", "degraded state", "no healthy upstream",
    "no available", "no instances", "no workers", "queue is full", "queue full", "maximum pending",
    "reset reason overflow", "temporarily unavailable", "temporarily not available", "service unavailable",
    "too many connections", "繁忙", "负载", "访问量过大", "拥挤",
];

/// In the order in which they are applied: kinds that need a different request first, temporary ones later.
#[rustfmt::skip]
pub(crate) const RULES: &[Rule] = &[
    // The size of the context, the prompt, or the whole request.
    rule(Kind::Overflow, &[
        "context length", "context window", "context size", "context limit", "contextlength", "model length", "model len",
        "prompt length", "input length", "inputs length", "sequence length", "n ctx", "model token limit", "context token*",
    ]).with(&[
        "exceed*", "maximum", "max", "longer than", "larger than", "greater than", "more than", "too long", "too large",
        "too many", "too small", "beyond", "limit of", "not enough", "overflow*", "does not fit", "full", "requested",
        "should be", "must be", "truncate", "超",
    ]).unless(&[PER_TIME, &["maximum value"]]),
    rule(Kind::Overflow, &["context overflow", "out of context", "context exceeded", "exceeded context", "no body"])
        .with(&["context", "400", "413"]),
    rule(Kind::Overflow, &[
        "input token", "input tokens", "prompt token", "prompt tokens", "total tokens", "number of tokens",
        "number of input tokens", "tokens in request", "tokens in the request", "inputs tokens", "text tokens",
        "token count", "token limit", "max tokens allowed", "inputs must have less than",
    ]).with(&["exceed*", "more than", "must be", "must have", "maximum", "too many", "larger than", "greater than", "over", "超"])
        .unless(&[PER_TIME, &["output tokens", "completion tokens", "quota"]]),
    rule(Kind::Overflow, &[
        "prompt", "prompts", "input", "inputs", "conversation", "messages", "message history", "chat history",
    ]).with(&[
        "is too long", "are too long", "too long", "too large for", "is too large", "longer than the", "exceeds the max*",
        "exceeds max*", "exceeds the limit", "exceeds the context", "maximum prompt length",
    ]).unless(&[PER_TIME, PART]),
    rule(Kind::Overflow, &["too many tokens", "too many total tokens"]).unless(&[PER_TIME]),
    rule(Kind::Overflow, &[
        "reduce the length of the", "reduce the length of your", "reduce your prompt", "reduce your message size",
        "reduce your input", "reduce the size of your", "reduce the size of the", "shorten your", "shorten the prompt",
        "shorter input", "tokens must be reduced",
    ]).unless(&[&["rate limit"], PART]),
    // No room is left for an answer.
    rule(Kind::Overflow, &["must be at least 1 got -*", "must be at least 1 not -*", "must be positive got -*"]),
    rule(Kind::Overflow, &["string too long", "expected maxlength"]).unless(&[&["user", "name", "description"]]),
    rule(Kind::Overflow, &["long context", "1m context"])
        .with(&["extra usage", "required", "requires", "not available", "not yet available", "tier", "credits", "subscription"]),
    rule(Kind::Size, &[
        "request entity too large", "request too large", "payload too large", "content too large", "entity too large",
        "body too large", "body is too large", "body exceeds", "payload size", "request size", "request exceeds the maximum",
    ]).unless(&[PER_TIME, TOKENS]),
    rule(Kind::Size, &["image*", "file", "files", "pdf", "document*", "attachment*", "audio", "video", "body"])
        .with(&["mb maximum", "mb limit", "max 25mb", "bytes maximum", "mib", "too large", "size limit", "file size", "image size"])
        .unless(&[PER_TIME, TOKENS]),
    rule(Kind::Overflow, &["最大长度", "上下文", "输入过长", "输入长度", "超长", "输入超"]).with(&["超", "过长", "限制", "最大"]),
    // Billing.
    rule(Kind::Wall, &[
        "insufficient quota", "payment required", "payment method", "credit card", "billing hard limit", "billing limit",
        "spend limit", "spending limit", "spending cap", "budget has been exceeded", "budget exceeded", "over budget",
        "exceeded your budget", "account is not active", "in arrears", "overdue", "on the free tier", "free tier only",
        "paid plan", "paid account", "requires a subscription", "need a subscription", "subscription required",
        "subscription has expired", "plan has expired", "plan does not include", "not included in your", "on your plan",
        "key limit", "limit 0", "extra usage", "out of usage", "余额", "欠费", "资源包", "充值", "套餐已到期", "额度不足", "额度已",
    ]).unless(&[SHORT]),
    rule(Kind::Wall, &["billing", "invoice*", "payment"])
        .with(&["enable billing", "to be enabled", "outstanding", "unpaid", "past due", "failed payment"])
        .unless(&[SHORT]),
    rule(Kind::Wall, &["your plan", "current plan", "token plan", "coding plan", "this plan"]).with(&["not support", "does not support", "doesnt support", "not supported"]),
    rule(Kind::Wall, &["credit", "credits", "balance", "funds"]).with(&[
        "insufficient", "not enough", "out of", "no", "any", "run out", "ran out", "depleted", "exhausted", "too low", "low",
        "requires", "require", "purchase", "buy", "add", "more", "zero", "negative", "top up", "expired", "not have",
    ]).unless(&[SHORT, &["rate limit*"]]),
    rule(Kind::Window, PLAN),
    rule(Kind::Window, &["day limit", "week limit", "month limit"]).unless(&[LONG]),
    rule(Kind::Quota, &[
        "current quota", "quota reached", "quota will reset", "exhausted your capacity", "used up", "out of call volume quota",
        "request allowance", "free tier limit", "free limit", "trial limit",
    ]),
    rule(Kind::Quota, &["quota", "allowance", "allocation"])
        .with(&["exhausted", "used up", "ran out", "run out", "depleted"])
        .unless(&[&["check quota", "resource exhausted", "resource has been exhausted"], SHORT]),
    rule(Kind::Quota, LONG).with(&[
        "limit*", "quota*", "cap", "allowance", "allocation", "usage", "exceed*", "reached", "exhausted", "used up", "calls",
        "requests", "tokens", "too many", "free", "上限", "限",
    ]).unless(&[SHORT]),
    rule(Kind::RateLimited, &["rate limit exceeded", "rate limit reached", "rate limited", "too many requests"])
        .unless(&[CAPACITY]),
    rule(Kind::Policy, &[
        "content policy", "content policies", "content filter*", "content management policy", "content safety",
        "safety system", "safety reasons", "safety settings", "safety policy", "safety filter*", "usage policy",
        "usage policies", "usage guidelines", "acceptable use", "suspicious activity", "cybersecurity", "terms of service", "flagged", "requires moderation", "prohibited content",
        "inappropriate content", "harmful content", "sensitive content", "unsafe content", "content exists risk",
        "high risk", "policy violation", "violates our", "violate our", "violating our", "guardrail intervened",
        "responsible ai", "敏感", "违规", "不安全",
    ]).unless(&[&["data policy", "guardrail restrictions"]]),
    rule(Kind::Policy, &["blocked", "rejected", "refused", "filtered", "violat*"])
        .with(&["content", "safety", "policy", "policies", "moderation", "harmful", "your prompt", "the prompt", "guardrail*"])
        .unless(&[&["data policy", "guardrail restrictions", "privacy"]]),
    rule(Kind::Auth, &["api key", "x api key", "access token", "oauth token", "security token", "bearer", "credential*", "authentication"]).with(&[
        "invalid", "incorrect", "not valid", "expired", "is missing", "missing", "no api key", "no auth", "required", "wrong",
        "bad", "revoked", "leaked", "disabled", "fail*", "not found", "cookie auth", "does not match",
    ]).unless(&[&["permission*"]]),
    rule(Kind::Auth, &[
        "token has expired", "token is expired", "token expired", "expired token", "invalid token", "token is invalid",
        "token seems invalid", "not authenticated", "unauthenticated", "unauthorized", "user not found", "log in again", "sign in again",
        "login again", "please log in", "please login", "login fail*", "鉴权失败", "令牌", "身份验证",
    ]),
    rule(Kind::NotFound, &["model", "deployment"])
        .with(&["does not exist or", "not exist or", "not found or", "or permission denied", "or no permission"]),
    rule(Kind::Permission, BLOCKED),
    rule(Kind::Permission, &[
        "permission*", "access denied", "have access to", "has access to", "no access", "access to this model",
        "not allowed to", "not authorized to", "not entitled", "forbidden", "requires explicit opt in", "opt in",
        "guardrail restrictions", "data policy", "privacy settings", "country region or territory",
        "location is not supported", "region is not supported", "not available in your", "not supported in your",
        "has not been used in project", "terms must be accepted", "verification required", "must be verified", "only authorized for", "无权", "权限",
    ]).unless(&[&["thinking"]]),
    rule(Kind::Permission, &["account", "organization", "project"]).with(&["deactivated", "suspended", "restricted", "disabled"]),
    // The provider's capacity.
    rule(Kind::Overloaded, CAPACITY),
    rule(Kind::Overloaded, &["capacity"]).with(&[
        "exceed*", "no", "insufficient", "limited", "limit*", "reached", "at", "over", "unavailable", "constraint*", "lack",
        "not enough", "available",
    ]),
    rule(Kind::RateLimited, &[
        "rate limit*", "ratelimit*", "rate limiting", "rate exceeded", "request rate", "too many requests",
        "too many concurrent", "too many parallel", "concurrent request*", "concurrency", "throttl*", "slow down",
        "quota exceeded", "quota limit", "exceeded your quota", "exceeded quota", "resource has been exhausted",
        "resource exhausted", "resourceexhausted", "request limit", "requests limit", "too frequent*", "too quickly",
        "too rapidly", "too fast", "excessive load", "wait before trying again", "error code 1015", "频繁", "频率", "速率", "限流", "并发",
        "请求过多",
    ]),
    rule(Kind::RateLimited, SHORT).with(&["limit*", "exceed*", "reached", "too many", "quota"]),
    rule(Kind::NotFound, &["model", "models", "deployment", "engine", "endpoint", "endpoints"]).with(&[
        "does not exist", "doesnt exist", "do not exist", "not exist", "not found", "no such", "unknown model",
        "not a valid model", "model is not supported", "invalid model", "model identifier is invalid", "model id is invalid", "is not available",
        "no longer available", "no longer supported", "decommissioned", "been deprecated", "was deprecated",
        "deprecating state", "model deprecat*", "been retired", "was retired", "no endpoints found", "模型不存在",
    ]).unless(&[&["tool", "try again", "not available for this model"]]),
    rule(Kind::Timeout, &[
        "timed out", "time out", "timeout", "timedout", "deadline exceeded", "deadline expired", "deadline has elapsed",
        "stalled", "took too long", "went idle", "no bytes", "no data received", "超时",
    ]),
    rule(Kind::Response, &[
        "closed before", "ended before", "ended without", "ended unexpectedly", "without a terminal", "empty response",
        "no response", "no output", "incomplete response", "unexpected end", "unexpected token", "invalid json", "is not valid json", "malformed response",
        "could not parse", "failed to parse", "failed to call a function", "failed to generate json",
    ]),
    rule(Kind::Network, &[
        "connection reset", "connection refused", "connection closed", "connection error", "connection lost",
        "connection aborted", "connection failed", "econnreset", "econnrefused", "socket hang up", "other side closed",
        "broken pipe", "fetch failed", "failed to fetch", "network error", "network connection", "disconnected",
        "terminated", "websocket*", "name resolution", "host unreachable", "did not get a response",
    ]),
    rule(Kind::Request, &[
        "unknown parameter", "unrecognized request", "unsupported parameter", "unsupported value", "missing required",
        "required parameter", "required field", "field required", "extra inputs",
        "requires more system memory", "requires jinja flag", "unsupported param", "cannot use tools with stream", "rendering prompt", "chat template", "insufficient system resources",
    ]),
    rule(Kind::Request, VALIDATION).unless(&[&[
        "type validation", "response validation", "output validation", "the response", "server response", "upstream sent",
    ]]),
    rule(Kind::Server, &[
        "internal server error", "internal error", "server error", "server had an error", "bad gateway", "crashed", "process exited",
        "upstream error", "upstream connect error", "something went wrong", "unexpected error", "unknown error",
        "provider returned error", "finish reason error", "error occurred", "内部错误", "系统错误", "服务异常",
    ]),
    rule(Kind::Request, &[
        "is not supported", "does not support", "not permitted", "invalid request", "bad request", "is not valid",
        "must be followed by", "must be one of",
    ]).unless(&[&["upstream", "response", "server", "gateway", "temporarily"]]),
];
