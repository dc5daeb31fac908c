//! Tool calls, in fragments and complete.

use std::mem;

use super::ResponsesReader;
use crate::{
    assembly::{Fragment, Wholeness},
    exchange::{Facts, Flaw},
    responses::{
        frame::{FunctionCall, Piece},
        output::Kind,
    },
};

impl ResponsesReader {
    /// Handles a call as an item. Its arguments may still be missing.
    pub(super) fn call(&mut self, at: usize, call: &FunctionCall) -> Result<(), Flaw> {
        let again = mem::replace(&mut self.output.entry(at).met, true);
        let echo = if again { None } else { self.retained.take(&self.origin) };
        let id = call.call_id.as_deref().or(call.id.as_deref()).unwrap_or_default();
        let name = call.name.as_deref().unwrap_or_default();
        let fragment = Fragment { id, name, arguments: &call.arguments(), ..Fragment::default() };
        self.answer.whole_call(Fragment { index: Some(at as u64), echo: echo.as_ref(), ..fragment })
    }

    pub(super) fn arguments(
        &mut self,
        mut piece: Piece,
        is_whole: bool,
        facts: &mut Facts,
    ) -> Result<(), Flaw> {
        let at = self.output.find(piece.sign(Kind::Call))?;
        let arguments = piece.take();
        if arguments.is_empty() {
            return Ok(());
        }
        let name = piece.name.as_deref().unwrap_or_default();
        let fragment =
            Fragment { index: Some(at as u64), name, arguments: &arguments, ..Fragment::default() };
        let is_first = mem::replace(&mut self.output.entry(at).parts, 1) == 0;
        // Arguments that arrived complete with the item are repeated, not continued.
        if is_whole || is_first {
            self.answer.whole_call(fragment)?;
        } else {
            self.answer.call(fragment)?;
        }
        if is_whole {
            self.answer.call_ended(at as u64, Wholeness::Arguments, facts);
        }
        Ok(())
    }
}
