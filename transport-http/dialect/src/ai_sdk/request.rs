//! Parses requests.

use everturn_wire::{ApprovalMode, ConversationId, Image, RetrySettings};
use serde::Deserialize;

use super::{
    Place,
    message::{self, Response},
    spoken::{Role, Spoken, Spokens},
};
use crate::{conversation_of, failure::brief, lenient};

/// A request of `POST /api/chat`.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatRequest {
    /// The conversation of the chat.
    pub conversation_id: ConversationId,
    /// The model, by the client's name.
    pub model: Option<String>,
    /// Reasoning effort, in the provider's terms.
    pub reasoning_effort: Option<String>,
    /// Retry settings for this turn only.
    pub retry: Option<RetrySettings>,
    /// How calls that need a person's approval are treated.
    pub approvals: Option<ApprovalMode>,
    /// Answers to requests for approval.
    pub responses: Vec<Response>,
    /// The calls in the message that is continued.
    pub known_calls: Vec<String>,
    /// What is requested.
    pub ask: Ask,
}

/// What a request asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// An answer to a new message.
    Message {
        /// The text.
        text: String,
        /// The images.
        images: Vec<Image>,
    },
    /// Another answer to a message; to a new message if the conversation does not have it.
    Again {
        /// The position of the message.
        place: Place,
        /// Whether its text is new.
        is_edited: bool,
        /// The text.
        text: String,
        /// The images.
        images: Vec<Image>,
    },
    /// The rest of an answer whose turn waited for approvals.
    Continue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    id: String,
    messages: Option<Spokens>,
    message: Option<Spoken>,
    trigger: Option<String>,
    message_id: Option<String>,
    /// Apps have fields of their own, so a value that is not a string is ignored.
    #[serde(default, deserialize_with = "lenient::text")]
    model: Option<String>,
    everturn: Option<Options>,
}

/// A request in a WebSocket frame, whose `body` has the app's fields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Apart {
    id: String,
    messages: Option<Spokens>,
    trigger: Option<String>,
    message_id: Option<String>,
    #[serde(default)]
    body: Added,
    #[serde(default)]
    pub(super) headers: Headers,
}

/// The headers that are used. The SDK sends their names in lower case.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Headers {
    #[serde(deserialize_with = "lenient::text")]
    pub(super) idempotency_key: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) traceparent: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub(super) tracestate: Option<String>,
}

/// Fields that the app adds.
#[derive(Default, Deserialize)]
struct Added {
    message: Option<Spoken>,
    #[serde(default, deserialize_with = "lenient::text")]
    model: Option<String>,
    everturn: Option<Options>,
}

/// Options specific to this server.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Options {
    reasoning_effort: Option<String>,
    retry: Option<RetrySettings>,
    approvals: Option<ApprovalMode>,
}

impl ChatRequest {
    /// Parses a request body.
    ///
    /// # Errors
    /// Returns what is wrong if it is not a valid request.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        let body: Body = serde_json::from_slice(body)
            .map_err(|error| brief(format!("the request body is not one of the AI SDK's: {error}")))?;
        Self::of(body)
    }

    /// Parses the request of a frame.
    pub(super) fn of_frame(frame: Apart) -> Result<Self, String> {
        let Apart { id, messages, trigger, message_id, body, .. } = frame;
        let Added { message, model, everturn } = body;
        Self::of(Body { id, messages, message, trigger, message_id, model, everturn })
    }

    fn of(body: Body) -> Result<Self, String> {
        let mut spoken = body.messages.unwrap_or_default();
        // A frame always has `messages`: empty if the app sends only the last message.
        let is_whole = spoken.last.is_some();
        if let (None, Some(message)) = (&spoken.last, body.message) {
            spoken.push(message);
        }
        let Some(last) = spoken.last.take() else { return Err("messages is empty".to_owned()) };
        let from = if last.role == Role::Assistant { Some(&last) } else { spoken.assistant.as_ref() };
        let responses = from.map(message::responses).unwrap_or_default();
        let known_calls = from.map(message::calls).unwrap_or_default();
        let message_id = body.message_id.as_deref();
        let is_again = body.trigger.as_deref() == Some("regenerate-message");
        let ask = match last.role {
            Role::Assistant if responses.is_empty() => {
                return Err(
                    "the last message must be the user's, or answer a request for approval".to_owned()
                );
            }
            Role::Assistant => Ask::Continue,
            Role::Other => return Err("the last message must be the user's".to_owned()),
            Role::User => {
                let (text, images) = message::content(&last)?;
                let is_edited = !is_again && message_id.is_some_and(|id| id == last.id);
                if is_edited && !is_whole {
                    return Err(
                        "send messages, not message alone, so that the edited one can be found".to_owned()
                    );
                }
                if is_again || is_edited {
                    let place = place(&spoken.trail, message_id.filter(|_| is_again), is_whole);
                    Ask::Again { place, is_edited, text, images }
                } else {
                    Ask::Message { text, images }
                }
            }
        };
        let Options { reasoning_effort, retry, approvals } = body.everturn.unwrap_or_default();
        Ok(Self {
            conversation_id: conversation_of(&body.id),
            model: body.model,
            reasoning_effort,
            retry,
            approvals,
            responses,
            known_calls,
            ask,
        })
    }
}

/// Returns the position of the last of these messages.
fn place(trail: &[(Role, String)], answer: Option<&str>, is_whole: bool) -> Place {
    let of_user =
        |messages: &[(Role, String)]| messages.iter().filter(|(role, _)| *role == Role::User).count();
    let before = trail.iter().rposition(|(role, _)| *role == Role::Assistant);
    Place {
        answer: answer.map(str::to_owned),
        after: before.map(|at| (trail[at].1.clone(), of_user(&trail[at..]))),
        nth: is_whole.then(|| of_user(trail)),
    }
}
