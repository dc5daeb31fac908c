//! The order of a conversation's states, as the answers force it.

use std::collections::{BTreeMap, HashMap, HashSet};

use everturn_orchestrator::Version;

use super::{Append, Operation, Outcome, Told};

/// The states of a conversation in order, each named by the mark of the append that led to it.
pub(super) struct Order<'h> {
    states: Vec<&'h str>,
    /// The number of those before the removal.
    before_removal: usize,
    is_removed: bool,
    /// What may have been stored and nobody saw: the version that it expected, and when it began.
    unseen: Vec<(Version, u64)>,
    of_mark: HashMap<&'h str, usize>,
    of_version: BTreeMap<Version, usize>,
}

/// What the answers say about appends, one by one.
#[derive(Default)]
struct Facts<'h> {
    appends: HashMap<&'h str, &'h Append>,
    /// The version of each, as far as it was told.
    versions: HashMap<&'h str, Version>,
    marks: BTreeMap<Version, &'h str>,
    stored: HashSet<&'h str>,
    wrong: Vec<String>,
}

impl<'h> Facts<'h> {
    fn of(history: &'h [Operation]) -> Self {
        let mut facts = Self::default();
        for operation in history {
            if let Told::Appended(append) = &operation.told {
                let before = facts.appends.insert(&append.mark, append);
                assert!(before.is_none(), "two appends have the mark {}", append.mark);
            }
        }
        for operation in history {
            match &operation.told {
                Told::Appended(Append { mark, outcome: Outcome::Stored(version), .. })
                | Told::Loaded(Some((version, mark))) => {
                    facts.saw(mark);
                    facts.bind(mark, *version);
                }
                Told::Listed(Some(mark)) => facts.saw(mark),
                Told::Read { marks, .. } => marks.iter().for_each(|mark| facts.saw(mark)),
                _ => {}
            }
        }
        facts
    }

    fn saw(&mut self, mark: &'h str) {
        if !self.stored.insert(mark) {
            return;
        }
        match self.appends.get(mark).map(|append| append.outcome) {
            None => self.wrong.push(format!("{mark} is read, which nobody appended")),
            Some(outcome @ (Outcome::Stale(_) | Outcome::NotStored)) => {
                self.wrong.push(format!("{mark} is read, and was told {outcome:?}"));
            }
            Some(Outcome::Stored(_) | Outcome::Unknown) => {}
        }
    }

    fn bind(&mut self, mark: &'h str, version: Version) {
        let (known, other) =
            (*self.versions.entry(mark).or_insert(version), *self.marks.entry(version).or_insert(mark));
        if known != version {
            self.wrong.push(format!("{mark} has the versions {} and {}", known.0, version.0));
        }
        if other != mark {
            self.wrong.push(format!("{other} and {mark} both have version {}", version.0));
        }
    }

    /// Returns what is stored in a life that begins with this append.
    fn life(&self, first: &'h str, following: &mut BTreeMap<Version, &'h str>) -> Vec<&'h str> {
        let mut life = vec![first];
        let mut last = first;
        while let Some(next) = self.versions.get(last).and_then(|version| following.remove(version)) {
            life.push(next);
            last = next;
        }
        life
    }
}

impl<'h> Order<'h> {
    /// Returns the order, or why there is none.
    pub(super) fn of(history: &'h [Operation]) -> Result<Self, Vec<String>> {
        let facts = Facts::of(history);
        if !facts.wrong.is_empty() {
            return Err(facts.wrong);
        }
        let mut wrong = Vec::new();
        let (mut first, mut following) = (Vec::new(), BTreeMap::new());
        for mark in &facts.stored {
            let expected = facts.appends[mark].expected;
            if expected == Version(0) {
                first.push(*mark);
            } else if let Some(other) = following.insert(expected, *mark) {
                wrong.push(format!("{other} and {mark} both follow version {}", expected.0));
            }
        }
        first.sort_by_key(|mark| facts.versions.get(mark).copied().unwrap_or(Version(u64::MAX)));
        let removal = history.iter().find(|one| matches!(one.told, Told::Removed(Some(true) | None)));
        if first.len() > 1 + usize::from(removal.is_some()) {
            wrong.push(format!("{first:?} all begin it"));
        }
        let lives: Vec<_> = first.into_iter().map(|first| facts.life(first, &mut following)).collect();
        for (expected, mark) in following {
            wrong.push(format!("{mark} follows version {}, which is lost", expected.0));
        }
        let states = lives.concat();
        let version = |mark: &&str| facts.versions.get(mark).copied();
        let versions: Vec<_> = states.iter().filter_map(version).collect();
        if let Some(pair) = versions.windows(2).find(|pair| pair[0] >= pair[1]) {
            wrong.push(format!("version {} follows version {}", pair[1].0, pair[0].0));
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let of_mark: HashMap<_, _> = states.iter().enumerate().map(|(at, mark)| (*mark, at)).collect();
        let of_version = facts.marks.iter().map(|(version, mark)| (*version, of_mark[mark])).collect();
        let before_removal = lives.first().map_or(0, Vec::len);
        let unseen = |one: &Operation| match &one.told {
            Told::Appended(append) if one.is_open() && !of_mark.contains_key(&*append.mark) => {
                Some((append.expected, one.began))
            }
            _ => None,
        };
        let unseen = history.iter().filter_map(unseen).collect();
        Ok(Self { states, before_removal, is_removed: removal.is_some(), unseen, of_mark, of_version })
    }

    /// Returns the places that an operation may have, in order; none if it says nothing.
    pub(super) fn places(&self, operation: &Operation) -> Result<Vec<u64>, String> {
        match &operation.told {
            Told::Appended(append) => self.places_of_append(append, operation.ended),
            Told::Loaded(None) | Told::Listed(None) | Told::Removed(Some(false)) => Ok(self.absent()),
            Told::Loaded(Some((_, mark))) | Told::Listed(Some(mark)) => {
                Ok(vec![self.place(self.of_mark[mark.as_str()])])
            }
            Told::Read { marks, from } => {
                let Some(last) = marks.last() else { return Ok(self.absent()) };
                let last = self.of_mark[last.as_str()];
                let begin = if last < self.before_removal { 0 } else { self.before_removal };
                // Nothing before it is asked for. It may be of the conversation that was removed.
                let known = from.as_ref().and_then(|from| self.of_mark.get(from.as_str()));
                let begin = begin.max(known.copied().unwrap_or(0));
                let expected = self.states.get(begin..=last).unwrap_or_default();
                if expected == marks {
                    return Ok(vec![self.place(last)]);
                }
                Err(format!("stored is {expected:?}"))
            }
            Told::Removed(Some(true)) if self.before_removal == 0 => Err("nothing was there".to_owned()),
            Told::Removed(_) => Ok(vec![self.removal()]),
        }
    }

    fn places_of_append(&self, append: &Append, ended: u64) -> Result<Vec<u64>, String> {
        match append.outcome {
            Outcome::Stale(found) if found == append.expected => {
                Err("it is refused although that is the version".to_owned())
            }
            Outcome::Stale(Version(0)) => Ok(self.absent()),
            Outcome::Stale(found) => {
                let last = self.of_version.range(..=found).next_back();
                let (version, at) = last.ok_or("nobody stored that version")?;
                if *version == found {
                    return Ok(vec![self.place(*at)]);
                }
                let may_be = |(after, began): &(Version, u64)| after == version && *began < ended;
                let is_unseen = self.is_last(*at) && self.unseen.iter().any(may_be);
                // Only read or listed, never loaded, so nobody was told its version.
                let next = at + 1;
                let is_next = next < self.states.len() && !self.of_version.values().any(|at| *at == next);
                let places = [(is_unseen, *at), (is_next, next)].into_iter();
                let places: Vec<_> =
                    places.filter(|(may_be, _)| *may_be).map(|(_, at)| self.place(at)).collect();
                if places.is_empty() {
                    let after = (version, self.states[*at], self.states.get(next));
                    let (unseen, removal) = (&self.unseen, self.before_removal);
                    return Err(format!(
                        "nobody stored that version, which would be after {after:?}, state {next} of {removal} before the \
                         removal; unseen after a version, from a time on: {unseen:?}"
                    ));
                }
                Ok(places)
            }
            Outcome::NotStored => Ok(Vec::new()),
            Outcome::Stored(_) | Outcome::Unknown => {
                Ok(self.of_mark.get(append.mark.as_str()).map(|at| self.place(*at) - 1).into_iter().collect())
            }
        }
    }

    /// Whether no other state of the same life is known to follow.
    fn is_last(&self, state: usize) -> bool {
        state + 1 == self.before_removal || state + 1 == self.states.len()
    }

    /// The place of a state. Just before it is that of its append.
    fn place(&self, state: usize) -> u64 {
        let removal = if state < self.before_removal { 0 } else { 2 };
        2 * state as u64 + 2 + removal
    }

    fn removal(&self) -> u64 {
        2 * self.before_removal as u64 + 1
    }

    fn absent(&self) -> Vec<u64> {
        if self.is_removed { vec![0, self.removal() + 1] } else { vec![0] }
    }
}
