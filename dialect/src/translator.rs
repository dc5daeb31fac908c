//! What every streamed dialect does with events.

use crate::{Asked, Event};

/// Translates the events of one turn into a client's frames.
pub trait Translator: Send {
    /// Writes what an event means to the client, if anything.
    fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>);

    /// Writes a comment that keeps the connection alive.
    fn keep_alive(&self, out: &mut Vec<u8>);

    /// The requests for approval that are open, as far as was told.
    fn asked(&self) -> &Asked;

    /// Ends the answer because the turn waits for people alone: they answer with another request.
    fn wait_for_people(&mut self, out: &mut Vec<u8>);

    /// Ends the answer for a reason that the turn does not know of.
    fn fail(&mut self, why: &str, out: &mut Vec<u8>);

    /// Whether all of it was written.
    fn is_over(&self) -> bool;
}
