//! Pacing and callers: what each may use, and what it is told.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use everturn_kernel::Millis;
use everturn_pacing::{Because, Held, Kind, Terms, Wait};
use everturn_wire::{CallerName, Category, Failure};
use tokio::runtime::Handle;

use super::{Asker, Inner, Pacing};
use crate::{
    Money,
    journal::NodeId,
    notice::{Notice, UsedByCaller},
};

/// Minimum interval between saves of what callers used. What was used since is lost if the process ends.
const SAVE: Duration = Duration::from_millis(500);

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

    /// Another node told what a caller used there.
    pub(crate) fn hear_of_caller(self: &Arc<Self>, used: &UsedByCaller) {
        let Ok(caller) = CallerName::parse(&used.caller) else { return };
        self.lock().pacer.used_elsewhere(&caller, &used.node.0, used.used());
    }

    /// Whether a call waits for one of its caller's own to end. Nobody knows when that is.
    pub(super) fn is_open_ended(&self, asker: &Asker, wait: Wait, now: Millis) -> bool {
        let held = || self.lock().pacer.held(asker.caller.as_ref(), asker.size, now);
        wait.because == Because::CallerLimit && held().is_some_and(|held| held.kind == Kind::Parallel)
    }

    pub(super) fn is_limited_in_money(&self, asker: &Asker) -> bool {
        self.lock().pacer.is_limited_in_money(asker.caller.as_ref())
    }

    /// Saves what a caller used: now, or with what others use in the next moment.
    pub(super) fn keep_counts(self: &Arc<Self>, caller: Option<&CallerName>) {
        let mut inner = self.lock();
        // The first is the usual case, and costs no look for the caller.
        if inner.saves_counts == Some(true) || !inner.pacer.is_limited(caller) {
            return;
        }
        if let Some(has_more) = &mut inner.saves_counts {
            *has_more = true;
            return;
        }
        // No runtime: the process is ending, and makes no call either.
        let (Ok(runtime), Some(clock)) = (Handle::try_current(), self.woken.clock()) else { return };
        inner.saves_counts = Some(false);
        drop(inner);
        self.changed.send_replace(());
        let saving = Saving(Arc::downgrade(self));
        runtime.spawn(async move {
            clock.sleep(SAVE).await;
            drop(saving);
        });
    }
}

/// As long as this exists, what callers use is not saved at once. Also ends with its runtime.
struct Saving(Weak<Pacing>);

impl Drop for Saving {
    fn drop(&mut self) {
        let Some(pacing) = self.0.upgrade() else { return };
        if pacing.lock().saves_counts.take() == Some(true) {
            pacing.changed.send_replace(());
        }
    }
}

/// Why a call is not made whose caller has a limit in money.
pub(super) fn unpriced(model: &str) -> Failure {
    let why = format!(
        "this server limits what its caller may spend, and knows no price of {model}: ask for another model, or have a [[price]] \
         added to its configuration"
    );
    Failure { code: Some("403".to_owned()), ..Failure::new(Category::Permission, false, why) }
}

impl Inner {
    /// Returns what to tell other nodes of callers with limits.
    pub(super) fn news_of_callers(&mut self, node: &NodeId, now: Millis) -> Vec<Notice> {
        if !self.has_limits || self.demands.nodes.is_empty() {
            return Vec::new();
        }
        let mut news = Vec::new();
        for (caller, used) in self.pacer.used_by_callers(now) {
            if !self.pacer.is_limited(Some(&caller)) {
                continue;
            }
            // Also if no other node is left, which ends the division.
            self.pacer.told(&caller, &node.0, &self.demands.nodes, used.clone());
            if self.demands.nodes.len() < 2 {
                continue;
            }
            if self.demands.told_of_callers.insert(caller.clone(), used.clone()).as_ref() != Some(&used) {
                news.push(Notice::Caller(UsedByCaller::new(&caller, node, used)));
            }
        }
        news
    }

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
    let allows = match kind {
        Kind::RequestsPerMinute => format!("{limit} requests a minute, which were made"),
        Kind::TokensPerMinute => {
            format!("{limit} tokens a minute, and this call may need more than are left")
        }
        Kind::TokensPerDay => format!("{limit} tokens a day, and this call may need more than are left"),
        Kind::Parallel if limit == 1 => "one call at a time, and one is running".to_owned(),
        Kind::Parallel => format!("{limit} calls at a time, and these are running"),
        Kind::MoneyPerDay => {
            format!("to spend {} a day, and this call may cost more than is left", Money(limit))
        }
    };
    format!("this server allows its caller {allows}")
}
