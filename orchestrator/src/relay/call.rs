//! One call: what others see of it, and what they may order.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use everturn_kernel::Millis;
use everturn_wire::{Category, ConversationId};
use tokio::sync::mpsc;

use super::{key::CallKey, tape::Tape};

/// What a call is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallPhase {
    /// A provider is being asked, and has said nothing yet.
    Asking,
    /// It waits before the next attempt.
    Waiting,
    /// The answer is being passed on.
    Answering,
    /// It is over; its answer waits for a repeated request.
    Kept,
}

/// A call as people see it: never its content, never a credential.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CallState {
    /// Its id, which begins with `call-`.
    pub id: String,
    /// The caller's program, if it says.
    pub program: Option<String>,
    /// The caller's name of its session, if it says.
    pub session: Option<String>,
    /// The model, as the caller named it.
    pub model: String,
    /// The target that is being asked, or will be asked next.
    pub target: String,
    /// What it is doing.
    pub phase: CallPhase,
    /// When it began.
    pub started_at: Millis,
    /// When the wait ends.
    pub next_at: Option<Millis>,
    /// Number of retries so far.
    pub retries: u32,
    /// Sum of the waits so far, in milliseconds.
    pub waited_ms: u64,
    /// The failure that it waits for.
    pub because: Option<String>,
    /// The failure's category.
    pub category: Option<Category>,
    /// Whether anybody listens.
    pub is_listened_to: bool,
}

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
    state: Mutex<CallState>,
}

/// Number of orders that wait to be read. More are dropped: they say the same.
pub(super) const ORDERS: usize = 8;

impl Call {
    pub(super) fn new(
        id: ConversationId,
        key: CallKey,
        orders: mpsc::Sender<Order>,
        state: CallState,
    ) -> Self {
        Self { id, key, tape: Arc::default(), orders, state: Mutex::new(state) }
    }

    pub(super) fn order(&self, order: Order) -> bool {
        self.orders.try_send(order).is_ok()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, CallState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn state(&self) -> CallState {
        let is_listened_to = self.tape.is_listened_to();
        let mut state = CallState { is_listened_to, ..self.lock().clone() };
        if self.tape.is_over() {
            (state.phase, state.next_at) = (CallPhase::Kept, None);
        } else if self.tape.is_shown() {
            (state.phase, state.next_at) = (CallPhase::Answering, None);
        }
        state
    }
}
