//! The interface of all streamed dialects.

use crate::{Asked, Event};

/// Translates the events of one turn into a client's frames.
pub trait Translator: Send {
    /// Writes what an event means for the client, if anything.
    fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>);

    /// Writes a comment that keeps the connection alive.
    fn keep_alive(&self, out: &mut Vec<u8>);

    /// Returns the open requests for approval, according to the events so far.
    fn asked(&self) -> &Asked;

    /// Ends the answer because the turn waits only for people, who answer with another request.
    fn wait_for_people(&mut self, out: &mut Vec<u8>);

    /// Ends the answer for a reason outside the turn.
    fn fail(&mut self, why: &str, out: &mut Vec<u8>);

    /// Whether the answer has been written completely.
    fn is_over(&self) -> bool;
}
