//! Streams of each API, with all fields that the vendor sends.

/// The framed events of a stream.
pub(super) struct Script {
    pub(super) opening: &'static str,
    pub(super) delta: String,
    pub(super) last_of_sentence: String,
    pub(super) closing: &'static str,
}

impl Script {
    /// Returns the script of the API with this path.
    pub(super) fn of(path: &str) -> Self {
        let path = path.split('?').next().unwrap_or_default();
        let (opening, delta, closing): (_, fn(&str) -> String, _) = match path {
            path if path.ends_with("/messages") => (MESSAGES_OPENING, messages, MESSAGES_CLOSING),
            path if path.ends_with("/responses") => (RESPONSES_OPENING, responses, RESPONSES_CLOSING),
            path if path.ends_with("generatecontent") => ("", gemini, GEMINI_CLOSING),
            _ => ("", chat, CHAT_CLOSING),
        };
        Self { opening, delta: delta("word "), last_of_sentence: delta("word. "), closing }
    }
}

fn chat(text: &str) -> String {
    format!(
        r#"data: {{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion.chunk","created":1741569952,"model":"gpt-4.1-2025-04-14","service_tier":"default","system_fingerprint":"fp_44709d6fcb","choices":[{{"index":0,"delta":{{"content":"{text}"}},"logprobs":null,"finish_reason":null}}]}}

"#
    )
}

const CHAT_CLOSING: &str = r#"data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

"#;

fn messages(text: &str) -> String {
    format!(
        r#"event: content_block_delta
data: {{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}

"#
    )
}

const MESSAGES_OPENING: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

"#;

const MESSAGES_CLOSING: &str = r#"event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}

event: message_stop
data: {"type":"message_stop"}

"#;

fn responses(text: &str) -> String {
    format!(
        r#"event: response.output_text.delta
data: {{"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_67c9fdcf37fc8190ba82116e33fb28c507b8b0ad4e5eb654","output_index":0,"content_index":0,"delta":"{text}","logprobs":[],"obfuscation":"AiGRm2Lp5TvQ"}}

"#
    )
}

const RESPONSES_OPENING: &str = r#"event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_67c9fdcf37fc8190ba82116e33fb28c507b8b0ad4e5eb654","type":"message","status":"in_progress","role":"assistant","content":[]}}

"#;

/// Without the repetition of the whole text that a real one has, because its length is not a property of the adapter.
const RESPONSES_CLOSING: &str = r#"event: response.completed
data: {"type":"response.completed","sequence_number":9,"response":{"id":"resp_1","object":"response","status":"completed","output":[],"usage":{"input_tokens":9,"output_tokens":9,"total_tokens":18}}}

"#;

fn gemini(text: &str) -> String {
    format!(
        r#"data: {{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}],"role":"model"}},"index":0}}],"usageMetadata":{{"promptTokenCount":9,"candidatesTokenCount":5,"totalTokenCount":14,"promptTokensDetails":[{{"modality":"TEXT","tokenCount":9}}]}},"modelVersion":"gemini-3-flash","responseId":"kVv4aKz3"}}

"#
    )
}

const GEMINI_CLOSING: &str = r#"data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":9,"totalTokenCount":18},"modelVersion":"gemini-3-flash","responseId":"kVv4aKz3"}

"#;
