//! Names that callers make up, such as those of models that no configuration lists.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

/// Maximum number of names, and of bytes in one. Limits, health and metrics are remembered by name, so callers could fill
/// the memory with them.
const MOST: usize = 1024;
const LONGEST: usize = 128;

/// The names that were used so far.
#[derive(Default)]
pub(crate) struct Names(Mutex<HashSet<String>>);

impl Names {
    /// Whether something may be remembered under this name: it was used before, or there is room for it.
    pub(crate) fn takes(&self, name: &str) -> bool {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.contains(name) || (names.len() < MOST && name.len() <= LONGEST && names.insert(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded() {
        let names = Names::default();
        assert!(!names.takes(&"x".repeat(LONGEST + 1)));
        assert!((0..MOST).all(|number| names.takes(&number.to_string())));
        assert!(!names.takes("one more"));
        assert!(names.takes("0"));
    }
}
