//! Which models of a provider's list are offered.

/// Patterns of names, in which `*` stands for any characters. Those with a leading `!` exclude names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    takes: Vec<String>,
    leaves: Vec<String>,
}

impl Filter {
    /// Separates the exact names from patterns. Without patterns, there is no filter, and nothing needs to be listed.
    pub(super) fn separate(names: &[String]) -> (Vec<String>, Option<Self>) {
        let (mut exact, mut filter) = (Vec::new(), Self::default());
        for name in names {
            match name.strip_prefix('!') {
                Some(left) => filter.leaves.push(left.trim().to_owned()),
                None if name.contains('*') => filter.takes.push(name.clone()),
                None => exact.push(name.clone()),
            }
        }
        let has_patterns = filter != Self::default();
        (exact, has_patterns.then_some(filter))
    }

    /// Whether a model is offered.
    pub(crate) fn takes(&self, name: &str) -> bool {
        let is_in = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
        (self.takes.is_empty() || is_in(&self.takes)) && !is_in(&self.leaves)
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|start| name.strip_prefix(start)) else { return false };
    let mut is_open = false;
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        is_open = true;
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    is_open || rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name, expected) in [
            ("gpt-5*", "gpt-5.5", true),
            ("gpt-5*", "gpt-5", true),
            ("gpt-5*", "gpt-4", false),
            ("*", "", true),
            ("*mini", "gpt-5-mini", true),
            ("*mini", "mini-x", false),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("plain", "plain", true),
            ("plain", "plainer", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn exact_names_patterns_and_exclusions() {
        let separate = |names: &[&str]| {
            Filter::separate(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(separate(&["a", "b"]), (vec!["a".to_owned(), "b".to_owned()], None));
        let (exact, filter) = separate(&["o3", "gpt-5*", "!*-preview"]);
        let filter = filter.unwrap();
        assert_eq!(exact, ["o3"]);
        assert!(filter.takes("gpt-5.5") && !filter.takes("gpt-5.5-preview") && !filter.takes("o4"));
        let (_, others) = separate(&["!*-preview"]);
        assert!(others.unwrap().takes("anything"));
    }
}
