//! One call: what others see of it, and what they may order.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use everturn_wire::{CallInfo, CallPhase, ConversationId};
use tokio::sync::{broadcast, mpsc};

use super::{key::CallKey, tape::Tape};
use crate::{clock::Clock, memory::Account};

/// What a call is told from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Ask again now.
    RetryNow,
    /// End with the last refusal.
    GiveUp,
    /// The limit that it waits for is gone.
    Release,
    /// Nobody wants the rest of the answer.
    Stop,
    /// End without an answer, because the process does or nobody listens.
    Leave,
}

/// One call.
pub(super) struct Call {
    pub(super) id: ConversationId,
    pub(super) key: CallKey,
    pub(super) tape: Arc<Tape>,
    pub(super) orders: mpsc::Sender<Order>,
    /// Its `waited_ms` has the present wait whole.
    state: Mutex<CallInfo>,
    pub(super) clock: Arc<dyn Clock>,
    changes: broadcast::Sender<Arc<CallInfo>>,
}

/// Number of orders that wait to be read. More are dropped: they say the same.
pub(super) const ORDERS: usize = 8;

impl Call {
    pub(super) fn new(
        id: ConversationId,
        key: CallKey,
        account: Account,
        orders: mpsc::Sender<Order>,
        state: CallInfo,
        clock: Arc<dyn Clock>,
        changes: broadcast::Sender<Arc<CallInfo>>,
    ) -> Self {
        let (tape, state) = (Arc::new(Tape::new(account)), Mutex::new(state));
        Self { id, key, tape, orders, state, clock, changes }
    }

    /// Tells subscribers how it is now.
    pub(super) fn tell(&self) {
        if self.changes.receiver_count() > 0 {
            let _ = self.changes.send(Arc::new(self.state()));
        }
    }

    /// Tells subscribers that it is over, and no longer listed.
    pub(super) fn tell_end(&self) {
        if self.changes.receiver_count() > 0 {
            let end = CallInfo { phase: CallPhase::Ended, next_at: None, ..self.state() };
            let _ = self.changes.send(Arc::new(end));
        }
    }

    pub(super) fn order(&self, order: Order) -> bool {
        self.orders.try_send(order).is_ok()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, CallInfo> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn state(&self) -> CallInfo {
        let listeners = self.tape.listeners();
        let mut state = CallInfo { listeners, ..self.lock().clone() };
        let left = state.next_at.map_or(0, |at| at.saturating_sub(self.clock.now().0));
        state.waited_ms = state.waited_ms.saturating_sub(left);
        if self.tape.is_over() {
            (state.phase, state.next_at) = (CallPhase::Kept, None);
        } else if self.tape.is_shown() {
            (state.phase, state.next_at) = (CallPhase::Answering, None);
        }
        state
    }
}
