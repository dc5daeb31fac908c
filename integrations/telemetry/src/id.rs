//! Ids of traces and spans, derived from turn ids.
//!
//! A turn may wait for hours and be finished by another process. Because its ids are derived, the second process
//! continues the first one's trace, and nothing has to be saved for that.

use everturn_kernel::Op;
use everturn_wire::{ConversationId, TraceContext, TurnId};
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId};
use sha2::{Digest as _, Sha256};

/// What a span represents.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'a> {
    Turn,
    Step(u32),
    Call(Op),
    Tool(u32, &'a str),
}

/// The trace of a turn.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub(crate) id: TraceId,
    /// The caller's span, in another process, that the turn belongs to.
    pub(crate) caller: Option<SpanContext>,
    /// A hash of the turn's id, from which all ids are derived.
    seed: Sha256,
}

impl Trace {
    pub(crate) fn of(conversation: &ConversationId, turn: &TurnId, caller: Option<&TraceContext>) -> Self {
        let mut seed = Sha256::new();
        for id in [conversation.as_str(), turn.as_str()] {
            seed.update((id.len() as u64).to_be_bytes());
            seed.update(id);
        }
        let caller = caller.and_then(remote);
        let derived = || {
            let (digest, mut id) = (seed.clone().chain_update(b"trace").finalize(), [0; 16]);
            id.copy_from_slice(&digest[..16]);
            TraceId::from_bytes(id)
        };
        let id = caller.as_ref().map_or_else(derived, SpanContext::trace_id);
        Self { id, caller, seed }
    }

    /// Returns the id of a span of this trace.
    pub(crate) fn span(&self, part: Part<'_>) -> SpanId {
        let seed = self.seed.clone();
        let digest = match part {
            Part::Turn => seed.chain_update(b"turn"),
            Part::Step(step) => seed.chain_update(b"step").chain_update(step.to_be_bytes()),
            Part::Call(Op { step, attempt }) => seed
                .chain_update(b"call")
                .chain_update(step.to_be_bytes())
                .chain_update(attempt.to_be_bytes()),
            Part::Tool(step, call) => {
                seed.chain_update(b"tool").chain_update(step.to_be_bytes()).chain_update(call)
            }
        }
        .finalize();
        let mut id = [0; 8];
        id.copy_from_slice(&digest[..8]);
        SpanId::from_bytes(id)
    }
}

/// Returns the parent span that a request names.
fn remote(context: &TraceContext) -> Option<SpanContext> {
    let mut fields = context.parent().split('-').skip(1);
    let trace = TraceId::from_hex(fields.next()?).ok()?;
    let span = SpanId::from_hex(fields.next()?).ok()?;
    let flags = TraceFlags::new(u8::from_str_radix(fields.next()?, 16).ok()?);
    let state = context.state().and_then(|state| state.parse().ok()).unwrap_or_default();
    Some(SpanContext::new(trace, span, flags, true, state))
}
