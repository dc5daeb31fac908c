//! Builds Chat Completions streams, frame by frame.

use serde_json::{Value, json};

use crate::Reply;

/// A builder for an answer. Frames are sent in the order of the calls. Nothing else is added, so that an answer without
/// a finish reason or `[DONE]` is as easy to build as a complete one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    frames: Vec<String>,
}

/// Builds a complete answer: the role, one delta per part, finish reason `stop`, usage (10 in, one out per part),
/// `[DONE]`.
pub fn text<P: AsRef<str>>(parts: impl IntoIterator<Item = P>) -> Answer {
    let mut answer = Answer::new().role();
    let mut deltas = 0;
    for part in parts {
        answer = answer.text(part.as_ref());
        deltas += 1;
    }
    answer.finish("stop").usage(10, deltas).done()
}

/// Builds a complete answer with one tool call, its arguments in these fragments.
pub fn tool<F: AsRef<str>>(id: &str, name: &str, fragments: impl IntoIterator<Item = F>) -> Answer {
    Answer::new().role().tool(0, id, name, fragments).finish("tool_calls").usage(10, 1).done()
}

impl Answer {
    /// Creates an answer without frames.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the usual first frame: the role and an empty text.
    #[must_use]
    pub fn role(self) -> Self {
        self.delta(&json!({"role": "assistant", "content": ""}))
    }

    /// Adds a delta of visible text.
    #[must_use]
    pub fn text(self, delta: &str) -> Self {
        self.delta(&json!({"content": delta}))
    }

    /// Adds a delta of reasoning, as `reasoning_content`.
    #[must_use]
    pub fn reasoning(self, delta: &str) -> Self {
        self.delta(&json!({"reasoning_content": delta}))
    }

    /// Adds a tool call: its start, then its arguments in these fragments. `index` is its index in the message.
    #[must_use]
    pub fn tool<F: AsRef<str>>(
        self,
        index: usize,
        id: &str,
        name: &str,
        fragments: impl IntoIterator<Item = F>,
    ) -> Self {
        let begun = self.tool_begin(index, id, name);
        fragments.into_iter().fold(begun, |answer, fragment| answer.tool_fragment(index, fragment.as_ref()))
    }

    /// Adds the start of a tool call, with empty arguments.
    #[must_use]
    pub fn tool_begin(self, index: usize, id: &str, name: &str) -> Self {
        let function = json!({"name": name, "arguments": ""});
        self.delta(
            &json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}),
        )
    }

    /// Adds a fragment of a tool call's arguments.
    #[must_use]
    pub fn tool_fragment(self, index: usize, arguments: &str) -> Self {
        self.delta(&json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}))
    }

    /// Adds the finish reason, e.g. `stop`, `tool_calls`, `length`, `content_filter`.
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        let choices = json!([{"index": 0, "delta": {}, "finish_reason": reason}]);
        self.data(&chunk(&choices))
    }

    /// Adds the usage chunk, which has token counts and no choices.
    #[must_use]
    pub fn usage(self, input: u64, output: u64) -> Self {
        let mut chunk = chunk(&json!([]));
        chunk["usage"] =
            json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
        self.data(&chunk)
    }

    /// Adds an error frame, `{"error": {...}}`, inside a response with status 200.
    #[must_use]
    pub fn error(self, code: u16, message: &str) -> Self {
        self.data(&json!({"error": {"message": message, "type": "server_error", "code": code}}))
    }

    /// Adds the terminal `[DONE]`.
    #[must_use]
    pub fn done(self) -> Self {
        self.raw("data: [DONE]\n\n")
    }

    /// Adds a comment, as proxies send it to keep a connection alive.
    #[must_use]
    pub fn comment(self, text: &str) -> Self {
        self.raw(&format!(": {text}\n\n"))
    }

    /// Adds a `data:` frame with any JSON.
    #[must_use]
    pub fn data(self, json: &Value) -> Self {
        self.raw(&format!("data: {json}\n\n"))
    }

    /// Adds any bytes as one part.
    #[must_use]
    pub fn raw(mut self, part: &str) -> Self {
        self.frames.push(part.to_owned());
        self
    }

    /// Returns the frames so far.
    pub fn frames(&self) -> &[String] {
        &self.frames
    }

    /// Returns a 200 reply with an event stream, one chunk per frame.
    pub fn reply(&self) -> Reply {
        Reply::sse(&self.frames)
    }

    fn delta(self, delta: &Value) -> Self {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": null}]);
        self.data(&chunk(&choices))
    }
}

fn chunk(choices: &Value) -> Value {
    json!({"id": "chatcmpl-sim", "object": "chat.completion.chunk", "created": 0, "model": "sim", "choices": choices})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(answer: &Answer) -> Vec<Value> {
        let payload = |frame: &String| frame.strip_prefix("data: ")?.strip_suffix("\n\n").map(str::to_owned);
        let frames: Option<Vec<String>> = answer.frames().iter().map(payload).collect();
        let frames = frames.unwrap();
        frames.iter().map(|json| serde_json::from_str(json).unwrap_or(json!(json))).collect()
    }

    #[test]
    fn a_text_is_role_deltas_finish_usage_done() {
        let frames = data(&text(["Hel", "lo"]));
        assert_eq!(frames.len(), 6);
        assert_eq!(frames[0]["choices"][0]["delta"]["role"], "assistant");
        assert_eq!(frames[1]["choices"][0]["delta"], json!({"content": "Hel"}));
        assert_eq!(frames[2]["choices"][0]["delta"], json!({"content": "lo"}));
        assert_eq!(frames[3]["choices"][0]["finish_reason"], "stop");
        assert_eq!(
            frames[4]["usage"],
            json!({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12})
        );
        assert_eq!(frames[4]["choices"], json!([]));
        assert_eq!(frames[5], "[DONE]");
    }

    #[test]
    fn the_arguments_of_a_tool_come_in_their_fragments() {
        let frames = data(&tool("call-1", "read", [r#"{"pa"#, r#"th":"a"}"#]));
        let calls: Vec<&Value> =
            frames.iter().map(|frame| &frame["choices"][0]["delta"]["tool_calls"][0]).collect();
        assert_eq!(calls[1]["id"], "call-1");
        assert_eq!(calls[1]["function"], json!({"name": "read", "arguments": ""}));
        let arguments: String =
            calls[2..4].iter().filter_map(|call| call["function"]["arguments"].as_str()).collect();
        assert_eq!(arguments, r#"{"path":"a"}"#);
        assert_eq!(frames[4]["choices"][0]["finish_reason"], "tool_calls");
    }

    #[test]
    fn nothing_is_added_unasked() {
        let answer = Answer::new().comment("keep-alive").text("a").error(503, "gone");
        assert_eq!(answer.frames().len(), 3);
        assert_eq!(answer.frames()[0], ": keep-alive\n\n");
        assert_eq!(answer.reply().body_bytes(), answer.frames().concat().as_bytes());
    }
}
