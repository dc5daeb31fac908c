//! Decides when calls may be made, for all turns together, and wakes those that waited, in order.

mod admitted;
mod callers;
mod elsewhere;
mod line;
mod pace;
mod saved;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_kernel::{Hold, Millis};
use everturn_pacing::{Admission, Because, Limits, Pacer, Size, Ticket, Wait};
use everturn_wire::{Category, Failure, TurnId, Unreached};
use tokio::sync::{oneshot, watch};

use crate::{
    JournalError, StateStore,
    clock::Clock,
    notice::{Notice, NoticeSender},
    state::save_changes,
};
pub(crate) use admitted::{Admitted, AdmittedCall, Asker, size};
use elsewhere::Demands;
use line::{Line, Place, Waiter, Woken};
pub(crate) use pace::{Pace, Paced};

/// Minimum interval between saves because a target answered, in milliseconds. That it did is used for a day, so a few
/// minutes make no difference.
const SAVE_ANSWERED_MS: u64 = 5 * 60 * 1_000;

/// The same if the target reports limits, in milliseconds.
const SAVE_LIMITS_MS: u64 = 10_000;

/// The assumed size of an answer before any was measured, in tokens.
const USUAL_OUTPUT: u64 = 500;

/// Decides when calls may be made. Shared by all turns of the process, told to other nodes, and saved for the next process.
#[derive(Default)]
pub(crate) struct Pacing {
    inner: Mutex<Inner>,
    woken: Woken,
    /// Notified of every change to save.
    changed: watch::Sender<()>,
    pub(crate) notices: NoticeSender,
}

#[derive(Default)]
struct Inner {
    pacer: Pacer,
    line: Line,
    /// What is known of each target besides its limits.
    targets: HashMap<String, About>,
    /// What other nodes have to do.
    demands: Demands,
    /// Whether a caller has limits.
    has_limits: bool,
    /// While what callers used was saved just now: whether more was used since.
    saves_counts: Option<bool>,
}

/// What is known of a target besides its limits.
struct About {
    /// The last refusal, which others are told while it lasts.
    refusal: Option<Failure>,
    /// The usual size of its answers, in tokens.
    output: u64,
    /// How much of the estimated input of its calls was neither cached nor estimated in vain, in thousandths.
    fresh: Option<u64>,
    saved_at: Millis,
}

impl Default for About {
    fn default() -> Self {
        Self { refusal: None, output: USUAL_OUTPUT, fresh: None, saved_at: Millis(0) }
    }
}

/// Whether a call may be made.
pub(crate) enum Entry {
    Go(Admitted),
    /// It is in line, and waits for this reason.
    Wait(Wait),
}

impl Pacing {
    /// Restores what an earlier process knew, and saves changes from now on. `is_shared`: whether other processes keep theirs in the
    /// same place.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn keep_in(
        self: &Arc<Self>,
        store: Arc<dyn StateStore>,
        is_shared: bool,
        clock: Arc<dyn Clock>,
    ) -> Result<(), JournalError> {
        if let Some(json) = store.read(saved::NAME).await? {
            saved::restore(&json, &mut self.lock(), is_shared, clock.now());
        }
        let json = move |pacing: &Self| saved::json(&pacing.lock(), clock.now());
        tokio::spawn(save_changes(saved::NAME, Arc::downgrade(self), self.changed.subscribe(), store, json));
        Ok(())
    }

    /// Admits a turn's call, or puts it in line until it is let go: its conversation is then woken.
    pub(crate) fn enter(self: &Arc<Self>, target: &str, asker: &Asker, now: Millis) -> Entry {
        let waiter = asker.conversation.clone().map_or(Waiter::Nobody, Waiter::Turn);
        self.line_up(target, asker, waiter, now)
    }

    /// Waits here until the call may be made, or its wait is one that `ends_it`. Gives its place up if it is dropped, or
    /// returns [`Entry::Wait`].
    pub(crate) async fn admitted(
        self: &Arc<Self>,
        target: &str,
        asker: &Asker,
        clock: &dyn Clock,
        ends_it: impl Fn(Wait) -> bool + Send,
    ) -> Entry {
        let _place = Place { pacing: self, target, turn: &asker.turn, clock };
        loop {
            let (tell, told) = oneshot::channel();
            let wait = match self.line_up(target, asker, Waiter::Here(tell), clock.now()) {
                Entry::Wait(wait) if !ends_it(wait) => wait,
                entry => return entry,
            };
            let left = Duration::from_millis(wait.until.since(clock.now()));
            tokio::select! {
                biased;
                _ = told => {}
                () = clock.sleep(left) => {}
            }
        }
    }

    fn line_up(self: &Arc<Self>, target: &str, asker: &Asker, waiter: Waiter, now: Millis) -> Entry {
        let call = &asker.call();
        let mut inner = self.lock();
        inner.leave_others(target, call.turn, now);
        let Inner { pacer, line, .. } = &mut *inner;
        match pacer.admit(target, call, now) {
            Admission::Go(ticket) => {
                let probes = pacer.is_closed(target);
                drop(inner);
                self.start();
                self.keep_counts(asker.caller.as_ref());
                if probes {
                    let (target, turn) = (target.to_owned(), call.turn.clone());
                    self.notices.tell(&Notice::Probing { target, turn });
                }
                Entry::Go(Admitted::new(self, target, asker, ticket, now))
            }
            Admission::Wait(wait) => {
                line.enter(target, call.turn, waiter);
                drop(inner);
                self.look();
                Entry::Wait(wait)
            }
        }
    }

    /// Counts a call that is made whatever is known of the target.
    ///
    /// # Errors
    /// When a limit of its caller holds it.
    pub(crate) fn insist(
        self: &Arc<Self>,
        target: &str,
        asker: &Asker,
        now: Millis,
    ) -> Result<Admitted, Wait> {
        let mut inner = self.lock();
        inner.leave_others(target, &asker.turn, now);
        let ticket = inner.pacer.insist(target, &asker.call(), now)?;
        drop(inner);
        self.keep_counts(asker.caller.as_ref());
        Ok(Admitted::new(self, target, asker, ticket, now))
    }

    /// The turn no longer wants to call the target.
    pub(crate) fn forget(self: &Arc<Self>, target: &str, turn: &TurnId, now: Millis) {
        self.report(target, |inner| {
            inner.line.leave(turn);
            inner.pacer.forget(target, turn, now);
        });
    }

    /// Returns what a turn is told that has to wait.
    pub(crate) fn hold(&self, target: &str, asker: &Asker, wait: Wait, now: Millis) -> Box<Hold> {
        let inner = self.lock();
        let refusal = match wait.because {
            Because::Hint | Because::Refused | Because::Probe | Because::Offline => {
                inner.targets.get(target).and_then(|about| about.refusal.clone())
            }
            _ => None,
        };
        let own = || Failure::new(Category::RateLimited, true, inner.reason(asker, wait, now));
        let failure = refusal.unwrap_or_else(own);
        let (wait_ms, because) = (wait.until.since(now), wait.because);
        let in_budget = because != Because::Offline;
        Box::new(Hold { failure, wait_ms, shared: true, because, in_budget, open_ended: false })
    }

    /// Returns the usual size of the target's answers, in tokens.
    pub(crate) fn usual_output(&self, target: &str) -> u64 {
        self.lock().targets.get(target).map_or(USUAL_OUTPUT, |about| about.output)
    }

    /// Returns how much of an estimated input its limits will not count, in tokens: by its last calls, most of a coding agent's input
    /// comes from a cache, and an image has fewer tokens than its bytes suggest.
    pub(crate) fn usual_cached(&self, target: &str, input: u64) -> u64 {
        let fresh = self.lock().targets.get(target).and_then(|about| about.fresh);
        fresh.map_or(0, |fresh| input - input.saturating_mul(fresh) / 1_000)
    }

    /// `asked_at`: when the call was made.
    fn heard(self: &Arc<Self>, target: &str, ticket: Ticket, limits: &Limits, asked_at: Millis, now: Millis) {
        let (is_open, is_due) = self.report(target, |inner| {
            let was_closed = inner.pacer.is_closed(target);
            inner.pacer.heard(target, ticket, limits, now);
            let is_open = was_closed && !inner.pacer.is_closed(target);
            let about = inner.about(target);
            let after = if limits.0.is_empty() { SAVE_ANSWERED_MS } else { SAVE_LIMITS_MS };
            let is_due = now.since(about.saved_at) >= after;
            if is_due {
                about.saved_at = now;
            }
            (is_open, is_due)
        });
        if is_open {
            self.tell_open(target, now.since(asked_at));
        }
        if is_open || is_due {
            self.changed.send_replace(());
        }
    }

    fn tell_open(&self, target: &str, asked_ms_ago: u64) {
        self.notices.tell(&Notice::Opened { target: target.to_owned(), asked_ms_ago });
    }

    /// `asked_at`: when the call was made.
    fn refused(
        self: &Arc<Self>,
        target: &str,
        ticket: Ticket,
        failure: &Failure,
        limits: &Limits,
        asked_at: Millis,
        now: Millis,
    ) {
        let is_limit = matches!(failure.category, Category::RateLimited | Category::Overloaded);
        let (is_open, news) = self.report(target, |inner| {
            let was_closed = inner.pacer.is_closed(target);
            inner.pacer.refused(target, ticket, failure, limits, now);
            let is_open = was_closed && !inner.pacer.is_closed(target);
            if !is_limit {
                return (is_open, None);
            }
            inner.about(target).refusal = Some(failure.clone());
            (is_open, inner.news_of_refusal(target, failure, now))
        });
        if let Some(notice) = news {
            self.notices.tell(&notice);
        } else if is_open && failure.unreached.is_none() {
            self.tell_open(target, now.since(asked_at));
        }
        if is_limit || is_open {
            self.changed.send_replace(());
        }
    }

    /// Returns how long the turn waits if the call reached nobody because there is no network.
    fn unreached(
        self: &Arc<Self>,
        target: &str,
        ticket: Ticket,
        asker: &Asker,
        failure: &Failure,
        now: Millis,
    ) -> Option<Box<Hold>> {
        let hold = self.report(target, |inner| {
            let until = inner.pacer.unreached(target, ticket, &asker.call(), failure, now)?;
            let failure = offline(failure);
            inner.about(target).refusal = Some(failure.clone());
            let waiter = asker.conversation.clone().map_or(Waiter::Nobody, Waiter::Turn);
            inner.line.enter(target, &asker.turn, waiter);
            let (wait_ms, because) = (until.since(now), Because::Offline);
            Some(Box::new(Hold {
                failure,
                wait_ms,
                shared: false,
                because,
                in_budget: false,
                open_ended: false,
            }))
        })?;
        self.changed.send_replace(());
        Some(hold)
    }

    fn ended(self: &Arc<Self>, target: &str, ticket: Ticket, estimated: u64, used: Option<Size>) {
        self.report(target, |inner| {
            inner.pacer.ended(target, ticket, used);
            if let Some(used) = used {
                let about = inner.about(target);
                about.output = (about.output * 7 + used.output) / 8;
                let counted = used.input.saturating_sub(used.cached).min(estimated);
                if let Some(fresh) = (counted * 1_000).checked_div(estimated) {
                    about.fresh = Some(about.fresh.map_or(fresh, |known| (known * 3 + fresh) / 4));
                }
            }
        });
    }

    /// Applies a report about a target, and lets those go who need not wait any longer.
    fn report<T>(self: &Arc<Self>, target: &str, report: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.lock();
        let result = report(&mut inner);
        // A call that ends may have held its caller back, whatever target others wait for.
        let has_line = inner.line.waits_for(target) || (inner.has_limits && inner.line.has_any());
        drop(inner);
        if has_line {
            self.look();
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// A turn waits for one target at a time.
    fn leave_others(&mut self, target: &str, turn: &TurnId, now: Millis) {
        if let Some(left) = self.line.leave(turn).filter(|left| **left != *target) {
            self.pacer.forget(&left, turn, now);
        }
    }

    fn about(&mut self, target: &str) -> &mut About {
        self.targets.entry(target.to_owned()).or_default()
    }
}

/// Returns the failure to show while the target cannot be reached.
fn offline(failure: &Failure) -> Failure {
    let waiting = match failure.unreached {
        // It may be a local provider that is not running.
        Some(Unreached::NoConnection) => "No connection, waiting for the provider or the network",
        _ => "Offline, waiting for the network",
    };
    let message = format!("{waiting}: {}", failure.message);
    Failure { message, hint_ms: None, ..failure.clone() }
}

#[cfg(test)]
mod tests;
