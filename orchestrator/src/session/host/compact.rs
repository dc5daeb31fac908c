//! Compaction of a history that does not fit: whether it is needed, and the request for the summary.

use std::sync::Arc;

use everturn_kernel::{Op, Request, StreamEvent, Turn};
use everturn_wire::{Category, Chunk, Failure, Role, StoredChunk};
use futures_core::stream::BoxStream;
use futures_util::{StreamExt as _, future, stream};

use super::TurnHost;
use crate::{
    CompactionRequest,
    model::Model,
    session::{
        branch::standing,
        request,
        summary::{self, Cut},
    },
};

/// The result of preparing a call.
pub(super) enum Prepared {
    /// An ordinary call.
    None,
    /// A call for a summary of the older part.
    Cut(Cut),
    /// No call is made: these are its events.
    Answered(BoxStream<'static, StreamEvent>),
}

impl TurnHost<'_> {
    pub(super) fn summary_of(&self, turn: &Turn, model: &Model) -> Prepared {
        let answered = |event| Prepared::Answered(stream::once(future::ready(event)).boxed());
        if !turn.is_summarizing() {
            let is_full = turn.takes_nearly_full() && self.is_nearly_full(turn, model);
            return if is_full { answered(StreamEvent::NearlyFull) } else { Prepared::None };
        }
        let sent = self.sent(model);
        let Some(cut) = summary::cut(&sent, self.latest().as_deref()) else {
            if let Some(shortened) = summary::shortened(&sent) {
                return answered(StreamEvent::Summary(Box::new(shortened)));
            }
            let text = "the newest message alone does not fit the model's context, and there is nothing before it to summarize: \
                        send less, or choose a model with a larger context";
            return answered(StreamEvent::Failed(Failure::new(Category::ContextOverflow, false, text)));
        };
        let Some(compactor) = self.shared.compactions.compactor.clone() else { return Prepared::Cut(cut) };
        let request = CompactionRequest {
            conversation_id: self.conversation.id.clone(),
            turn_id: self.turn_id.clone(),
            transcript: summary::transcript(&cut),
        };
        Prepared::Answered(stream::once(summary::hooked(compactor, request, cut)).boxed())
    }

    pub(super) fn summary_request(&self, op: Op, model: &Model, cut: &Cut) -> Request {
        let max_output_tokens = self.settings.definition.configured.max_output_tokens;
        Request { max_output_tokens, ..Request::new(op, &model.name, summary::request(cut)) }
    }

    /// Whether the next request is expected to exceed the compaction limit or, without compaction, the context window,
    /// judging by the last measured size and what was added since.
    fn is_nearly_full(&self, turn: &Turn, model: &Model) -> bool {
        let id = model.sibling_of.as_ref().unwrap_or(&model.id);
        let Some(window) = self.shared.models.now().windows.get(id).copied() else { return false };
        let limit =
            if turn.may_compact_ahead() { self.shared.compactions.limit(window) } else { Some(window) };
        let Some(limit) = limit else { return false };
        self.expected_tokens(model) > limit
    }

    /// Estimates the size of the next request: what was measured last, if it is still sent, and what was added since.
    pub(super) fn expected_tokens(&self, model: &Model) -> u64 {
        let measured = self.conversation.state().live.measured;
        let sent = self.sent(model);
        let known = measured.filter(|known| sent.iter().any(|stored| stored.seq == known.seq));
        let (tokens, after) = known.map_or((0, 0), |known| (known.tokens, known.seq));
        let added = sent.iter().filter(|stored| stored.seq > after).map(|stored| &*stored.chunk);
        tokens.saturating_add(summary::tokens(added))
    }

    /// Returns the text of the user's latest message.
    pub(super) fn latest(&self) -> Option<String> {
        let chunks = self.conversation.state().record.chunks.clone();
        let standing = standing(&chunks, self.settings.definition.supersedes);
        standing.iter().rev().find_map(|stored| match &*stored.chunk {
            Chunk::Text { text } if stored.role == Role::User => Some(text.clone()),
            _ => None,
        })
    }

    /// Returns the chunks that are sent to this model.
    fn sent(&self, model: &Model) -> Vec<Arc<StoredChunk>> {
        let chunks = self.conversation.state().record.chunks.clone();
        request::sent(&chunks, self.settings.definition.supersedes, Some(&model.target.model))
    }
}
