//! Phrases that indicate the kind of failure. Used if no code decides.
//!
//! A phrase is whole words in lower case, without punctuation. A final `*` matches any continuation of the last word.

pub(crate) mod body;
pub(crate) mod transport;

use crate::kind::Kind;
use crate::prose::Prose;

/// Means `kind` if a phrase of `any` occurs, and one of `with` (unless it is empty), and none of `unless`.
pub(crate) struct Rule {
    kind: Kind,
    any: &'static [&'static str],
    with: &'static [&'static str],
    unless: &'static [&'static [&'static str]],
}

impl Rule {
    /// Returns the phrase by which the rule matches.
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

/// Returns the kind that the text indicates, among those that `allowed` accepts, and the matching phrase. The first
/// rule wins.
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

    /// A phrase with punctuation or capitals can never match.
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
