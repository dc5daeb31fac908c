//! Ids of past calls in a form that an API takes: others may have given them.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use everturn_kernel::ToolSpec;

use crate::past;

/// The ids of one request's calls. Some servers count the calls of each answer anew, and some APIs refuse a request in
/// which two calls have one id.
pub(crate) struct CallIds<'a> {
    form: fn(&str) -> String,
    tools: &'a [ToolSpec],
    taken: HashSet<String>,
    /// What the latest call of an id of ours is called.
    latest: HashMap<&'a str, String>,
}

impl<'a> CallIds<'a> {
    /// `form` makes an id one that the API takes; `tools` are those that the request offers.
    pub(crate) fn new(form: fn(&str) -> String, tools: &'a [ToolSpec]) -> Self {
        Self { form, tools, taken: HashSet::new(), latest: HashMap::new() }
    }

    /// The id of the next call.
    pub(crate) fn call(&mut self, id: &'a str) -> String {
        let mut formed = (self.form)(id);
        // It depends on what came before alone, so that a longer conversation begins with the same bytes.
        let mut number = self.taken.len();
        while !self.taken.insert(formed.clone()) {
            number += 1;
            formed = (self.form)(&format!("{id}_{number}"));
        }
        self.latest.insert(id, formed.clone());
        formed
    }

    /// The name of the tool that a call is for.
    pub(crate) fn tool(&self, name: &'a str) -> Cow<'a, str> {
        past::name(name, self.tools)
    }

    /// The id in the result of a call, which came before.
    pub(crate) fn result(&self, id: &str) -> String {
        self.latest.get(id).cloned().unwrap_or_else(|| (self.form)(id))
    }
}

/// 64 bits that tell an id from others.
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
