//! Checks what clients saw against the log of a conversation.
//!
//! Each client's events, over all its connections, must be a reading of the one log: from its first cursor on, with nothing
//! left out, told twice or different, whatever cursors it came back with. Text that was lost in a crash may have been seen,
//! and must have been withdrawn. What was acknowledged must be in the log exactly once, and what was shown must be what the
//! history keeps.
//!
//! Nothing here knows how the log came about; it is pure, and slow.

mod log;
mod reading;
#[cfg(test)]
mod tests;

use everturn_wire::{AgentEvent, StoredChunk};

use log::Ruler;

/// The log of a conversation that has come to rest.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Its events, in order.
    pub events: Vec<Logged>,
    /// Its history.
    pub chunks: Vec<StoredChunk>,
}

/// An event of the log.
#[derive(Clone, Debug)]
pub struct Logged {
    /// The cursor before it.
    pub start: u64,
    /// The cursor after it.
    pub end: u64,
    /// The event. Streamed text may be joined.
    pub event: AgentEvent,
}

/// What a client saw, in order.
#[derive(Clone, Debug, Default)]
pub struct Client {
    /// Its name, for what is wrong.
    pub name: String,
    /// Its connections and what they told it.
    pub seen: Vec<Seen>,
    /// Whether it has read to the end of the log.
    pub is_at_end: bool,
}

/// One thing that a client saw.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all are events")]
pub enum Seen {
    /// It connected, and asked for what follows this cursor: one that it was told, at any time. It forgets what it was
    /// told after that.
    Asked(u64),
    /// It was told an event, and the cursor after it.
    Told(u64, AgentEvent),
}

/// A command of which its sender knows what became.
#[derive(Clone, Debug)]
pub enum Command {
    /// A message was accepted.
    Said(String),
    /// It was given back: it will not be said.
    TakenBack(String),
}

/// Returns what is wrong with what clients saw of a conversation.
pub fn check(log: &Log, clients: &[Client], commands: &[Command]) -> Vec<String> {
    let mut wrong = log::check(log);
    wrong.extend(commands.iter().filter_map(|command| log::lacks(log, command)));
    let ruler = Ruler::of(&log.events);
    for client in clients {
        let found = reading::check(&ruler, client).err();
        wrong.extend(found.map(|what| format!("{}: {what}", client.name)));
    }
    wrong
}

/// Returns how far an event moves the cursor.
fn width(event: &AgentEvent) -> u64 {
    event.body.delta().map_or(1, |text| text.len().max(1) as u64)
}
