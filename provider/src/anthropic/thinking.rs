//! Thinking: how it is requested, and which of it is sent back.

use everturn_kernel::Request;
use everturn_wire::{Chunk, Message, Role, Value};
use serde_json::{Map, json};

/// Minimum thinking budget that the API accepts, in tokens.
const LEAST_BUDGET: u32 = 1024;

/// Thinking in one request.
///
/// Thinking of the running turn is sent back, as the API demands with tool use. Thinking of earlier turns is not: newer
/// models bind it to everything before it, and would reject the conversation for ever once its instructions or tools
/// have changed.
#[derive(Debug)]
pub(super) struct Thinking<'a> {
    origin: &'a str,
    way: Way<'a>,
    /// Index of the first message of the turn.
    begin: usize,
}

#[derive(Debug, PartialEq)]
enum Way<'a> {
    /// The model's default, with this effort if set.
    Own(Option<&'a str>),
    /// A budget in tokens.
    Budget(u32),
    /// Disabled for this request.
    Paused,
    Never,
}

impl<'a> Thinking<'a> {
    /// Determines the thinking of a request. `origin` identifies this endpoint's signatures; `extra` fields take
    /// precedence.
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
        // Tool results must follow thinking that led to the calls, or thinking must not be requested.
        let is_refused =
            has_budget && place.after_results && !is_signed(&request.messages[place.begin..], origin);
        let way = if is_refused { Way::Paused } else { way };
        Self { origin, way, begin: place.begin }
    }

    /// Adds the request for thinking.
    pub(super) fn ask(&self, body: &mut Map<String, Value>, max_tokens: u32) {
        match self.way {
            Way::Own(None) | Way::Paused => {}
            Way::Own(Some(effort)) => {
                body.insert("output_config".to_owned(), json!({ "effort": effort }));
            }
            Way::Budget(budget) => {
                body.insert("thinking".to_owned(), json!({ "type": "enabled", "budget_tokens": budget }));
                if max_tokens <= budget {
                    // The budget is part of the output limit. The API rejects a budget that leaves no room for the
                    // answer.
                    body.insert("max_tokens".to_owned(), json!(budget.saturating_add(max_tokens)));
                }
            }
            Way::Never => {
                body.insert("thinking".to_owned(), json!({ "type": "disabled" }));
            }
        }
    }

    /// Removes the request for thinking if it is disabled for this request.
    pub(super) fn pause(&self, body: &mut Map<String, Value>) {
        if self.way == Way::Paused {
            body.shift_remove("thinking");
        }
    }

    /// Returns the chunks of the message at `index` that are sent.
    pub(super) fn kept<'m>(&self, index: usize, message: &'m Message) -> impl Iterator<Item = &'m Chunk> {
        let goes_back = index >= self.begin && !matches!(self.way, Way::Paused | Way::Never);
        let end = said_until(message);
        let chunks = message.iter().enumerate();
        chunks
            .filter(move |(place, chunk)| !is_thought(chunk) || (goes_back && *place < end))
            .map(|(_, chunk)| chunk)
    }

    /// Returns the thinking block as received, if this endpoint signed it.
    pub(super) fn block(&self, chunk: &Chunk) -> Option<Value> {
        let (text, signed) = signed(chunk, self.origin)?;
        let mut block = signed.clone();
        if block.get("type").is_some_and(|kind| kind == "thinking") {
            block.insert("thinking".to_owned(), json!(text));
        }
        Some(Value::Object(block))
    }
}

/// The state of the running turn.
struct CurrentTurn {
    /// Index of the first message of the turn: the last user message that does not follow tool results.
    begin: usize,
    /// Whether the history ends with tool results, possibly followed by a user message.
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

/// Whether the turn's first assistant content is thinking that may be sent back.
fn is_signed(turn: &[Message], origin: &str) -> bool {
    let answers = turn.iter().filter(|message| message.role == Role::Assistant);
    let mut chunks = answers.flat_map(|message| message.iter().take(said_until(message)));
    let first = chunks.find(|chunk| is_said(chunk) || signed(chunk, origin).is_some());
    first.is_some_and(|chunk| !is_said(chunk))
}

/// Returns thinking signed by this endpoint: its text, and the rest of its block.
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

/// Whether thinking may precede this chunk.
fn is_said(chunk: &Chunk) -> bool {
    match chunk {
        Chunk::Text { text } => !text.trim().is_empty(),
        Chunk::ToolCall { .. } => true,
        _ => false,
    }
}

/// Returns the number of chunks up to the last with content. The API rejects thinking after it.
fn said_until(message: &Message) -> usize {
    message.iter().rposition(is_said).map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests;
