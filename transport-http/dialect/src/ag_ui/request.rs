//! Parses requests.

use std::fmt;

use everturn_wire::{ApprovalMode, ConversationId, Image, RetrySettings};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor, value::SeqAccessDeserializer},
};
use serde_json::value::RawValue;

use super::{Head, Kept};
use crate::{ai_sdk::Place, conversation_of, failure::brief, few::Few, lenient};

/// Maximum number of messages. No conversation has more chunks.
const MOST: usize = 10_000;

/// A request for a run.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The run.
    pub head: Head,
    /// The conversation of the thread.
    pub conversation_id: ConversationId,
    /// The messages that the client has.
    pub kept: Kept,
    /// Answers to requests for approval.
    pub resume: Vec<Resume>,
    /// The user's message with its images, if the last message is by the user.
    pub message: Option<(String, Vec<Image>)>,
    /// The position of that message.
    pub place: Place,
    /// Whether an answer by this server precedes it.
    pub has_answer_before: bool,
    /// Whether it replaces the one at that position.
    pub is_edit: bool,
    /// The model, by the client's name.
    pub model: Option<String>,
    /// Reasoning effort, in the provider's terms.
    pub reasoning_effort: Option<String>,
    /// Retry settings for this turn only.
    pub retry: Option<RetrySettings>,
    /// How calls that need a person's approval are treated.
    pub approvals: Option<ApprovalMode>,
}

/// A person's answer to a request for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The id of the request.
    pub id: String,
    /// Whether the call may run.
    pub approved: bool,
    /// The reason.
    pub reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    thread_id: String,
    run_id: String,
    protocol_version: Option<String>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    forwarded_props: Option<&'a RawValue>,
    resume: Option<Few<Entry>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    interrupt_id: String,
    status: String,
    payload: Option<Box<RawValue>>,
}

/// The payload of an answer.
#[derive(Default, Deserialize)]
struct Payload {
    approved: Option<bool>,
    #[serde(default, deserialize_with = "lenient::text")]
    reason: Option<String>,
}

/// Custom properties. Unknown ones belong to others.
#[derive(Default, Deserialize)]
struct Props {
    everturn: Option<Box<RawValue>>,
}

/// Options specific to this server.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Options {
    model: Option<String>,
    reasoning_effort: Option<String>,
    retry: Option<RetrySettings>,
    approvals: Option<ApprovalMode>,
    edit: bool,
}

#[derive(Deserialize)]
struct Spoken {
    #[serde(default)]
    id: String,
    role: String,
    content: Option<Content>,
}

/// The content of a message.
enum Content {
    Text(String),
    Parts(Few<Part>),
    /// An activity, which is internal to the client.
    Other,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Contents;
        impl<'de> Visitor<'de> for Contents {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of parts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Content, A::Error> {
                Few::deserialize(SeqAccessDeserializer::new(list)).map(Content::Parts)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Content::Other)
            }
        }
        deserializer.deserialize_any(Contents)
    }
}

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    source: Option<Source>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    #[serde(rename = "type")]
    kind: String,
    value: Option<String>,
    mime_type: Option<String>,
}

impl RunRequest {
    /// Parses a request body.
    ///
    /// # Errors
    /// Returns what is wrong if it is not a valid request.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        let wrong =
            |error: serde_json::Error| brief(format!("the request body is no RunAgentInput: {error}"));
        let body: Body<'_> = serde_json::from_slice(body).map_err(wrong)?;
        let list = body.messages.map_or("[]", RawValue::get);
        let Trail { last, place, has_answer_before } = serde_json::from_str(list).map_err(wrong)?;
        let message =
            last.filter(|last| last.role == "user").map(|last| content(last.content)).transpose()?;
        let resume = body.resume.map_or_else(Vec::new, |entries| entries.0);
        let resume = resume.into_iter().map(answer).collect::<Result<_, _>>()?;
        let props = lenient::object::<Props>(body.forwarded_props).unwrap_or_default();
        let options = props.everturn.as_deref().map(|options| serde_json::from_str(options.get()));
        let options = options.unwrap_or_else(|| Ok(Options::default()));
        let Options { model, reasoning_effort, retry, approvals, edit: is_edit } =
            options.map_err(|error| brief(format!("forwardedProps.everturn: {error}")))?;
        Ok(Self {
            conversation_id: conversation_of(&body.thread_id),
            head: Head { thread_id: body.thread_id, run_id: body.run_id, protocol: body.protocol_version },
            kept: Kept::of(list),
            resume,
            message,
            place,
            has_answer_before,
            is_edit,
            model,
            reasoning_effort,
            retry,
            approvals,
        })
    }
}

fn answer(entry: Entry) -> Result<Resume, String> {
    let Entry { interrupt_id: id, status, payload } = entry;
    let payload = lenient::object::<Payload>(payload.as_deref()).unwrap_or_default();
    let reason = payload.reason.filter(|reason| !reason.is_empty());
    let approved = match (status.as_str(), payload.approved) {
        ("cancelled", _) => false,
        ("resolved", Some(approved)) => approved,
        _ => {
            return Err(r#"the payload of a resume entry must be {"approved": true} or {"approved": false}"#
                .to_owned());
        }
    };
    Ok(Resume { id, approved, reason })
}

fn content(content: Option<Content>) -> Result<(String, Vec<Image>), String> {
    let parts = match content {
        Some(Content::Text(text)) => return Ok((text, Vec::new())),
        Some(Content::Parts(parts)) => parts.0,
        Some(Content::Other) | None => return Ok((String::new(), Vec::new())),
    };
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in parts {
        match (part.kind.as_str(), part.text, part.source) {
            ("text", Some(text), _) => texts.push(text),
            ("image", _, Some(Source { kind, value: Some(value), mime_type })) if kind != "file" => {
                let url = match (kind.as_str(), &mime_type) {
                    ("data", Some(mime)) => format!("data:{mime};base64,{value}"),
                    _ => value,
                };
                images.push(Image { url, mime_type });
            }
            (kind, ..) => {
                let kind: String = kind.chars().take(32).collect();
                return Err(format!("content of type {kind:?} is not supported: send text or images"));
            }
        }
    }
    Ok((texts.join("\n\n"), images))
}

/// What is kept of a message list.
#[derive(Default)]
struct Trail {
    last: Option<Spoken>,
    place: Place,
    has_answer_before: bool,
}

impl<'de> Deserialize<'de> for Trail {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Messages;
        impl<'de> Visitor<'de> for Messages {
            type Value = Trail;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Trail, A::Error> {
                let (mut trail, mut count, mut users) = (Trail::default(), 0, 0);
                let mut after: Option<(String, usize)> = None;
                while let Some(message) = list.next_element::<Spoken>()? {
                    count += 1;
                    if count > MOST {
                        return Err(A::Error::custom(format!("more than {MOST} messages")));
                    }
                    match message.role.as_str() {
                        "user" => {
                            users += 1;
                            after.iter_mut().for_each(|(_, count)| *count += 1);
                        }
                        // Its id begins with its turn's id, unless an app wrote it, as a greeting.
                        "assistant" => {
                            after =
                                message.id.split_once('#').map(|(turn, _)| (turn.to_owned(), 0)).or(after);
                        }
                        _ => {}
                    }
                    trail.last = Some(message);
                }
                trail.has_answer_before = after.is_some();
                trail.place = Place::at(after, users);
                Ok(trail)
            }
        }
        deserializer.deserialize_seq(Messages)
    }
}
