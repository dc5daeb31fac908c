//! Parses requests.

mod field;
mod history;
mod ignored;
mod mild;
mod tool;

use std::cell::Cell;

use everturn_wire::{ApprovalMode, ConversationId, Parameters, SendRequest};
use serde::Deserializer as _;

use super::Refusal;
use field::{Fields, Options, Reader, Stops};

/// A request of `POST /v1/chat/completions`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatRequest {
    /// The native request that starts the turn, with the model by the client's name.
    pub send: SendRequest,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Whether the stream ends with token counts.
    pub include_usage: bool,
    /// Whether text is held back until its step is complete, so that none of it is ever withdrawn.
    pub holds_text: bool,
    /// What happens to the turn when the client disconnects; if absent, it depends on the request.
    pub on_disconnect: Option<OnDisconnect>,
    /// Whether the turn has only what the request has: not the server's tools, system prompt and summaries.
    pub bare: bool,
    /// The fields that have no effect here, such as `tools[].function.strict`. At most 32.
    pub ignored: Vec<String>,
}

/// What happens to a turn whose client disconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnDisconnect {
    /// It is stopped.
    Stop,
    /// It continues.
    Continue,
}

impl ChatRequest {
    /// Parses a request body. `conversation`: the conversation named in a header.
    ///
    /// # Errors
    /// Returns an error if it is not a valid request, or asks for something unsupported, which the error names.
    pub fn read(body: &[u8], conversation: Option<&str>) -> Result<Self, Refusal> {
        let at = Cell::new("");
        let mut reader = serde_json::Deserializer::from_slice(body);
        let fields = reader.deserialize_map(Reader { at: &at });
        let fields = fields.and_then(|fields| reader.end().map(|()| fields));
        let fields = fields.map_err(|error| match at.get() {
            "" => Refusal::new(400, format!("the request body must be a JSON object: {error}")),
            param => Refusal::bad(param, format!("{param}: {error}")),
        })?;
        if let Some(name) = fields.refused {
            let why = format!("{name} is not supported here: leave it out");
            return Err(Refusal::unsupported(name, why));
        }
        let ignored = ignored::names(body);
        Ok(Self { ignored, ..Self::of(fields, conversation)? })
    }

    fn of(fields: Fields, conversation: Option<&str>) -> Result<Self, Refusal> {
        let Options { text, on_disconnect, retry, approvals, agent } = fields.everturn.unwrap_or_default();
        let named = fields.metadata.and_then(|metadata| metadata.conversation_id);
        if let (Some(header), Some(named)) = (conversation, &named)
            && header != named
        {
            let why =
                "the header X-Conversation-Id and metadata.conversation_id name different conversations";
            return Err(Refusal::bad("metadata", why));
        }
        let conversation_id = named.as_deref().or(conversation).map(ConversationId::parse).transpose();
        let conversation_id = conversation_id.map_err(|error| Refusal::bad("metadata", error.to_string()))?;
        let parameters = Parameters {
            temperature: fields.temperature,
            top_p: fields.top_p,
            stop: fields.stop.map(Stops::into_vec).unwrap_or_default(),
            tool_choice: fields.tool_choice.map(tool::choice).transpose()?,
            response_format: fields.response_format.map(tool::format).transpose()?,
            max_output_tokens: fields.max_completion_tokens.or(fields.max_tokens),
            parallel_tool_calls: fields.parallel_tool_calls,
            seed: fields.seed,
            presence_penalty: fields.presence_penalty,
            frequency_penalty: fields.frequency_penalty,
        };
        let Some(messages) = fields.messages else {
            return Err(Refusal::bad("messages", "messages is missing"));
        };
        let tools = fields.tools.map(|tools| tool::tools(tools.0)).transpose()?;
        let is_json = !matches!(parameters.response_format, None | Some(everturn_wire::ResponseFormat::Text));
        let stream = fields.stream.unwrap_or(false);
        // A remark in the text would break JSON.
        let holds_text = text.map_or(is_json, |text| text == field::TextMode::Hold);
        let bare = !agent.unwrap_or(conversation_id.is_some());
        let mut send = SendRequest {
            ephemeral: Some(conversation_id.is_none()),
            // An ephemeral conversation is not listed, so nobody could answer.
            approvals: approvals.or(conversation_id.is_none().then_some(ApprovalMode::Deny)),
            conversation_id,
            model: fields.model,
            reasoning_effort: fields.reasoning_effort,
            retry: retry.map(Box::new),
            messages: Some(history::messages(messages.0)?),
            tools,
            ..SendRequest::default()
        };
        field::set(&mut send, parameters);
        Ok(Self {
            send,
            stream,
            include_usage: fields.stream_options.and_then(|options| options.include_usage).unwrap_or(false),
            holds_text,
            on_disconnect,
            bare,
            ignored: Vec::new(),
        })
    }

    /// Whether the client receives nothing of an answer before it is complete, or before its step is.
    pub fn is_whole(&self) -> bool {
        !self.stream || self.holds_text
    }

    /// Whether the turn is stopped when the client disconnects. Default: if nobody can reconnect to it.
    pub fn stops_on_disconnect(&self, has_key: bool) -> bool {
        match self.on_disconnect {
            Some(asked) => asked == OnDisconnect::Stop,
            None => !has_key && self.send.conversation_id.is_none(),
        }
    }
}
