//! Error replies of common providers, as seen in practice.

use serde_json::json;

use crate::Reply;

/// Returns a 429 in OpenAI's format, optionally with `retry-after` in seconds.
pub fn rate_limited(retry_after: Option<u64>) -> Reply {
    let body = openai("Rate limit reached for requests", "requests", Some("rate_limit_exceeded"));
    let reply = Reply::json(429, &body);
    match retry_after {
        Some(seconds) => reply.header("retry-after", &seconds.to_string()),
        None => reply,
    }
}

/// Returns a 529 in Anthropic's format.
pub fn overloaded() -> Reply {
    let error = json!({"type": "overloaded_error", "message": "Overloaded"});
    Reply::json(529, &json!({"type": "error", "error": error}))
}

/// Returns a 502 with a proxy's HTML page.
pub fn bad_gateway() -> Reply {
    Reply::status(502).header("content-type", "text/html").body(
        "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n\
         <hr><center>nginx</center>\r\n</body>\r\n</html>\r\n",
    )
}

/// Returns a 429 for exhausted credit, for which waiting does not help.
pub fn insufficient_quota() -> Reply {
    let message = "You exceeded your current quota, please check your plan and billing details.";
    Reply::json(429, &openai(message, "insufficient_quota", Some("insufficient_quota")))
}

/// Returns a 401 for an invalid key.
pub fn unauthorized() -> Reply {
    Reply::json(401, &openai("Incorrect API key provided.", "invalid_request_error", Some("invalid_api_key")))
}

/// Returns a 400 because the request exceeds the model's context.
pub fn context_overflow() -> Reply {
    let message = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. \
                   Please reduce the length of the messages.";
    Reply::json(400, &openai(message, "invalid_request_error", Some("context_length_exceeded")))
}

/// Returns the usual reply for a status: 401, 429, 502 and 529 as above, others with a generic error in OpenAI's
/// format. `retry_after`, in seconds, is sent in the header of that name for any status.
pub fn of_status(status: u16, retry_after: Option<u64>) -> Reply {
    let reply = match status {
        401 => unauthorized(),
        429 => rate_limited(None),
        502 => bad_gateway(),
        529 => overloaded(),
        400..500 => Reply::json(status, &openai("The request was refused.", "invalid_request_error", None)),
        _ => Reply::json(
            status,
            &openai("The server had an error while processing your request.", "server_error", None),
        ),
    };
    match retry_after {
        Some(seconds) => reply.header("retry-after", &seconds.to_string()),
        None => reply,
    }
}

fn openai(message: &str, kind: &str, code: Option<&str>) -> serde_json::Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}
