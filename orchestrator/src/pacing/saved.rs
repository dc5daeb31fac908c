//! What is saved for the next process.

use std::collections::BTreeMap;

use everturn_kernel::Millis;
use everturn_pacing::{Known, Told};
use everturn_wire::{CallerName, Failure, TurnId};
use serde::{Deserialize, Serialize};

use super::Inner;

/// The name of the document in the store. Earlier versions kept one named `gates`, which is ignored: one call finds out again.
pub(super) const NAME: &str = "pacing";

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Saved {
    /// When it was saved. All other times in it are earlier, or derived from earlier ones.
    at: Millis,
    targets: BTreeMap<String, SavedTarget>,
    /// What callers used, as [`everturn_pacing::Counts`]; those of earlier versions are shorter.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    callers: BTreeMap<String, Vec<(u64, u64)>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SavedTarget {
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_at: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closed: Option<Closed>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<Told>,
}

/// A target that refused a call, and has not answered since.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Closed {
    at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint_ends: Option<Millis>,
    probe_at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<TurnId>,
    #[serde(default)]
    is_offline: bool,
    #[serde(default)]
    misses: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
}

/// Returns the document to save.
pub(super) fn json(inner: &Inner, now: Millis) -> serde_json::Result<String> {
    let targets = inner.targets.iter().filter_map(|(name, about)| {
        let known = inner.pacer.known(name, now)?;
        let Known { answered_at, hint_ends, refused, is_offline, misses, .. } = known;
        let closed = known.closed_at.zip(known.probe_at).map(|(at, probe_at)| {
            let failure = about.refusal.clone();
            Closed { at, hint_ends, probe_at, refused, is_offline, misses, failure }
        });
        Some((name.clone(), SavedTarget { answered_at, closed, limits: known.limits }))
    });
    let callers = inner.pacer.counts_of_callers(now).into_iter();
    let callers = callers.map(|(name, counts)| (name.to_string(), counts.to_vec())).collect();
    serde_json::to_string(&Saved { at: now, targets: targets.collect(), callers })
}

/// Adds everything that is not out of date. If the clock was set back since the save, all times are moved back with it.
pub(super) fn restore(json: &str, inner: &mut Inner, is_shared: bool, now: Millis) {
    let Saved { at, targets, callers } = match serde_json::from_str(json) {
        Ok(saved) => saved,
        // From another version, or damaged. The next turn will find out again.
        Err(error) => {
            tracing::warn!(%error, "saved limits of targets cannot be read; ignoring them");
            return;
        }
    };
    // What several processes used together, they tell each other.
    for (name, saved) in callers.into_iter().filter(|_| !is_shared) {
        if let Ok(name) = CallerName::parse(&name) {
            let mut counts = everturn_pacing::Counts::default();
            counts.iter_mut().zip(saved).for_each(|(count, saved)| *count = saved);
            inner.pacer.restore_caller(&name, counts);
        }
    }
    let back = at.since(now);
    let moved = |at: Millis| Millis(at.0.saturating_sub(back));
    for (name, SavedTarget { answered_at, closed, limits }) in targets {
        let mut known =
            Known { at: moved(at), answered_at: answered_at.map(moved), limits, ..Known::default() };
        let about = inner.about(&name);
        about.saved_at = now;
        if let Some(Closed { at, hint_ends, probe_at, refused, is_offline, misses, failure }) = closed {
            (known.closed_at, known.hint_ends) = (Some(moved(at)), hint_ends.map(moved));
            (known.probe_at, known.refused) = (Some(moved(probe_at)), refused);
            (known.is_offline, known.misses) = (is_offline, misses);
            about.refusal = failure;
        }
        inner.pacer.restore(&name, &known, now);
    }
}
