//! The provider of a world. It follows the script, and checks every request.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_orchestrator::kernel::{Provider, Request, StreamEvent};
use everturn_wire::{Chunk, ConversationId, Message, Role};
use futures_util::stream::{self, BoxStream, StreamExt as _};

use super::{
    book::Book,
    fuse::{Fuse, Point},
    script::{Call, Cue, End, Position, Script, overflow},
    summary,
};

/// The state of the model. It outlives the processes. Clones share it.
#[derive(Clone)]
pub(super) struct Model {
    pub(super) script: Script,
    pub(super) book: Book,
    /// Context size, in bytes of text.
    context: Option<usize>,
    places: Arc<Mutex<HashMap<Position, Asked>>>,
}

/// What happened at a position in the script.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    /// Number of calls.
    pub(super) calls: usize,
    /// Number of calls whose request was too long.
    overflows: usize,
    /// Whether a call ended successfully, and published that.
    pub(super) answered: bool,
    /// The process in which a call failed for good.
    refused_in: Option<usize>,
}

impl Model {
    pub(super) fn new(script: Script, book: Book, context: Option<usize>) -> Self {
        Self { script, book, context, places: Arc::default() }
    }

    /// Returns the model for one process.
    pub(super) fn line(&self, fuse: &Fuse) -> Line {
        Line { model: self.clone(), fuse: fuse.clone() }
    }

    pub(super) fn asked(&self, place: &Position) -> Asked {
        self.places().get(place).copied().unwrap_or_default()
    }

    /// Returns the number of calls made in a conversation.
    pub(super) fn calls_of(&self, id: &ConversationId) -> usize {
        let places = self.places();
        places
            .iter()
            .filter(|(place, _)| conversation(place) == *id)
            .map(|(_, asked)| asked.calls + asked.overflows)
            .sum()
    }

    fn places(&self) -> MutexGuard<'_, HashMap<Position, Asked>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request, and returns the scripted call for it.
    fn take(&self, request: &Request) -> (ConversationId, Position, Call) {
        let for_summary = summary::is_asked(&request.messages);
        let summarized = for_summary.then(|| summary::asked(&request.messages).unwrap_or_default());
        let place = summarized.as_ref().map_or_else(|| place(&request.messages), |(place, _)| place.clone());
        let id = conversation(&place);
        let is_too_long = !for_summary && self.context.is_some_and(|most| length(&request.messages) > most);
        let mut pages = self.book.pages();
        let mut places = self.places();
        let asked = places.entry(place.clone()).or_default();
        let number = asked.calls;
        *(if is_too_long { &mut asked.overflows } else { &mut asked.calls }) += 1;
        pages.note(|| format!("{id}: call {number} for {}.{}, {}", place.0, place.1, request.op));
        let is_saved = pages.time.unsaved.is_none();
        if asked.refused_in == Some(pages.time.life) && is_saved {
            pages.wrong(format!("{id}: asked again for {place:?} after a failure that ends the turn"));
        }
        let messages = &request.messages[usize::from(for_summary)..];
        if let Err(what) = well_formed(messages) {
            pages.wrong(format!("{id}: a request is not well-formed: {what}: {:?}", request.messages));
        }
        let pages = &mut *pages;
        match pages.waits.asked(&id, &place, &pages.time) {
            Ok(true) => pages.tally.count("a wait ends"),
            Ok(false) => {}
            Err(what) => pages.wrong(what),
        }
        let call = match summarized {
            Some((_, text)) => self.script.summary(&place, &text, number),
            None if is_too_long => overflow(),
            None => self.script.call(&place, number),
        };
        (id, place, call)
    }

    /// Records that a call is about to end.
    fn ends(&self, id: &ConversationId, place: &Position, end: End) {
        let mut pages = self.book.pages();
        let mut places = self.places();
        let asked = places.entry(place.clone()).or_default();
        pages.note(|| format!("{id}: the call for {}.{} ends: {end:?}", place.0, place.1));
        match end {
            End::Well => asked.answered = true,
            End::Overflow => pages.tally.count("a history is too long"),
            End::Summary => pages.tally.count("a history is summarized"),
            End::Final => {
                asked.refused_in = Some(pages.time.life);
                pages.tally.count("a call ends the turn");
            }
            End::Passing { hint_ms } => {
                let pages = &mut *pages;
                pages.waits.failed(id, place.clone(), &pages.time, hint_ms);
                pages.tally.count(if hint_ms > 0 {
                    "a failure with a hint"
                } else {
                    "a failure without a hint"
                });
            }
        }
    }
}

/// The model as used by one process.
pub(super) struct Line {
    model: Model,
    fuse: Fuse,
}

impl Provider for Line {
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        let (id, place, call) = self.model.take(&request);
        let (model, fuse) = (self.model.clone(), self.fuse.clone());
        let cues = call.cues.into_iter();
        let spoken = stream::unfold(Some(cues), move |cues| {
            let (model, fuse, id, place) = (model.clone(), fuse.clone(), id.clone(), place.clone());
            async move {
                let mut cues = cues?;
                loop {
                    match cues.next() {
                        Some(Cue::Pause(ms)) => tokio::time::sleep(Duration::from_millis(ms)).await,
                        Some(Cue::Say(event)) => {
                            fuse.pass(Point::Piece).await;
                            let ends = matches!(event, StreamEvent::Finished(_) | StreamEvent::Failed(_));
                            if ends {
                                model.ends(&id, &place, call.end);
                            }
                            return Some((event, (!ends).then_some(cues)));
                        }
                        None => {
                            // Truncates the answer.
                            fuse.pass(Point::Piece).await;
                            model.ends(&id, &place, call.end);
                            return None;
                        }
                    }
                }
            }
        });
        spoken.boxed()
    }
}

/// Returns the conversation; messages begin with its name.
pub(super) fn conversation(place: &Position) -> ConversationId {
    ConversationId::from(place.0.split('.').next().unwrap_or_default())
}

/// Returns the last user message, and the number of assistant messages since.
pub(super) fn place(messages: &[Message]) -> Position {
    let at = messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
    let said = messages.get(at).and_then(|message| message.iter().next_back());
    let Some(Chunk::Text { text }) = said else { return Position::default() };
    let (text, before) = summary::left_off(text).unwrap_or_else(|| (text.clone(), 0));
    let spoken = messages[at..].iter().filter(|message| message.role == Role::Assistant).count();
    (text, before + spoken)
}

/// Returns the size of the text in these messages, in bytes.
fn length(messages: &[Message]) -> usize {
    let length = |chunk: &Chunk| match chunk {
        Chunk::Text { text } | Chunk::Thinking { text, .. } => text.len(),
        Chunk::ToolCall { input, .. } => input.to_string().len(),
        Chunk::ToolResult { content, .. } => content.len(),
        _ => 0,
    };
    messages.iter().flat_map(Message::iter).map(length).sum()
}

/// Checks what every provider requires: no empty messages, and one result per call, directly after it.
pub(super) fn well_formed(messages: &[Message]) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        if message.role != Role::Tool && !open.is_empty() {
            return Err(format!("calls without a result: {open:?}"));
        }
        if message.chunks.is_empty() {
            return Err("an empty message".to_owned());
        }
        for chunk in message.iter() {
            match (message.role, chunk) {
                (Role::User | Role::Assistant, Chunk::Text { text }) if !text.is_empty() => {}
                (Role::Assistant, Chunk::Thinking { text, .. }) if !text.is_empty() => {}
                (Role::Assistant, Chunk::ToolCall { tool_call_id, .. }) => {
                    if open.contains(&tool_call_id.as_str()) {
                        return Err(format!("two calls are named {tool_call_id}"));
                    }
                    open.push(tool_call_id);
                }
                (Role::Tool, Chunk::ToolResult { tool_call_id, .. }) => {
                    let Some(at) = open.iter().position(|id| id == tool_call_id) else {
                        return Err(format!("a result of no call: {tool_call_id}"));
                    };
                    open.swap_remove(at);
                }
                (role, other) => return Err(format!("{role:?} says {other:?}")),
            }
        }
    }
    match messages.last().map(|message| message.role) {
        Some(Role::User | Role::Tool) if open.is_empty() => Ok(()),
        last => Err(format!("it ends with {last:?}, calls without a result: {open:?}")),
    }
}
