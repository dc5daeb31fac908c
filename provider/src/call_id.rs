//! Converts ids of past calls, possibly of other providers, to a form that an API accepts.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use everturn_kernel::ToolSpec;

use crate::history;

/// The call ids of one request. Some servers restart their numbering with each answer, and some APIs reject duplicate
/// ids in a request.
pub(crate) struct CallIds<'a> {
    form: fn(&str) -> String,
    tools: &'a [ToolSpec],
    taken: HashSet<String>,
    /// The converted id of the latest call with each original id.
    latest: HashMap<&'a str, String>,
}

impl<'a> CallIds<'a> {
    /// Creates the converter. `form` makes an id acceptable to the API; `tools` are those offered in the request.
    pub(crate) fn new(form: fn(&str) -> String, tools: &'a [ToolSpec]) -> Self {
        Self { form, tools, taken: HashSet::new(), latest: HashMap::new() }
    }

    /// Returns the id of the next call.
    pub(crate) fn call(&mut self, id: &'a str) -> String {
        let mut formed = (self.form)(id);
        // Depends only on earlier calls, so that a longer conversation begins with the same bytes and hits prompt
        // caches.
        let mut number = self.taken.len();
        while !self.taken.insert(formed.clone()) {
            number += 1;
            formed = (self.form)(&format!("{id}_{number}"));
        }
        self.latest.insert(id, formed.clone());
        formed
    }

    /// Returns the name to send for a called tool.
    pub(crate) fn tool(&self, name: &'a str) -> Cow<'a, str> {
        history::name(name, self.tools)
    }

    /// Returns the id for the result of an earlier call.
    pub(crate) fn result(&self, id: &str) -> String {
        self.latest.get(id).cloned().unwrap_or_else(|| (self.form)(id))
    }
}

/// Hashes an id to 64 bits.
pub(crate) fn digest(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_in_a_request_and_results_follow_their_call() {
        let mut ids = CallIds::new(|id| id.replace(|c: char| !c.is_ascii_alphanumeric(), "_"), &[]);
        let seen: Vec<_> = ["f:0", "f.0", "f:0", "f:0"]
            .map(|id| {
                let call = ids.call(id);
                assert_eq!(ids.result(id), call);
                call
            })
            .into();
        assert_eq!(seen, ["f_0", "f_0_2", "f_0_3", "f_0_4"]);
        assert_eq!(ids.result("never:called"), "never_called");
    }
}
