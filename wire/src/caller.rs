//! Names of callers: people and programs behind one server.

use alloc::sync::Arc;
use core::fmt;

/// Maximum length of a caller's name, in bytes.
const MAX_LEN: usize = 32;

/// The name of a caller: 1 to 32 of the characters a-z 0-9 . _ -, beginning with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallerName(Arc<str>);

/// An invalid name of a caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a caller's name has 1 to {MAX_LEN} of the characters a-z 0-9 . _ - and begins with a letter or digit"
)]
pub struct InvalidCallerName;

impl CallerName {
    /// Reads a name.
    ///
    /// # Errors
    /// Returns an error if it is empty, too long, or has other characters.
    pub fn parse(text: &str) -> Result<Self, InvalidCallerName> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let fits = text.len() <= MAX_LEN
            && text.bytes().next().is_some_and(is_plain)
            && text.bytes().all(|byte| is_plain(byte) || b"._-".contains(&byte));
        if fits { Ok(Self(Arc::from(text))) } else { Err(InvalidCallerName) }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_plain() {
        for good in ["a", "0", "team-a.ci_1"] {
            assert_eq!(CallerName::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", ".a", "-", "A", "a b", "a@b", "ä", "a/b", &"x".repeat(33)] {
            assert!(CallerName::parse(bad).is_err(), "{bad:?}");
        }
    }
}
