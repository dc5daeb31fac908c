//! Words that say what went wrong, as data. Asked after the codes.
//!
//! A phrase is whole words in lower case, without punctuation; a final `*` lets its last word go on.

use crate::kind::Kind;
use crate::prose::Prose;

/// Means `kind` where some phrase of `any` occurs, and one of `with` (unless that is empty), and none of `unless`.
pub(crate) struct Rule {
    kind: Kind,
    any: &'static [&'static str],
    with: &'static [&'static str],
    unless: &'static [&'static str],
}

impl Rule {
    pub(crate) fn matches(&self, prose: &Prose) -> bool {
        prose.has_any(self.any)
            && (self.with.is_empty() || prose.has_any(self.with))
            && !prose.has_any(self.unless)
    }
}

/// What the words say, among the kinds that `allowed` lets through. The first rule wins.
pub(crate) fn kind(prose: &Prose, rules: &[Rule], allowed: impl Fn(Kind) -> bool) -> Option<Kind> {
    rules.iter().filter(|rule| allowed(rule.kind)).find(|rule| rule.matches(prose)).map(|rule| rule.kind)
}

const fn rule(kind: Kind, any: &'static [&'static str]) -> Rule {
    Rule { kind, any, with: &[], unless: &[] }
}

impl Rule {
    const fn with(mut self, with: &'static [&'static str]) -> Self {
        self.with = with;
        self
    }

    const fn unless(mut self, unless: &'static [&'static str]) -> Self {
        self.unless = unless;
        self
    }
}

/// A limit that is counted over time, not per request.
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
];

/// For bodies of responses and events.
#[rustfmt::skip]
pub(crate) const BODY: &[Rule] = &[
    // Overflow: the size of the context, of the prompt, of the whole request.
    rule(Kind::Overflow, &["context length", "context window", "context size", "context limit", "contextlength"]).with(&[
        "exceed*", "maximum", "max", "longer than", "larger than", "greater than", "more than", "too long", "too large",
        "too many", "too small", "beyond", "limit of", "not enough", "overflow*", "does not fit", "full", "requested",
    ]),
    rule(Kind::Overflow, &["not enough context", "context overflow", "out of context", "context exceeded"]),
    rule(Kind::Overflow, &["prompt", "input", "conversation", "messages", "message history"]).with(&[
        "prompt is too long", "prompt too long", "prompt is too large", "prompt too large", "maximum prompt length",
        "input is too long", "input too long", "input is too large", "inputs are too long", "input length",
        "conversation is too long", "messages are too long", "messages too long", "messages is too long",
        "prompt exceeds", "input exceeds", "messages exceed",
    ]).unless(&["image", "file", "audio", "rate limit*"]),
    rule(Kind::Overflow, &[
        "too many input tokens", "input tokens exceed*", "input token count", "prompt token count", "prompt tokens exceed*",
        "maximum number of tokens", "max tokens allowed", "maximum number of input tokens", "inputs tokens",
        "requested token count", "tokens in request", "total tokens", "token limit",
    ]).with(&["exceed*", "more than", "must be", "maximum", "too many", "larger than", "greater than", "over"])
        .unless(PER_TIME),
    rule(Kind::Overflow, &["too many tokens", "too many total tokens"]).unless(PER_TIME),
    rule(Kind::Overflow, &[
        "reduce the length of the messages", "reduce the length of the prompt", "reduce the length of your",
        "reduce your prompt", "reduce your message size", "reduce the size of your", "shorten your prompt",
        "shorten the prompt", "tokens must be reduced",
    ]).unless(&["rate limit"]),
    // No room is left for an answer.
    rule(Kind::Overflow, &["must be at least 1 got -*", "must be at least 1 not -*", "must be positive got -*"]),
    rule(Kind::Overflow, &["string too long", "expected maxlength", "range of input length"]),
    rule(Kind::Overflow, &["long context", "1m context"])
        .with(&["extra usage", "required for", "requires", "not available", "not yet available", "tier", "credits"]),
    rule(Kind::Overflow, &[
        "request entity too large", "request too large", "payload too large", "content too large", "body too large",
        "body is too large", "body exceeds", "payload size", "request size exceeds", "request exceeds the maximum size",
    ]).unless(&["image"]),
    rule(Kind::Overflow, &["超过最大长度", "超出最大长度", "超过最大", "上下文长度", "上下文超", "输入过长", "输入长度"]),
    // Walls of money.
    rule(Kind::Wall, &[
        "insufficient quota", "insufficient credit*", "insufficient balance", "insufficient fund*",
        "insufficient account balance", "not enough credit*", "out of credit*", "no credit*", "any credit*",
        "more credits", "available credits", "zero credits", "credits depleted", "credits exhausted", "credit balance",
        "credit limit", "balance is too low", "balance too low", "balance is insufficient", "low balance",
        "purchase credits", "buy credits", "payment required", "payment method", "billing hard limit", "billing limit",
        "spend limit", "spending limit", "spending cap", "budget has been exceeded", "budget exceeded", "over budget",
        "account is not active", "account is in arrears", "overdue", "on the free tier", "free tier only",
        "requires a paid plan", "requires a subscription", "need a subscription", "subscription required",
        "subscription has expired", "plan has expired", "limit 0", "余额", "欠费", "资源包",
    ]),
    // Windows of a plan.
    rule(Kind::Window, &[
        "usage limit*", "usage cap", "usage quota", "plan limit", "session limit", "hour limit", "5h limit",
        "exceeded your current quota", "current quota", "per day", "per week", "per month", "per 24 hours",
        "daily limit", "daily quota", "daily request*", "daily token*", "daily free", "weekly limit", "weekly quota",
        "weekly usage", "monthly limit", "monthly quota", "monthly usage", "monthly allowance", "monthly included",
        "todays limit", "rpd", "tpd", "quota has been exhausted", "quota is exhausted", "quota exhausted",
        "quota will reset", "exhausted your capacity", "exhausted your quota", "used up", "out of call volume quota",
        "使用上限", "用量上限", "每日", "今日", "每周", "每月",
    ]),
    rule(Kind::Policy, &[
        "content policy", "content policies", "content filter*", "content management policy", "content safety",
        "safety system", "safety reasons", "safety settings", "safety policy", "safety filter*", "usage policy",
        "usage policies", "acceptable use", "terms of service", "flagged", "requires moderation", "prohibited content",
        "inappropriate content", "harmful content", "sensitive content", "unsafe content", "content exists risk",
        "high risk", "policy violation", "violates our", "violate our", "violating our", "guardrail intervened",
        "responsible ai", "敏感", "违规", "不安全",
    ]).unless(&["data policy", "guardrail restrictions"]),
    rule(Kind::Auth, &[
        "invalid api key", "incorrect api key", "invalid x api key", "api key not valid", "api key is invalid",
        "api key expired", "api key has expired", "api key not found", "api key is missing", "api key required",
        "no api key", "missing api key", "wrong api key", "bad api key", "api key was reported", "valid api key",
        "invalid token", "invalid access token", "invalid bearer", "missing bearer", "token has expired",
        "token is expired", "token expired", "expired token", "security token", "invalid credential*",
        "no auth credentials", "no cookie auth", "authentication fail*", "authentication required",
        "authentication credentials", "not authenticated", "unauthenticated", "unauthorized", "invalid signature",
        "user not found", "log in again", "sign in again", "login again", "please log in", "please login", "鉴权失败",
        "令牌",
    ]),
    rule(Kind::Permission, &[
        "permission*", "access denied", "have access to", "has access to", "no access", "access to this model",
        "not allowed to", "not authorized to", "not entitled", "forbidden", "requires explicit opt in", "opt in",
        "guardrail restrictions", "data policy", "privacy settings", "country region or territory",
        "location is not supported", "region is not supported", "not available in your", "not supported in your",
        "attention required", "just a moment", "checking your browser", "security service", "you have been blocked",
        "has not been used in project", "terms must be accepted", "无权",
    ]),
    // The provider's capacity.
    rule(Kind::Overloaded, &[
        "overload*", "over capacity", "at capacity", "no capacity", "capacity exceeded", "capacity limit*",
        "insufficient capacity", "capacity constraint*", "capacity available", "lack of capacity", "high demand",
        "high load", "heavy load", "high traffic", "heavy traffic", "peak traffic", "currently loading",
        "loading model", "model is loading", "not ready", "cold start*", "server busy", "server is busy",
        "servers are busy", "system busy", "too busy", "busy", "no healthy upstream", "no available", "no instances",
        "no workers", "queue is full", "queue full", "maximum pending", "reset reason overflow",
        "temporarily unavailable", "service unavailable", "too many connections", "server capacity", "繁忙", "负载",
        "访问量过大", "拥挤",
    ]).unless(&["no available credits"]),
    rule(Kind::RateLimited, &[
        "rate limit*", "ratelimit*", "rate limiting", "rate exceeded", "request rate", "too many requests",
        "too many concurrent", "too many parallel", "concurrent request*", "concurrency", "throttl*", "slow down",
        "per minute", "per second", "quota exceeded", "exceeded your quota", "exceeded quota", "resource has been exhausted",
        "resource exhausted", "request limit", "requests limit", "rpm", "tpm", "too frequent*", "too quickly",
        "too fast", "excessive load", "wait before trying again", "频繁", "频率", "速率", "限流", "并发", "请求过多",
    ]),
    rule(Kind::NotFound, &["model", "deployment", "engine", "endpoint", "endpoints"]).with(&[
        "does not exist", "doesnt exist", "do not exist", "not found", "no such", "unknown model", "not a valid model",
        "not a valid model id", "invalid model", "is not available", "no longer available", "decommissioned",
        "has been deprecated", "was deprecated", "no endpoints found", "模型不存在",
    ]).unless(&["tool", "try again"]),
    rule(Kind::Timeout, &[
        "timed out", "time out", "timeout", "timedout", "deadline exceeded", "deadline expired", "deadline has elapsed",
        "stalled", "took too long", "超时",
    ]),
    rule(Kind::Response, &[
        "closed before", "ended before", "ended without", "ended unexpectedly", "without a terminal", "empty response",
        "no response", "no output", "incomplete response", "unexpected end", "invalid json", "malformed response",
        "could not parse", "failed to parse", "failed to call a function", "failed to generate json",
    ]),
    rule(Kind::Network, &[
        "connection reset", "connection refused", "connection closed", "connection error", "connection lost",
        "connection aborted", "econnreset", "econnrefused", "socket hang up", "broken pipe", "fetch failed",
        "network error", "network connection", "disconnected", "name resolution", "host unreachable",
    ]),
    rule(Kind::Request, &[
        "unknown parameter", "unrecognized", "unsupported parameter", "unsupported value", "invalid value",
        "missing required", "required parameter", "required field", "field required", "extra inputs", "not permitted",
        "is not supported", "not supported with", "validation error", "invalid request", "bad request", "malformed",
        "must be followed by", "must be one of",
    ]),
    rule(Kind::Server, &[
        "internal server error", "internal error", "server error", "server had an error", "bad gateway", "crashed",
        "upstream error", "upstream connect error", "something went wrong", "unexpected error", "unknown error",
        "provider returned error", "an error occurred", "内部错误", "系统错误", "服务异常",
    ]),
];

/// For the display chains of transport errors.
#[rustfmt::skip]
pub(crate) const TRANSPORT: &[Rule] = &[
    rule(Kind::Auth, &["header value", "proxy authentication", "proxy authorization", "407"]),
    rule(Kind::Untrusted, &[
        "certificate", "unknownissuer", "self signed", "hostname mismatch", "unknown ca", "certificaterequired",
        "cert has expired", "unable to verify",
    ]),
    rule(Kind::Request, &[
        "builder error", "relative url", "invalid url", "invalid uri", "unsupported scheme", "unsupported protocol",
        "empty host", "invalid header name",
    ]),
    rule(Kind::Cancelled, &["aborterror", "aborted by user", "user aborted", "operation was aborted", "cancelled by"]),
    rule(Kind::RateLimited, &["excessive load", "too many pings", "enhance your calm"]),
    rule(Kind::Server, &["unexpected internal error", "internal error"]),
    rule(Kind::Timeout, &[
        "timed out", "timeout", "timeouterror", "deadline has elapsed", "deadline exceeded", "etimedout", "timedout",
        "idle", "stalled", "no bytes", "took too long",
    ]),
    rule(Kind::Network, &["peer closed", "connection reset", "connection closed", "unexpected end of file", "refused"]),
    rule(Kind::Response, &[
        "invalid http version", "invalid chunk size", "chunk size", "invalid gzip", "gzip header", "deflate", "brotli",
        "zstd", "decompress*", "corrupt*", "invalid status", "invalid header", "invalid content length",
        "message head is too large", "parsed", "expected value", "expected ident", "eof while parsing", "missing field",
        "trailing characters", "invalid utf 8", "utf 8", "invalid json", "unexpected token", "before completed",
        "before response completed", "without terminal", "terminal event", "too many redirects", "following redirect",
        "event too large", "empty response",
    ]),
];
