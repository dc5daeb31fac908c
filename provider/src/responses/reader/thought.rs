//! Reasoning, and the parts of it to send back.

use super::{PARAGRAPH, ResponsesReader};
use crate::{
    exchange::{Facts, Flaw},
    responses::{
        frame::{Piece, Reasoning},
        output::{Kind, Voice},
    },
};

impl ResponsesReader {
    /// Handles complete reasoning. Its encrypted content is final only now.
    pub(super) fn reasoning(
        &mut self,
        at: usize,
        reasoning: Reasoning,
        facts: &mut Facts,
    ) -> Result<(), Flaw> {
        if self.output.entry(at).parts == 0 {
            for (part, text) in (0..).zip(reasoning.texts()) {
                self.think(at, part, text, facts)?;
            }
        }
        if !self.output.entry(at).ended {
            let grown = self.retained.reasoning(reasoning);
            self.answer.charge(grown)?;
        }
        Ok(())
    }

    pub(super) fn thought(&mut self, mut piece: Piece, voice: Voice, facts: &mut Facts) -> Result<(), Flaw> {
        let at = self.output.find(piece.sign(Kind::Reasoning))?;
        // Some servers send both the reasoning and its summary, or one as the other.
        let is_first = *self.output.entry(at).voice.get_or_insert(voice) == voice;
        if is_first { self.think(at, piece.part(), piece.take(), facts) } else { Ok(()) }
    }

    pub(super) fn think(
        &mut self,
        at: usize,
        part: u64,
        text: String,
        facts: &mut Facts,
    ) -> Result<(), Flaw> {
        if text.is_empty() {
            return Ok(());
        }
        let (entry, next) = (self.output.entry(at), part.saturating_add(1));
        let apart = entry.parts > 0 && next > entry.parts;
        entry.parts = entry.parts.max(next);
        self.answer.reasoning(&if apart { format!("{PARAGRAPH}{text}") } else { text }, facts)
    }
}
