//! Tool calls that arrive in fragments.

use std::{collections::HashSet, mem};

use everturn_kernel::{Arguments, ToolCall};
use everturn_wire::{Echo, Value};
use serde_json::Map;

use crate::bulk::{MOST_VALUES, values};

/// The most calls of one answer. A model asks for a handful; a peer that sends more is broken.
const MOST_CALLS: usize = 512;

/// How often the arguments of a call are parsed before its answer has ended. They may grow in between, and a peer may have
/// them grow by little.
const MOST_TRIES: u8 = 8;

/// A piece of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fragment<'a> {
    /// Its place among the answer's calls, where the API counts them.
    pub(crate) index: Option<u64>,
    /// Empty where this piece does not say.
    pub(crate) id: &'a str,
    /// Empty where this piece does not say.
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a str,
    /// What the provider wants back with the call.
    pub(crate) echo: Option<&'a Echo>,
}

/// The calls of an answer that cannot be put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AssemblyError {
    #[error("the answer has more than {MOST_CALLS} tool calls")]
    TooMany,
    #[error("the answer has a tool call without a name")]
    Nameless,
    #[error("more arguments arrived for a tool call that was complete")]
    Overrun,
}

/// The calls of one answer, in the order in which they began.
#[derive(Debug)]
pub(crate) struct Assembly {
    calls: Vec<Partial>,
    /// The ids of the calls that were released.
    taken: HashSet<String>,
    /// How many values the arguments of the others may have.
    room: usize,
}

#[derive(Debug, Default)]
struct Partial {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    echo: Option<Echo>,
    /// Whether it was released, and only its names are left here.
    is_released: bool,
    /// How often its arguments were parsed and were not whole.
    tries: u8,
}

/// How sure it is that nothing more of a call is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wholeness {
    /// Its arguments are whole if they are a JSON object; its id may follow.
    Arguments,
    /// Nothing of it follows; no arguments at all may mean that the answer was cut before them.
    Call,
}

impl Default for Assembly {
    fn default() -> Self {
        Self { calls: Vec::new(), taken: HashSet::new(), room: MOST_VALUES }
    }
}

impl Assembly {
    /// Takes a piece of a call, whose arguments follow those before it. Says which call it is.
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

    /// Takes a call whose arguments are whole, unless there are none: they replace those before. Says by how many bytes
    /// they grew.
    pub(crate) fn replace(&mut self, fragment: Fragment<'_>) -> Result<usize, AssemblyError> {
        let place = self.place(fragment)?;
        let call = &mut self.calls[place];
        if fragment.arguments.is_empty() || call.is_released {
            return Ok(0);
        }
        let before = mem::replace(&mut call.arguments, fragment.arguments.to_owned()).len();
        Ok(fragment.arguments.len().saturating_sub(before))
    }

    /// The call that a fragment belongs to, with what else the fragment says of it taken in.
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
        // Some servers repeat the name with every piece.
        if call.name.is_empty() {
            call.name.push_str(fragment.name);
        }
        if call.echo.is_none() {
            call.echo = fragment.echo.cloned();
        }
        Ok(position)
    }

    /// Which call a fragment belongs to; `None` for a new one.
    fn position(&self, fragment: Fragment<'_>) -> Option<usize> {
        let position = match (fragment.index, fragment.id) {
            (Some(index), _) => self.calls.iter().rposition(|call| call.index == Some(index))?,
            (None, "") => self.calls.len().checked_sub(1)?,
            (None, id) => return self.calls.iter().rposition(|call| call.id == id),
        };
        // Some servers count no calls, or give all of them index 0: what has a name and an id of its own is a new one.
        let call = &self.calls[position];
        let renamed = !fragment.name.is_empty() && !call.name.is_empty();
        let distinct = if fragment.index.is_some() {
            !fragment.id.is_empty() && !call.id.is_empty() && fragment.id != call.id
        } else {
            true
        };
        (!(renamed && distinct)).then_some(position)
    }

    /// Whether no call came.
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The call that has this index, if it can be told before the answer has ended.
    pub(crate) fn release(&mut self, index: u64, how: Wholeness, seed: &str) -> Option<ToolCall> {
        let place = self.calls.iter().rposition(|call| call.index == Some(index))?;
        self.release_at(place, how, seed)
    }

    /// The calls besides the one at `current` that can be told before the answer has ended.
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
            // Cut, or more is to come.
            Arguments::Malformed { raw, .. } => {
                self.calls[place].arguments = raw;
                self.calls[place].tries += 1;
                None
            }
        }
    }

    /// Makes a call of a partial one, with an id that no other has.
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

    /// The calls that are left, with ids that are unique among all; `seed` begins those that the provider left out. `cut`
    /// says that the answer was stopped before its end, so that missing arguments are not the same as none.
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

/// `room` is how many values they may have.
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
        Ok(_) => "the arguments are JSON, but no object".to_owned(),
        Err(_) if cut => "the answer was cut off inside the arguments".to_owned(),
        Err(error) => format!("the arguments are not valid JSON: {error}"),
    };
    Arguments::Malformed { raw, reason }
}

#[cfg(test)]
mod tests;
