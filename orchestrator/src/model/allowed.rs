//! Which models and routes a caller may use.

/// Patterns of ids, in which `*` stands for anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Allowed(Vec<String>);

impl Allowed {
    /// `None` = all.
    pub(crate) fn new(patterns: Vec<String>) -> Option<Self> {
        (!patterns.is_empty()).then_some(Self(patterns))
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.0.iter().any(|pattern| fits(pattern, id))
    }
}

fn fits(pattern: &str, id: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == id };
    let Some(mut left) = id.strip_prefix(start) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        match parts.peek() {
            None => return left.ends_with(part),
            Some(_) => match left.split_once(part) {
                Some((_, after)) => left = after,
                None => return false,
            },
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, id) in
            [("*", "a/b"), ("a/*", "a/b"), ("*/b", "a/b"), ("a/b", "a/b"), ("a*b*c", "a-b-b-c")]
        {
            assert!(fits(pattern, id), "{pattern} {id}");
        }
        for (pattern, id) in [("a", "a/b"), ("a/*", "b/a/b"), ("a*a", "a"), ("a*b*c", "a-c-b"), ("", "a")] {
            assert!(!fits(pattern, id), "{pattern} {id}");
        }
    }
}
