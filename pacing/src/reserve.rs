//! What is kept for interactive calls, so that background calls do not use up a window just before they come.

use everturn_kernel::Millis;

use crate::{log::Log, window::Window};

/// Over which time the demand is measured, in milliseconds.
const MEASURED_MS: u64 = 60_000;

/// The part of a window that is kept before anybody came: a tenth.
const USUAL_PART: u64 = 10;

/// The demand of interactive calls.
#[derive(Clone, Debug)]
pub(crate) struct Reserve {
    calls: Log,
}

impl Reserve {
    pub(crate) fn new() -> Self {
        Self { calls: Log::new(MEASURED_MS) }
    }

    pub(crate) fn add(&mut self, now: Millis) {
        self.calls.add(now);
    }

    /// Returns how much of a window is kept from background calls. Generous, because interactive calls come in bursts;
    /// what is not used is given to background calls as the window ends. `amount`: the size of a call.
    pub(crate) fn of(&mut self, window: &Window, amount: u64, now: Millis) -> u64 {
        let left_ms = window.resets_at().since(now).min(MEASURED_MS);
        let calls = u64::from(self.calls.count(now));
        let expected = calls + calls.isqrt() * 2;
        let usual = window.limit() / USUAL_PART;
        let kept = expected.saturating_mul(amount).max(usual) * left_ms / MEASURED_MS;
        kept.min(window.limit() / 2)
    }
}
