//! What an event of a stream says: where content begins, ends or fails.
//!
//! Unknown events count as content: they are passed on at once, like everything that is not known to be a prelude. A stream of only
//! those is not of this API, and nothing tells where it ends.

use everturn_wire::Value;

use super::AnswerForm;
use crate::{SseEvent, bulk::is_bulky, exchange::is_error};

/// What an event says. Ordered, so that the greatest of a stream's events tells whether it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Said {
    /// Content that is not of this API.
    Unknown,
    /// Nothing that a caller would miss: the answer can be asked for again.
    Nothing,
    Content,
    /// The provider's own end of the answer.
    End,
    /// The provider's own error.
    Failure,
}

pub(super) fn said(form: AnswerForm, event: &SseEvent<'_>) -> Said {
    if form == AnswerForm::Opaque {
        return Said::Unknown;
    }
    if form == AnswerForm::Chat && event.data == "[DONE]" {
        return Said::End;
    }
    if is_bulky(&event.data) {
        return Said::Content;
    }
    let Ok(data) = serde_json::from_str::<Value>(&event.data) else { return Said::Content };
    let kind = data["type"].as_str().unwrap_or(&event.name);
    match form {
        AnswerForm::Messages => of_messages(kind, &data),
        AnswerForm::Responses => of_responses(kind, &data),
        AnswerForm::Chat => of_chat(&data),
        AnswerForm::Gemini => of_gemini(&data),
        AnswerForm::Opaque => Said::Unknown,
    }
}

fn of_messages(kind: &str, data: &Value) -> Said {
    match kind {
        "message_start" | "ping" => Said::Nothing,
        "content_block_start" => {
            let block = &data["content_block"];
            // Its text, and the end of an answer without any, are still to come.
            let is_empty = match block["type"].as_str() {
                Some("text") => is_blank(&block["text"]),
                Some("thinking") => is_blank(&block["thinking"]) && is_blank(&block["signature"]),
                _ => false,
            };
            if is_empty { Said::Nothing } else { Said::Content }
        }
        "message_stop" => Said::End,
        "error" => Said::Failure,
        _ => Said::Content,
    }
}

fn of_responses(kind: &str, data: &Value) -> Said {
    match kind {
        "response.created"
        | "response.queued"
        | "response.in_progress"
        | "response.content_part.added"
        | "response.reasoning_summary_part.added"
        | "keepalive" => Said::Nothing,
        "response.output_item.added" => match data["item"]["type"].as_str() {
            Some("message" | "reasoning") => Said::Nothing,
            _ => Said::Content,
        },
        "response.completed" | "response.incomplete" => Said::End,
        "response.failed" | "error" => Said::Failure,
        _ => Said::Content,
    }
}

/// Whether a whole answer is an error.
pub(super) fn is_failed(form: AnswerForm, text: &str) -> bool {
    let of_choice = || {
        let answer = serde_json::from_str(text);
        form == AnswerForm::Chat && answer.is_ok_and(|answer| of_chat(&answer) == Said::Failure)
    };
    is_error(text) || of_choice()
}

fn of_chat(data: &Value) -> Said {
    if !data["error"].is_null() {
        return Said::Failure;
    }
    let Some(choices) = data["choices"].as_array() else { return prelude(data, &["choices", "usage"]) };
    // OpenRouter tells an upstream's failure in the choice.
    if choices.iter().any(|choice| !choice["error"].is_null() || choice["finish_reason"] == "error") {
        return Said::Failure;
    }
    if choices.iter().any(|choice| !is_blank(&choice["finish_reason"])) {
        return Said::End;
    }
    let has_content = |choice: &Value| {
        let delta = choice["delta"].as_object();
        let mut fields = delta.into_iter().flatten();
        fields.any(|(name, value)| name != "role" && !is_blank(value)) || !is_blank(&choice["text"])
    };
    if choices.iter().any(has_content) { Said::Content } else { Said::Nothing }
}

fn of_gemini(data: &Value) -> Said {
    if !data["error"].is_null() {
        return Said::Failure;
    }
    let candidates = data["candidates"].as_array().map(Vec::as_slice).unwrap_or_default();
    if candidates.iter().any(|candidate| !candidate["finishReason"].is_null())
        || !data["promptFeedback"]["blockReason"].is_null()
    {
        return Said::End;
    }
    match candidates.iter().any(|candidate| !is_blank(&candidate["content"]["parts"])) {
        true => Said::Content,
        false => prelude(data, &["candidates", "usageMetadata", "promptFeedback"]),
    }
}

/// What an event without content says that has one of these fields if it is of this API.
fn prelude(data: &Value, fields: &[&str]) -> Said {
    let is_own = is_blank(data) || fields.iter().any(|field| data.get(field).is_some());
    if is_own { Said::Nothing } else { Said::Unknown }
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(form: AnswerForm, name: &str, data: &str) -> Said {
        said(form, &SseEvent { name: name.into(), data: data.into() })
    }

    #[test]
    fn content_begins_after_what_can_be_asked_for_again() {
        use AnswerForm::{Chat, Gemini, Messages, Opaque, Responses};
        use Said::{Content, End, Failure, Nothing, Unknown};
        for (form, name, data, expected) in [
            (Messages, "message_start", r#"{"type":"message_start","message":{}}"#, Nothing),
            (Messages, "ping", r#"{"type":"ping"}"#, Nothing),
            (Messages, "content_block_start", r#"{"content_block":{"type":"text","text":""}}"#, Nothing),
            (Messages, "content_block_start", r#"{"content_block":{"type":"tool_use","id":"a"}}"#, Content),
            (Messages, "content_block_delta", r#"{"delta":{"type":"text_delta","text":"a"}}"#, Content),
            (Messages, "message_delta", r#"{"delta":{"stop_reason":"end_turn"}}"#, Content),
            (
                Chat,
                "",
                r#"{"choices":[{"error":{"code":502},"finish_reason":"error","delta":{"content":""}}]}"#,
                Failure,
            ),
            (Chat, "", r#"{"choices":[{"finish_reason":"","delta":{"content":""}}]}"#, Nothing),
            (Messages, "message_stop", r#"{"type":"message_stop"}"#, End),
            (Messages, "error", r#"{"type":"error","error":{"type":"overloaded_error"}}"#, Failure),
            (Messages, "brand_new", r#"{"type":"brand_new"}"#, Content),
            (Messages, "ping", "not JSON", Content),
            (Responses, "response.created", r#"{"type":"response.created"}"#, Nothing),
            (Responses, "message", r#"{"type":"response.in_progress"}"#, Nothing),
            (
                Responses,
                "message",
                r#"{"type":"response.output_item.added","item":{"type":"reasoning"}}"#,
                Nothing,
            ),
            (
                Responses,
                "message",
                r#"{"type":"response.output_item.added","item":{"type":"function_call"}}"#,
                Content,
            ),
            (Responses, "message", r#"{"type":"response.output_text.delta","delta":"a"}"#, Content),
            (Responses, "message", r#"{"type":"response.failed"}"#, Failure),
            (Responses, "message", r#"{"type":"response.completed"}"#, End),
            (Chat, "message", r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#, Nothing),
            (Chat, "message", r#"{"choices":[]}"#, Nothing),
            (Chat, "message", r#"{"usage":{}}"#, Nothing),
            (Chat, "message", r#"{"content":"a","stop":false}"#, Unknown),
            (Chat, "message", r#"{"choices":[{"delta":{"content":"a"}}]}"#, Content),
            (Chat, "message", r#"{"choices":[{"delta":{"reasoning":"a"}}]}"#, Content),
            (Chat, "message", r#"{"choices":[{"text":"a"}]}"#, Content),
            (Chat, "message", r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#, End),
            (Chat, "message", r#"{"error":{"message":"no"}}"#, Failure),
            (Chat, "message", "[DONE]", End),
            (Gemini, "message", r#"{"candidates":[{"content":{"parts":[]}}]}"#, Nothing),
            (Gemini, "message", r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#, Content),
            (Gemini, "message", r#"{"candidates":[{"finishReason":"STOP"}]}"#, End),
            (Gemini, "message", r#"{"usageMetadata":{}}"#, Nothing),
            (Gemini, "message", r#"{"event_type":"content.delta","delta":{}}"#, Unknown),
            (Gemini, "message", r#"{"error":{"code":503}}"#, Failure),
            (Opaque, "message", "x", Unknown),
        ] {
            assert_eq!(of(form, name, data), expected, "{form:?} {data}");
        }
    }
}
