//! Pacing and callers: what each may use, and what it is told.

use std::sync::Arc;

use everturn_kernel::Millis;
use everturn_pacing::{Because, Held, Kind, Terms, Wait};
use everturn_wire::CallerName;

use super::{Asker, Inner, Pacing};

/// Minimum interval between saves of what callers used, in milliseconds. What was used since is lost if the process is killed.
const SAVE_MS: u64 = 1_000;

impl Pacing {
    /// Replaces what callers may use. Whoever waits is looked at again.
    pub(crate) fn set_callers(self: &Arc<Self>, all: Vec<(CallerName, Terms)>) {
        let mut inner = self.lock();
        inner.has_limits =
            all.iter().any(|(_, terms)| Kind::ALL.iter().any(|kind| terms.limit(*kind).is_some()));
        inner.pacer.set_callers(all);
        drop(inner);
        self.look();
    }

    /// Saves what a caller used, unless it was saved just now.
    pub(super) fn keep_counts(&self, asker: &Asker, now: Millis) {
        let mut inner = self.lock();
        let is_due = now.since(inner.counts_saved_at) >= SAVE_MS;
        if is_due && inner.pacer.is_limited(asker.caller.as_ref()) {
            inner.counts_saved_at = now;
            drop(inner);
            self.changed.send_replace(());
        }
    }
}

impl Inner {
    /// Says why a call waits.
    pub(super) fn reason(&self, asker: &Asker, wait: Wait, now: Millis) -> String {
        let held = || self.pacer.held(asker.caller.as_ref(), asker.size, now);
        match wait.because {
            Because::CallerLimit => held().map_or_else(|| wait.because.to_string(), told),
            because => because.to_string(),
        }
    }
}

fn told(Held { kind, limit, .. }: Held) -> String {
    let limit = match kind {
        Kind::RequestsPerMinute => format!("{limit} requests a minute"),
        Kind::TokensPerMinute => format!("{limit} tokens a minute"),
        Kind::TokensPerDay => format!("{limit} tokens a day"),
        Kind::Parallel => format!("{limit} calls at once"),
    };
    format!("this server allows its caller {limit}, which are used up")
}
