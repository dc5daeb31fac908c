//! Tool calls that arrive in fragments.

use std::{collections::HashSet, mem};

use everturn_kernel::{Arguments, ToolCall};
use everturn_wire::{Echo, Value};
use serde_json::Map;

use crate::bulk::{MOST_VALUES, values};

/// The most calls of one answer. A model asks for a handful; a peer that sends more is broken.
const MOST_CALLS: usize = 512;

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
}

/// The calls of one answer, in the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    calls: Vec<Partial>,
}

#[derive(Debug, Default)]
struct Partial {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    echo: Option<Echo>,
}

impl Assembly {
    /// Takes a piece of a call, whose arguments follow those before it.
    pub(crate) fn add(&mut self, fragment: Fragment<'_>) -> Result<(), AssemblyError> {
        self.call(fragment)?.arguments.push_str(fragment.arguments);
        Ok(())
    }

    /// Takes a call whose arguments are whole, unless there are none: they replace those before. Says by how many bytes
    /// they grew.
    pub(crate) fn replace(&mut self, fragment: Fragment<'_>) -> Result<usize, AssemblyError> {
        let arguments = &mut self.call(fragment)?.arguments;
        if fragment.arguments.is_empty() {
            return Ok(0);
        }
        let before = mem::replace(arguments, fragment.arguments.to_owned()).len();
        Ok(fragment.arguments.len().saturating_sub(before))
    }

    /// The call that a fragment belongs to, with what else the fragment says of it.
    fn call(&mut self, fragment: Fragment<'_>) -> Result<&mut Partial, AssemblyError> {
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
        Ok(call)
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

    /// The calls, with ids that are unique among them; `seed` begins those that the provider left out. `cut` says
    /// that the answer was stopped before its end, so that missing arguments are not the same as none.
    pub(crate) fn finish(self, seed: &str, cut: bool) -> Result<Vec<ToolCall>, AssemblyError> {
        let mut taken = HashSet::new();
        let mut room = MOST_VALUES;
        let mut calls = Vec::with_capacity(self.calls.len());
        for (place, partial) in self.calls.into_iter().enumerate() {
            if partial.name.is_empty() {
                return Err(AssemblyError::Nameless);
            }
            let mut id = if partial.id.is_empty() { format!("{seed}_{place}") } else { partial.id };
            while !taken.insert(id.clone()) {
                id = format!("{id}_{place}");
            }
            calls.push(ToolCall {
                id,
                name: partial.name,
                arguments: arguments(partial.arguments, cut, &mut room),
                echo: partial.echo,
            });
        }
        Ok(calls)
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
