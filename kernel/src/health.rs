//! Health: what is known about credentials and models.

use alloc::{collections::BTreeMap, string::String};

use everturn_wire::{Category, Failure};
use serde::{Deserialize, Serialize};

use crate::{Millis, Target, millis::LONGEST_WAIT_MS};

/// Length of a mark if the provider gave no hint, in milliseconds.
pub const USUAL_MARK_MS: u64 = 60_000;

/// Length of a mark for a rejected key, in milliseconds. It is rejected until somebody changes something.
const REJECTED_KEY_MS: u64 = 3_600_000;

/// Minimum length of a mark, in milliseconds. Without it, two targets that fail with a hint of 0 would alternate
/// without a pause.
pub const SHORTEST_MARK_MS: u64 = 1_000;

/// What is known about credentials and models: until when they should not be asked. A plain value. Its owner shares it
/// between turns and passes it in with each question to a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Health {
    /// Credentials that are exhausted or refused, by name.
    credentials: BTreeMap<String, Mark>,
    /// Models that are overloaded for every credential.
    models: BTreeMap<String, Mark>,
    /// Models that fail for, or limit, one credential, by credential and model.
    pairs: BTreeMap<String, BTreeMap<String, Mark>>,
}

/// Until when a credential or model should not be asked, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// The time of the failure.
    pub at: Millis,
    /// The time from which it may be asked again.
    pub until: Millis,
    /// The kind of the failure.
    pub category: Category,
    /// Whether the provider gave the wait as a hint. Otherwise it is an estimate.
    pub hinted: bool,
}

impl Health {
    /// Creates a value with no marks.
    pub const fn new() -> Self {
        Self { credentials: BTreeMap::new(), models: BTreeMap::new(), pairs: BTreeMap::new() }
    }

    /// Records that a target failed. The mark lasts as long as the provider's hint, else 60 s, and at least 1 s; for a
    /// rejected key, an hour, unless [`Self::forget_rejected_keys`] ends it. A
    /// newer hint replaces an older mark of the same kind; otherwise a mark is never shortened. A failure caused by the
    /// request leaves no mark.
    pub fn note(&mut self, now: Millis, target: &Target, failure: &Failure) {
        self.fail(now, target, failure.category, failure.hint_ms);
    }

    /// Marks the credential, the model or the pair that this kind of failure concerns.
    pub(crate) fn fail(&mut self, at: Millis, target: &Target, category: Category, hint_ms: Option<u64>) {
        let usual_ms = if category == Category::Auth { REJECTED_KEY_MS } else { USUAL_MARK_MS };
        let until = at.plus(hint_ms.unwrap_or(usual_ms).clamp(SHORTEST_MARK_MS, LONGEST_WAIT_MS));
        let mark = Mark { at, until, category, hinted: hint_ms.is_some() };
        let (credential, model) = (target.credential.clone(), target.model.clone());
        match category {
            Category::QuotaExhausted | Category::Auth => lengthen(&mut self.credentials, credential, mark),
            Category::Overloaded | Category::ServerError => lengthen(&mut self.models, model, mark),
            Category::RateLimited
            | Category::Network
            | Category::Timeout
            | Category::InvalidResponse
            | Category::NotFound
            | Category::Permission
            | Category::Unknown => lengthen(self.pairs.entry(credential).or_default(), model, mark),
            // Caused by the request, or by this program (see `is_of_request`). A category from a newer version gives no
            // information here.
            Category::ContextOverflow
            | Category::InvalidRequest
            | Category::ContentPolicy
            | Category::Cancelled
            | Category::Internal
            | _ => {}
        }
    }

    /// Removes the marks of rejected keys: something changed, so they may be accepted now. Returns whether there were any.
    pub fn forget_rejected_keys(&mut self) -> bool {
        let before = self.credentials.len();
        self.credentials.retain(|_, mark| mark.category != Category::Auth);
        self.credentials.len() < before
    }

    /// Records that a target answered a call made at `asked_at`. Removes marks set before that time. Later marks stay,
    /// because a long answer says nothing about the target's present state. Returns whether any mark was removed.
    pub fn clear(&mut self, asked_at: Millis, target: &Target) -> bool {
        let forget = |marks: &mut BTreeMap<String, Mark>, name: &str| {
            marks.get(name).is_some_and(|mark| mark.at <= asked_at) && marks.remove(name).is_some()
        };
        let of_credential = forget(&mut self.credentials, &target.credential);
        let of_model = forget(&mut self.models, &target.model);
        let pairs = self.pairs.get_mut(&target.credential);
        let of_pair = pairs.is_some_and(|pairs| forget(pairs, &target.model));
        of_credential || of_model || of_pair
    }

    /// Returns the mark on a target that expires last, if any is unexpired.
    pub fn mark(&self, now: Millis, target: &Target) -> Option<&Mark> {
        self.marks(now, target).max_by_key(|mark| mark.until)
    }

    /// Returns the mark of a target whose key was rejected.
    pub fn rejected_key(&self, now: Millis, target: &Target) -> Option<&Mark> {
        let mark = self.credentials.get(&target.credential);
        mark.filter(|mark| mark.category == Category::Auth && mark.until > now)
    }

    /// Returns the time until which the provider itself asked for no requests. Ignores estimates.
    pub fn walled_until(&self, now: Millis, target: &Target) -> Millis {
        let hinted = self.marks(now, target).filter(|mark| mark.hinted);
        hinted.map(|mark| mark.until).max().unwrap_or(now)
    }

    /// Returns the unexpired marks on a target.
    fn marks(&self, now: Millis, target: &Target) -> impl Iterator<Item = &Mark> {
        let pair = self.pairs.get(&target.credential).and_then(|pairs| pairs.get(&target.model));
        let marks = [self.credentials.get(&target.credential), self.models.get(&target.model), pair];
        marks.into_iter().flatten().filter(move |mark| mark.until > now)
    }

    /// Returns when a target may be asked; `now` if it has no mark.
    pub fn free_at(&self, now: Millis, target: &Target) -> Millis {
        self.mark(now, target).map_or(now, |mark| mark.until)
    }

    /// Removes expired marks. If the clock was set back since a mark was saved, the mark is moved back with it.
    pub fn tidy(&mut self, now: Millis) {
        let holds = |_: &String, mark: &mut Mark| {
            mark.until = Millis(mark.until.0.saturating_sub(mark.at.since(now)));
            mark.at = mark.at.min(now);
            mark.until > now
        };
        self.credentials.retain(holds);
        self.models.retain(holds);
        for pairs in self.pairs.values_mut() {
            pairs.retain(holds);
        }
        self.pairs.retain(|_, pairs| !pairs.is_empty());
    }
}

/// Whether a failure concerns the target's account or model, so that another target may well succeed.
pub fn is_of_target(category: Category) -> bool {
    is_refusal(category) || category == Category::QuotaExhausted
}

/// Whether the same request to the same target can succeed once time has passed. A usage limit with a known end passes
/// like any other, however long it lasts: the budget decides whether to wait for it.
pub fn passes(failure: &Failure) -> bool {
    failure.retryable || (failure.category == Category::QuotaExhausted && failure.hint_ms.is_some())
}

/// Whether a target refuses until somebody changes something, so that waiting does not help.
pub fn is_refusal(category: Category) -> bool {
    matches!(category, Category::Auth | Category::Permission | Category::NotFound)
}

/// Whether a failure says nothing about the target, so that no other target would do better.
pub fn is_of_request(category: Category) -> bool {
    matches!(
        category,
        Category::ContextOverflow
            | Category::InvalidRequest
            | Category::ContentPolicy
            | Category::Cancelled
            | Category::Internal
    )
}

fn lengthen(marks: &mut BTreeMap<String, Mark>, name: String, mark: Mark) {
    match marks.get_mut(&name) {
        Some(held) if mark.hinted && held.category == mark.category && held.at <= mark.at => *held = mark,
        // A key that has reached a limit was accepted.
        Some(held) if held.category == Category::Auth && held.at <= mark.at => *held = mark,
        Some(held) if held.until >= mark.until => {}
        Some(held) => *held = mark,
        None => {
            marks.insert(name, mark);
        }
    }
}
