//! Assembles tool calls that arrive in fragments.

use std::{collections::HashSet, mem};

use everturn_kernel::{Arguments, ToolCall};
use everturn_wire::{Echo, Value};
use serde_json::Map;

use crate::bulk::{MOST_VALUES, values};

/// Maximum number of calls in one answer. Models make a handful; a peer that sends more is broken.
const MOST_CALLS: usize = 512;

/// Maximum number of attempts to parse a call's arguments before the end of the answer, because a peer may extend them
/// in tiny fragments.
const MOST_TRIES: u8 = 8;

/// A fragment of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fragment<'a> {
    /// The call's index in the answer, if the API numbers calls.
    pub(crate) index: Option<u64>,
    /// The id; empty if this fragment has none.
    pub(crate) id: &'a str,
    /// The tool's name; empty if this fragment has none.
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a str,
    /// Data to send back with the call.
    pub(crate) echo: Option<&'a Echo>,
}

/// Why the calls of an answer cannot be assembled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AssemblyError {
    #[error("the answer has more than {MOST_CALLS} tool calls")]
    TooMany,
    #[error("the answer has a tool call without a name")]
    Nameless,
    #[error("more arguments arrived for a tool call that was complete")]
    Overrun,
}

/// The calls of one answer, in the order they began.
#[derive(Debug)]
pub(crate) struct Assembly {
    calls: Vec<Partial>,
    /// Ids of the calls already yielded.
    taken: HashSet<String>,
    /// Remaining number of JSON values in arguments.
    room: usize,
}

#[derive(Debug, Default)]
struct Partial {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    echo: Option<Echo>,
    /// Whether the call was yielded, so that only its ids are kept.
    is_released: bool,
    /// Number of failed attempts to parse the arguments.
    tries: u8,
}

/// The certainty that a call is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wholeness {
    /// The arguments are complete if they are a JSON object. An id may still follow.
    Arguments,
    /// Nothing of the call follows. Missing arguments may still mean that the answer was truncated.
    Call,
}

impl Default for Assembly {
    fn default() -> Self {
        Self { calls: Vec::new(), taken: HashSet::new(), room: MOST_VALUES }
    }
}

impl Assembly {
    /// Adds a fragment, whose arguments are appended. Returns the call's position.
    pub(crate) fn add(&mut self, fragment: Fragment<'_>) -> Result<usize, AssemblyError> {
        let place = self.place(fragment)?;
        let call = &mut self.calls[place];
        if !call.is_released {
            call.arguments.push_str(fragment.arguments);
        } else if !fragment.arguments.trim().is_empty() {
            return Err(AssemblyError::Overrun);
        }
        Ok(place)
    }

    /// Adds a call with complete arguments, which replace earlier fragments unless empty. Returns the growth in bytes.
    pub(crate) fn replace(&mut self, fragment: Fragment<'_>) -> Result<usize, AssemblyError> {
        let place = self.place(fragment)?;
        let call = &mut self.calls[place];
        if fragment.arguments.is_empty() || call.is_released {
            return Ok(0);
        }
        let before = mem::replace(&mut call.arguments, fragment.arguments.to_owned()).len();
        Ok(fragment.arguments.len().saturating_sub(before))
    }

    /// Finds or creates the call of a fragment and adds everything but the arguments.
    fn place(&mut self, fragment: Fragment<'_>) -> Result<usize, AssemblyError> {
        let position = match self.position(fragment) {
            Some(position) => position,
            None if self.calls.len() == MOST_CALLS => return Err(AssemblyError::TooMany),
            None => {
                self.calls.push(Partial { index: fragment.index, ..Partial::default() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[position];
        if call.id.is_empty() {
            call.id.push_str(fragment.id);
        }
        // Some servers repeat the name in every fragment.
        if call.name.is_empty() {
            call.name.push_str(fragment.name);
        }
        if call.echo.is_none() {
            call.echo = fragment.echo.cloned();
        }
        Ok(position)
    }

    /// Returns the position of the call that a fragment belongs to; `None` for a new call.
    fn position(&self, fragment: Fragment<'_>) -> Option<usize> {
        let position = match (fragment.index, fragment.id) {
            (Some(index), _) => self.calls.iter().rposition(|call| call.index == Some(index))?,
            (None, "") => self.calls.len().checked_sub(1)?,
            (None, id) => return self.calls.iter().rposition(|call| call.id == id),
        };
        // Some servers do not number calls, or number all of them 0. A fragment with a new name and id begins a new
        // call.
        let call = &self.calls[position];
        let renamed = !fragment.name.is_empty() && !call.name.is_empty();
        let distinct = if fragment.index.is_some() {
            !fragment.id.is_empty() && !call.id.is_empty() && fragment.id != call.id
        } else {
            true
        };
        (!(renamed && distinct)).then_some(position)
    }

    /// Whether there are no calls.
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Takes the call with this index if it may be yielded before the end of the answer.
    pub(crate) fn release(&mut self, index: u64, how: Wholeness, seed: &str) -> Option<ToolCall> {
        let place = self.calls.iter().rposition(|call| call.index == Some(index))?;
        self.release_at(place, how, seed)
    }

    /// Takes the calls other than `current` that may be yielded before the end of the answer.
    pub(crate) fn release_others<'a>(
        &'a mut self,
        current: usize,
        seed: &'a str,
    ) -> impl Iterator<Item = ToolCall> + 'a {
        let others = (0..self.calls.len()).filter(move |place| *place != current);
        others.filter_map(move |place| self.release_at(place, Wholeness::Arguments, seed))
    }

    fn release_at(&mut self, place: usize, how: Wholeness, seed: &str) -> Option<ToolCall> {
        let call = &self.calls[place];
        let is_named = !call.name.is_empty() && (!call.id.is_empty() || how != Wholeness::Arguments);
        let is_whole = call.arguments.trim_end().ends_with('}');
        if call.is_released || !is_named || !is_whole || call.tries == MOST_TRIES {
            return None;
        }
        let mut room = self.room;
        let raw = mem::take(&mut self.calls[place].arguments);
        match arguments(raw, false, &mut room) {
            parsed @ Arguments::Parsed(_) => {
                self.room = room;
                Some(self.tell(place, parsed, seed))
            }
            // Truncated, or not complete yet.
            Arguments::Malformed { raw, .. } => {
                self.calls[place].arguments = raw;
                self.calls[place].tries += 1;
                None
            }
        }
    }

    /// Completes a call, with an id unique in its answer.
    fn tell(&mut self, place: usize, arguments: Arguments, seed: &str) -> ToolCall {
        let partial = &mut self.calls[place];
        partial.is_released = true;
        let mut id = if partial.id.is_empty() { format!("{seed}_{place}") } else { partial.id.clone() };
        let (name, echo) = (partial.name.clone(), partial.echo.take());
        while !self.taken.insert(id.clone()) {
            id = format!("{id}_{place}");
        }
        ToolCall { id, name, arguments, echo }
    }

    /// Returns the remaining calls with unique ids. `seed` is the prefix of ids that the provider omitted. `cut` means
    /// that the answer was truncated, so missing arguments do not count as empty ones.
    pub(crate) fn finish(mut self, seed: &str, cut: bool) -> Result<Vec<ToolCall>, AssemblyError> {
        if self.calls.iter().any(|call| call.name.is_empty()) {
            return Err(AssemblyError::Nameless);
        }
        let mut room = self.room;
        let left: Vec<_> = (0..self.calls.len()).filter(|place| !self.calls[*place].is_released).collect();
        let told = left.into_iter().map(|place| {
            let raw = mem::take(&mut self.calls[place].arguments);
            self.tell(place, arguments(raw, cut, &mut room), seed)
        });
        Ok(told.collect())
    }
}

/// Parses arguments. `room` limits the number of JSON values.
fn arguments(raw: String, cut: bool, room: &mut usize) -> Arguments {
    if raw.trim().is_empty() && !cut {
        return Arguments::Parsed(Value::Object(Map::new()));
    }
    let Some(left) = room.checked_sub(values(&raw)) else {
        let reason = format!("the arguments of this answer have more than {MOST_VALUES} values");
        return Arguments::Malformed { raw, reason };
    };
    *room = left;
    let reason = match serde_json::from_str(&raw) {
        Ok(value @ Value::Object(_)) => return Arguments::Parsed(value),
        Ok(_) => "the arguments are JSON, but not an object".to_owned(),
        Err(_) if cut => "the answer was cut off inside the arguments".to_owned(),
        Err(error) => format!("the arguments are not valid JSON: {error}"),
    };
    Arguments::Malformed { raw, reason }
}

#[cfg(test)]
mod tests;
