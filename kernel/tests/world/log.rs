//! What happened, in order.

use std::sync::{Arc, Mutex};

use everturn_kernel::{Millis, Op};
use everturn_wire::{Chunk, EventBody, Role};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fact {
    /// The turn was saved; what is kept and told next was saved with it.
    Saved,
    /// What is told next is told without being saved.
    Unsaved,
    Told(EventBody),
    Kept(Role, Chunk),
    Called(Op),
    Slept(u64),
    /// A tool started.
    Ran {
        step: u32,
        id: String,
        name: String,
    },
    /// A started tool is gone: done, or dropped.
    Stopped,
    /// Someone outside said something.
    Heard(&'static str),
}

#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<(Millis, Fact)>>>);

impl Log {
    pub(crate) fn note(&self, now: Millis, fact: Fact) {
        self.0.lock().expect("no one panics with the log in hand").push((now, fact));
    }

    pub(crate) fn each(&self, mut see: impl FnMut(Millis, &Fact)) {
        for (at, fact) in self.0.lock().expect("no one panics with the log in hand").iter() {
            see(*at, fact);
        }
    }

    /// The facts that the closure picks.
    pub(crate) fn pick<T>(&self, mut pick: impl FnMut(&Fact) -> Option<T>) -> Vec<T> {
        let mut picked = Vec::new();
        self.each(|_, fact| picked.extend(pick(fact)));
        picked
    }

    pub(crate) fn history(&self) -> Vec<(Role, Chunk)> {
        self.pick(|fact| match fact {
            Fact::Kept(role, chunk) => Some((*role, chunk.clone())),
            _ => None,
        })
    }

    pub(crate) fn calls(&self) -> Vec<Op> {
        self.pick(|fact| if let Fact::Called(op) = fact { Some(*op) } else { None })
    }

    pub(crate) fn sleeps(&self) -> Vec<u64> {
        self.pick(|fact| if let Fact::Slept(ms) = fact { Some(*ms) } else { None })
    }

    /// One line a fact: when (in milliseconds since the start) and what.
    pub(crate) fn story(&self, start: Millis) -> String {
        let mut story = String::new();
        self.each(|at, fact| {
            if let Some(text) = line(fact) {
                story.push_str(&format!("{:>5} {text}\n", at.since(start)));
            }
        });
        story
    }
}

/// A fact on one line: events as they are on the wire, history after `|`, what was done after `>`.
pub(crate) fn line(fact: &Fact) -> Option<String> {
    Some(match fact {
        Fact::Saved | Fact::Unsaved | Fact::Stopped => return None,
        Fact::Told(event) => fields(&serde_json::to_value(event).expect("an event is JSON")),
        Fact::Kept(role, chunk) => {
            format!("| {role:?} {}", fields(&serde_json::to_value(chunk).expect("a chunk is JSON")))
        }
        Fact::Called(op) => format!("> call {op}"),
        Fact::Slept(ms) => format!("> sleep {ms}"),
        Fact::Ran { step, id, name } => format!("> run {name} {step}/{id}"),
        Fact::Heard(what) => format!("> {what}"),
    })
}

/// `{"type":"a","x":1,"y":"b"}` as `a x=1 y="b"`, sorted; the wall clock and step ids say nothing here. Of a chain of retries
/// its phase and number: the rest was told before.
fn fields(json: &Value) -> String {
    let Value::Object(fields) = json else { return json.to_string() };
    let mut words: Vec<_> = fields
        .iter()
        .filter(|(name, _)| !["type", "nextAt", "stepId"].contains(&name.as_str()))
        .map(|(name, value)| match value {
            Value::Object(retry) if name == "retry" => {
                format!(" retry={}/{}", retry["phase"].as_str().unwrap_or_default(), retry["attempt"])
            }
            value => format!(" {name}={value}"),
        })
        .collect();
    words.sort();
    format!("{}{}", fields["type"].as_str().unwrap_or_default(), words.concat())
}
