//! Rules: the policies of tools, by name or pattern.

use crate::tool::Policy;

/// The policies of tools, by name or pattern. The most specific rule for a name applies: its exact name, else the
/// pattern with the most characters other than `*`; of two equally specific patterns, the stricter policy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules(Vec<(String, Policy)>);

impl Rules {
    /// Adds a rule, replacing one for the same pattern. In a pattern, `*` matches any number of characters.
    pub(crate) fn add(&mut self, pattern: String, policy: Policy) {
        self.0.retain(|(known, _)| *known != pattern);
        self.0.push((pattern, policy));
    }

    /// The names and patterns of the rules that match none of these names.
    pub(crate) fn unmatched(&self, names: &[&str]) -> Vec<String> {
        let is_idle = |pattern: &&String| !names.iter().any(|name| matches(pattern, name));
        self.0.iter().map(|(pattern, _)| pattern).filter(is_idle).cloned().collect()
    }

    /// The policy for a tool, if a rule matches its name.
    pub(crate) fn policy(&self, name: &str) -> Option<Policy> {
        let rules = self.0.iter().filter(|(pattern, _)| matches(pattern, name));
        let rank = |pattern: &str, policy: Policy| {
            (pattern == name, pattern.chars().filter(|c| *c != '*').count(), strictness(policy))
        };
        rules.max_by_key(|(pattern, policy)| rank(pattern, *policy)).map(|(_, policy)| *policy)
    }
}

fn strictness(policy: Policy) -> u8 {
    match policy {
        Policy::Allow => 0,
        Policy::Review => 1,
        Policy::Ask => 2,
        Policy::Deny => 3,
    }
}

/// Whether a name matches a pattern in which `*` matches any number of characters. Linear in both, except for the
/// number of stars.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_number_of_characters() {
        for (pattern, name, fits) in [
            ("read", "read", true),
            ("read", "reads", false),
            ("*", "", true),
            ("fs__*", "fs__read", true),
            ("fs__*", "fs__", true),
            ("fs__*", "gs__read", false),
            ("*__read", "fs__read", true),
            ("*__read", "fs__read_all", false),
            ("f*e*d", "fs__read", true),
            ("f*e*d", "fs__write", false),
            ("a*a", "a", false),
            ("a**b", "ab", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn the_most_specific_rule_holds() {
        let mut rules = Rules::default();
        for (pattern, policy) in [
            ("fs__delete", Policy::Allow),
            ("fs__*", Policy::Ask),
            ("*", Policy::Deny),
            ("fs__d*", Policy::Review),
            ("*__x", Policy::Allow),
            ("fs_*", Policy::Allow),
            ("a__x", Policy::Ask),
            ("a__x", Policy::Allow),
        ] {
            rules.add(pattern.into(), policy);
        }
        for (name, policy) in [
            ("fs__delete", Policy::Allow),
            ("fs__drop", Policy::Review),
            ("fs__read", Policy::Ask),
            ("shell", Policy::Deny),
            ("a__x", Policy::Allow),
            // Two of the same length: the stricter one applies.
            ("fs__x", Policy::Ask),
        ] {
            assert_eq!(rules.policy(name), Some(policy), "{name}");
        }
        assert_eq!(Rules::default().policy("read"), None);
    }

    #[test]
    fn rules_that_match_no_tool_are_found() {
        let mut rules = Rules::default();
        for pattern in ["roll", "roll_dice", "fs__*", "*"] {
            rules.add(pattern.into(), Policy::Ask);
        }
        assert_eq!(rules.unmatched(&["roll_dice", "fs__read"]), ["roll"]);
        assert_eq!(rules.unmatched(&[]), ["roll", "roll_dice", "fs__*", "*"]);
    }
}
