//! The model's thinking: how a request asks for it, and what of it goes back.

use everturn_kernel::Request;
use everturn_wire::{Chunk, Message, Role, Value};
use serde_json::{Map, json};

/// The smallest budget that the API takes, in tokens.
const LEAST_BUDGET: u32 = 1024;

/// Thinking in one request.
///
/// What the model thought in the turn that runs goes back, as the API demands where tools were used. What it thought in
/// earlier turns does not: newer models bind a thought to all that stood before it, so that a conversation would be
/// refused for ever once its instructions or its tools have changed.
#[derive(Debug)]
pub(super) struct Thinking<'a> {
    origin: &'a str,
    way: Way<'a>,
    /// The message that the turn begins with.
    begin: usize,
}

#[derive(Debug, PartialEq)]
enum Way<'a> {
    /// As the model does unless told, with this effort where one is set.
    Own(Option<&'a str>),
    /// For that many tokens.
    Budget(u32),
    /// Not in this request.
    Paused,
    Never,
}

impl<'a> Thinking<'a> {
    /// `origin` is who signed what is one's own; `extra` are fields that go before all others.
    pub(super) fn of(request: &'a Request, origin: &'a str, extra: &Map<String, Value>) -> Self {
        let place = CurrentTurn::of(&request.messages);
        let effort = request.reasoning_effort.as_deref();
        let way = match effort.map(str::parse) {
            None | Some(Err(_)) => Way::Own(effort),
            Some(Ok(0)) => Way::Never,
            Some(Ok(budget)) => Way::Budget(LEAST_BUDGET.max(budget)),
        };
        let has_budget = extra.get("thinking").map_or(matches!(way, Way::Budget(_)), |thinking| {
            thinking.get("type").is_some_and(|kind| kind == "enabled")
        });
        // Before results the API wants the thinking that led to the calls, or none asked for.
        let is_refused =
            has_budget && place.after_results && !is_signed(&request.messages[place.begin..], origin);
        let way = if is_refused { Way::Paused } else { way };
        Self { origin, way, begin: place.begin }
    }

    /// Asks for it.
    pub(super) fn ask(&self, body: &mut Map<String, Value>, max_tokens: u32) {
        match self.way {
            Way::Own(None) | Way::Paused => {}
            Way::Own(Some(effort)) => {
                body.insert("output_config".to_owned(), json!({ "effort": effort }));
            }
            Way::Budget(budget) => {
                body.insert("thinking".to_owned(), json!({ "type": "enabled", "budget_tokens": budget }));
                if max_tokens <= budget {
                    // The budget is part of the limit, and the API refuses one that leaves no room for the answer.
                    body.insert("max_tokens".to_owned(), json!(budget.saturating_add(max_tokens)));
                }
            }
            Way::Never => {
                body.insert("thinking".to_owned(), json!({ "type": "disabled" }));
            }
        }
    }

    /// Takes back what was asked for, if not in this request.
    pub(super) fn pause(&self, body: &mut Map<String, Value>) {
        if self.way == Way::Paused {
            body.remove("thinking");
        }
    }

    /// The chunks of the message at that index that are to be sent.
    pub(super) fn kept<'m>(&self, index: usize, message: &'m Message) -> impl Iterator<Item = &'m Chunk> {
        let goes_back = index >= self.begin && !matches!(self.way, Way::Paused | Way::Never);
        let end = said_until(message);
        let chunks = message.iter().enumerate();
        chunks
            .filter(move |(place, chunk)| !is_thought(chunk) || (goes_back && *place < end))
            .map(|(_, chunk)| chunk)
    }

    /// A thought as it came, if this endpoint signed it.
    pub(super) fn block(&self, chunk: &Chunk) -> Option<Value> {
        let (text, signed) = signed(chunk, self.origin)?;
        let mut block = signed.clone();
        if block.get("type").is_some_and(|kind| kind == "thinking") {
            block.insert("thinking".to_owned(), json!(text));
        }
        Some(Value::Object(block))
    }
}

/// Where a request stands.
struct CurrentTurn {
    /// The message that the turn begins with: the last one of a person that does not go with tool results.
    begin: usize,
    /// Whether tool results, perhaps with a message of a person, come last.
    after_results: bool,
}

impl CurrentTurn {
    fn of(messages: &[Message]) -> Self {
        let mut place = Self { begin: 0, after_results: false };
        for (index, message) in messages.iter().enumerate() {
            match message.role {
                Role::User if !place.after_results => place.begin = index,
                Role::Tool => place.after_results = true,
                Role::Assistant if said_until(message) > 0 => place.after_results = false,
                _ => {}
            }
        }
        place
    }
}

/// Whether the first that the model said in a turn is thinking that may be sent back.
fn is_signed(turn: &[Message], origin: &str) -> bool {
    let answers = turn.iter().filter(|message| message.role == Role::Assistant);
    let mut chunks = answers.flat_map(|message| message.iter().take(said_until(message)));
    let first = chunks.find(|chunk| is_said(chunk) || signed(chunk, origin).is_some());
    first.is_some_and(|chunk| !is_said(chunk))
}

/// A thought that this endpoint signed: its words, and the block that it came in without them.
fn signed<'c>(chunk: &'c Chunk, origin: &str) -> Option<(&'c str, &'c Map<String, Value>)> {
    match chunk {
        Chunk::Thinking { text, echo: Some(echo) } if echo.origin == origin => {
            Some((text, echo.data.as_object()?))
        }
        _ => None,
    }
}

fn is_thought(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Thinking { .. })
}

/// What thinking can lead to.
fn is_said(chunk: &Chunk) -> bool {
    match chunk {
        Chunk::Text { text } => !text.trim().is_empty(),
        Chunk::ToolCall { .. } => true,
        _ => false,
    }
}

/// How many chunks there are up to the last that says something. The API refuses thinking that comes after.
fn said_until(message: &Message) -> usize {
    message.iter().rposition(is_said).map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests;
