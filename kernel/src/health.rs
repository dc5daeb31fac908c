//! Health: what is known about credentials and models, as data.

use alloc::{collections::BTreeMap, string::String};

use everturn_wire::{Category, Failure};
use serde::{Deserialize, Serialize};

use crate::{Millis, Target, millis::LONGEST_WAIT_MS};

/// How long a mark lasts where the provider named no wait, in milliseconds.
pub const USUAL_MARK_MS: u64 = 60_000;

/// The shortest mark, in milliseconds: a hint of 0 must not make two failing targets take turns without a pause.
pub(crate) const SHORTEST_MARK_MS: u64 = 1_000;

/// What is known about credentials and models: until when they should not be asked. A plain value; its owner shares it
/// between turns and puts it into the questions that schedules are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Health {
    /// Credentials that are used up or refused, by name.
    credentials: BTreeMap<String, Mark>,
    /// Models that are overloaded, whoever asks.
    models: BTreeMap<String, Mark>,
    /// Models that fail or limit one credential, by credential and model.
    pairs: BTreeMap<String, BTreeMap<String, Mark>>,
}

/// Until when something should not be asked, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// When the failure was.
    pub at: Millis,
    /// When it may be asked again.
    pub until: Millis,
    /// The kind of the failure.
    pub category: Category,
    /// Whether the provider named the wait. Otherwise it is a guess.
    pub hinted: bool,
}

impl Health {
    /// Nothing is known.
    pub const fn new() -> Self {
        Self { credentials: BTreeMap::new(), models: BTreeMap::new(), pairs: BTreeMap::new() }
    }

    /// Notes that a target failed. The mark lasts as long as the provider's hint, else 60 s, and at least 1 s. A newer hint
    /// replaces an older mark of the same kind; otherwise a mark never becomes shorter. A failure that is about the request
    /// leaves no mark.
    pub fn note(&mut self, now: Millis, target: &Target, failure: &Failure) {
        self.fail(now, target, failure.category, failure.hint_ms);
    }

    /// Marks what a failure of this kind is about.
    pub(crate) fn fail(&mut self, at: Millis, target: &Target, category: Category, hint_ms: Option<u64>) {
        let until = at.plus(hint_ms.unwrap_or(USUAL_MARK_MS).clamp(SHORTEST_MARK_MS, LONGEST_WAIT_MS));
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
            // About the request, or our own: see `is_of_request`. A category of a newer version says nothing here.
            Category::ContextOverflow
            | Category::InvalidRequest
            | Category::ContentPolicy
            | Category::Cancelled
            | Category::Internal
            | _ => {}
        }
    }

    /// Notes that a target answered a call that was made at `asked_at`. Marks from before no longer hold; later ones do: a
    /// long answer says nothing about how the target does now. Returns whether there were any.
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

    /// Returns the unexpired mark on a target that ends last, if any.
    pub fn mark(&self, now: Millis, target: &Target) -> Option<&Mark> {
        self.marks(now, target).max_by_key(|mark| mark.until)
    }

    /// Returns until when the provider itself asked not to be asked: no guess of ours.
    pub(crate) fn walled_until(&self, now: Millis, target: &Target) -> Millis {
        let hinted = self.marks(now, target).filter(|mark| mark.hinted);
        hinted.map(|mark| mark.until).max().unwrap_or(now)
    }

    /// The unexpired marks on a target.
    fn marks(&self, now: Millis, target: &Target) -> impl Iterator<Item = &Mark> {
        let pair = self.pairs.get(&target.credential).and_then(|pairs| pairs.get(&target.model));
        let marks = [self.credentials.get(&target.credential), self.models.get(&target.model), pair];
        marks.into_iter().flatten().filter(move |mark| mark.until > now)
    }

    /// When a target may be asked: now, where nothing is known against it.
    pub fn free_at(&self, now: Millis, target: &Target) -> Millis {
        self.mark(now, target).map_or(now, |mark| mark.until)
    }

    /// Forgets marks that no longer hold.
    pub fn tidy(&mut self, now: Millis) {
        let holds = |mark: &Mark| mark.until > now;
        self.credentials.retain(|_, mark| holds(mark));
        self.models.retain(|_, mark| holds(mark));
        for pairs in self.pairs.values_mut() {
            pairs.retain(|_, mark| holds(mark));
        }
        self.pairs.retain(|_, pairs| !pairs.is_empty());
    }
}

/// Whether a failure is about the target's account or offer, so that another one may well answer.
pub(crate) fn is_of_target(category: Category) -> bool {
    is_refusal(category) || category == Category::QuotaExhausted
}

/// Whether a target refuses until somebody changes something: to wait for it is of no use.
pub(crate) fn is_refusal(category: Category) -> bool {
    matches!(category, Category::Auth | Category::Permission | Category::NotFound)
}

/// Whether a failure says nothing about the target: no other one would do better.
pub(crate) fn is_of_request(category: Category) -> bool {
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
        Some(held) if held.until >= mark.until => {}
        Some(held) => *held = mark,
        None => {
            marks.insert(name, mark);
        }
    }
}
