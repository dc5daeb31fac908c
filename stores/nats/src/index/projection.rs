//! What the last append and the title of each conversation say: its place in the list, its head, and what its turn waits
//! for.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, hash_map::DefaultHasher},
    hash::{Hash as _, Hasher as _},
    ops::Bound,
};

use everturn_ports::{Cursor, Head, Listed, NodeId, Page, Unsealed, Wait, kernel::Millis};
use everturn_wire::{ConversationId, ConversationStatus, DoneReason};

use super::words::{Word, Words};

/// A conversation in the order of the list: latest activity first, then by id.
type Rank = (Reverse<Millis>, ConversationId);

/// The conversations that exist.
#[derive(Debug, Default)]
pub(crate) struct Projection {
    conversations: BTreeMap<ConversationId, Entry>,
    /// Those that are not ephemeral.
    listed: BTreeSet<Rank>,
    /// The same, of each caller.
    of_callers: BTreeMap<Box<str>, BTreeSet<Rank>>,
    /// What their turns wait for. Most conversations have no unsealed turn.
    waits: BTreeMap<ConversationId, Wait>,
    /// Titles that were read before the first append of their conversation.
    early: BTreeMap<ConversationId, (Born, Box<str>)>,
    /// Those whose removal has begun and is not known to be complete.
    interrupted: BTreeSet<ConversationId>,
    words: Words,
}

/// The first append of a conversation, which tells conversations of one name apart, as a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Born(u64);

/// A conversation, in few bytes: there are many.
#[derive(Debug)]
struct Entry {
    version: u64,
    born: Born,
    created_at: Millis,
    last_activity_at: Millis,
    end: u64,
    last_seq: u64,
    title: Box<str>,
    owner: Option<Word>,
    model: Option<Word>,
    end_reason: Option<Word>,
    status: ConversationStatus,
    /// Whether it was given its title by a person. Then no append changes it.
    renamed: bool,
}

/// The last append of a conversation.
#[derive(Debug)]
pub(super) struct Append<'a> {
    pub(super) version: u64,
    pub(super) born: &'a str,
    pub(super) owner: Option<NodeId>,
    pub(super) head: Head,
    pub(super) wait: Option<Wait>,
}

impl Projection {
    /// Takes an append in. Returns what the list shows now, if it showed something else.
    pub(super) fn append(&mut self, id: &ConversationId, append: Append<'_>) -> Option<Listed> {
        let Append { version, born, owner, mut head, wait } = append;
        let born = Born::of(born);
        let was = self.conversations.get(id);
        if was.is_some_and(|was| was.version >= version) {
            return None;
        }
        self.interrupted.remove(id);
        let early = self.early.remove(id).filter(|(of, _)| *of == born);
        let kept = was.filter(|was| was.renamed && was.born == born).map(|was| was.title.clone());
        let given = early.map(|(_, title)| title).or(kept);
        let renamed = given.is_some();
        if let Some(given) = given {
            head.title = given.into();
        }
        let entry = Entry {
            version,
            born,
            created_at: head.created_at,
            last_activity_at: head.last_activity_at,
            end: head.end.value(),
            last_seq: head.last_seq,
            title: head.title.as_str().into(),
            owner: owner.and_then(|owner| self.words.number(&owner.0)),
            model: head.model.as_deref().and_then(|model| self.words.number(model)),
            end_reason: head.end_reason.as_ref().and_then(|reason| self.words.number(reason.as_str())),
            status: head.status,
            renamed,
        };
        if let Some(wait) = wait {
            self.waits.insert(id.clone(), wait);
        } else {
            self.waits.remove(id);
        }
        let is_shown = !id.is_ephemeral();
        let was = self.conversations.insert(id.clone(), entry);
        let moves = was.as_ref().is_none_or(|was| was.last_activity_at != head.last_activity_at);
        if is_shown && moves {
            if let Some(was) = &was {
                self.unlist(id, was.last_activity_at);
            }
            let rank = (Reverse(head.last_activity_at), id.clone());
            if let Some(caller) = id.caller() {
                self.of_callers.entry(caller.into()).or_default().insert(rank.clone());
            }
            self.listed.insert(rank);
        }
        let is = self.conversations.get(id)?;
        let changes = was.is_none_or(|was| !was.looks_like(is));
        (is_shown && changes).then(|| Listed { id: id.clone(), head, wait })
    }

    /// Takes a title in. Returns what the list shows now, if it showed something else.
    pub(super) fn rename(&mut self, id: &ConversationId, born: &str, title: &str) -> Option<Listed> {
        let born = Born::of(born);
        let Some(entry) = self.conversations.get_mut(id).filter(|entry| entry.born == born) else {
            // Its append follows, or it is of an earlier conversation with this name.
            self.early.insert(id.clone(), (born, title.into()));
            return None;
        };
        entry.renamed = true;
        let changes = *entry.title != *title && !id.is_ephemeral();
        if changes {
            entry.title = title.into();
        }
        let entry = self.conversations.get(id).filter(|_| changes)?;
        Some(Listed { id: id.clone(), head: self.head(entry), wait: self.waits.get(id).copied() })
    }

    /// Forgets a conversation. Returns whether it was listed.
    pub(super) fn remove(&mut self, id: &ConversationId) -> bool {
        self.early.remove(id);
        self.waits.remove(id);
        self.interrupted.remove(id);
        let Some(was) = self.conversations.remove(id) else { return false };
        self.unlist(id, was.last_activity_at)
    }

    /// Forgets a conversation whose removal is not complete. Returns whether it was listed.
    pub(super) fn interrupt(&mut self, id: &ConversationId) -> bool {
        let was_listed = self.remove(id);
        self.interrupted.insert(id.clone());
        was_listed
    }

    /// Returns the conversations whose removal is not known to be complete.
    pub(crate) fn interrupted(&self) -> Vec<ConversationId> {
        self.interrupted.iter().cloned().collect()
    }

    /// Removes a conversation from the list. Returns whether it was there.
    fn unlist(&mut self, id: &ConversationId, last_activity_at: Millis) -> bool {
        let rank = (Reverse(last_activity_at), id.clone());
        if let Some(caller) = id.caller()
            && let Some(own) = self.of_callers.get_mut(caller)
        {
            own.remove(&rank);
            if own.is_empty() {
                self.of_callers.remove(caller);
            }
        }
        self.listed.remove(&rank)
    }

    /// Returns a page of the list.
    pub(crate) fn page(&self, page: &Page) -> Vec<(ConversationId, Head)> {
        let from = page.after.as_ref().map_or(Bound::Unbounded, |after| {
            Bound::Excluded((Reverse(after.last_activity_at), after.id.clone()))
        });
        let all = match &page.caller {
            Some(caller) => self.of_callers.get(caller.as_str()),
            None => Some(&self.listed),
        };
        let ranks = all.into_iter().flat_map(|all| all.range((from.clone(), Bound::Unbounded)));
        let ranks = ranks.take(page.limit.unwrap_or(usize::MAX));
        let entries = ranks.filter_map(|(_, id)| Some((id.clone(), self.head(self.conversations.get(id)?))));
        entries.collect()
    }

    /// Returns the unsealed turns that are due before this time, earliest first, then by id.
    pub(crate) fn unsealed(&self, before: Millis) -> Vec<Unsealed> {
        let due = self.waits.iter().filter(|(_, wait)| wait.due_at().is_some_and(|at| at < before));
        let mut due: Vec<_> = due
            .map(|(id, wait)| {
                let owner = self.conversations.get(id).and_then(|entry| entry.owner);
                let owner = owner.map(|owner| NodeId::from(self.words.word(owner)));
                Unsealed { id: id.clone(), wait: *wait, owner }
            })
            .collect();
        // Stable: they are in the order of their ids.
        due.sort_by_key(|turn| turn.wait.due_at());
        due
    }

    /// Returns what the unsealed turns of these conversations wait for.
    pub(super) fn waits(&self, ids: &[&ConversationId]) -> Vec<(ConversationId, Wait)> {
        ids.iter().filter_map(|id| Some(((*id).clone(), *self.waits.get(*id)?))).collect()
    }

    /// Returns the ephemeral conversations whose last activity was before this time and that have no unsealed turn, each with
    /// its version.
    pub(crate) fn idle(&self, since: Millis) -> Vec<(ConversationId, u64)> {
        let ephemeral = self.conversations.range(ConversationId::from(ConversationId::EPHEMERAL)..);
        let ephemeral = ephemeral.take_while(|(id, _)| id.is_ephemeral());
        let idle = ephemeral
            .filter(|(id, entry)| entry.last_activity_at < since && !self.waits.contains_key(*id))
            .map(|(id, entry)| (id.clone(), entry.version));
        idle.collect()
    }

    /// Returns the conversations that were created before this time, or all, each with its version.
    pub(crate) fn created_before(&self, time: Option<Millis>) -> Vec<(ConversationId, u64)> {
        let all = self.conversations.iter();
        let created = all.filter(|(_, entry)| time.is_none_or(|time| entry.created_at < time));
        created.map(|(id, entry)| (id.clone(), entry.version)).collect()
    }

    fn head(&self, entry: &Entry) -> Head {
        let word = |word: Word| self.words.word(word).to_owned();
        Head {
            created_at: entry.created_at,
            last_activity_at: entry.last_activity_at,
            title: entry.title.to_string(),
            status: entry.status,
            end_reason: entry.end_reason.map(|reason| DoneReason::from(word(reason))),
            model: entry.model.map(word),
            end: Cursor::from_value(entry.end),
            last_seq: entry.last_seq,
        }
    }
}

impl Entry {
    /// Whether the list shows the same of both, but for the time of the last activity.
    fn looks_like(&self, other: &Self) -> bool {
        (self.status, self.model, self.end_reason, &self.title)
            == (other.status, other.model, other.end_reason, &other.title)
    }
}

impl Born {
    fn of(append: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        append.hash(&mut hasher);
        Self(hasher.finish())
    }
}

#[cfg(test)]
mod tests;
