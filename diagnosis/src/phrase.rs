//! Words that say what went wrong, as data. Asked where no code decides.
//!
//! A phrase is whole words in lower case, without punctuation; a final `*` lets its last word go on.

pub(crate) mod body;
pub(crate) mod transport;

use crate::kind::Kind;
use crate::prose::Prose;

/// Means `kind` where some phrase of `any` occurs, and one of `with` (unless that is empty), and none of `unless`.
pub(crate) struct Rule {
    kind: Kind,
    any: &'static [&'static str],
    with: &'static [&'static str],
    unless: &'static [&'static [&'static str]],
}

impl Rule {
    /// The phrase by which it matches.
    fn matches(&self, prose: &Prose) -> Option<&'static str> {
        let said = self.any.iter().find(|phrase| prose.has(phrase))?;
        let holds = (self.with.is_empty() || prose.has_any(self.with))
            && !self.unless.iter().any(|phrases| prose.has_any(phrases));
        holds.then_some(said)
    }

    const fn with(mut self, with: &'static [&'static str]) -> Self {
        self.with = with;
        self
    }

    const fn unless(mut self, unless: &'static [&'static [&'static str]]) -> Self {
        self.unless = unless;
        self
    }
}

/// What the words say, among the kinds that `allowed` lets through, and the phrase that says it. The first rule wins.
pub(crate) fn kind(
    prose: &Prose,
    rules: &[Rule],
    allowed: impl Fn(Kind) -> bool,
) -> Option<(Kind, &'static str)> {
    let mut asked = rules.iter().filter(|rule| allowed(rule.kind));
    asked.find_map(|rule| Some((rule.kind, rule.matches(prose)?)))
}

const fn rule(kind: Kind, any: &'static [&'static str]) -> Rule {
    Rule { kind, any, with: &[], unless: &[] }
}

#[cfg(test)]
mod tests {
    use super::{body, transport};
    use crate::prose::Prose;

    /// A phrase with punctuation or capitals would never match.
    #[test]
    fn every_phrase_can_match() {
        for rule in body::RULES.iter().chain(transport::RULES) {
            let unless = rule.unless.iter().copied().flatten();
            for phrase in rule.any.iter().chain(rule.with).chain(unless) {
                let said = phrase.replace('*', "1");
                assert!(Prose::new([said.as_str()], false).has(phrase), "{phrase}");
            }
        }
    }
}
