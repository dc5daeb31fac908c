//! Names of callers: people and programs behind one server.

use core::fmt;

/// Maximum length of a caller's name, in bytes.
const MAX_LEN: usize = 32;

/// The name of a caller: 1 to 32 of the characters a-z 0-9 . _ -, beginning with a letter or digit.
///
/// Names are compared several times per call, so they are kept in place, followed by zeros.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallerName([[u8; MAX_LEN / 2]; 2]);

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
        if !fits {
            return Err(InvalidCallerName);
        }
        let mut bytes = [[0; MAX_LEN / 2]; 2];
        bytes.as_flattened_mut()[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self(bytes))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        let bytes = self.0.as_flattened();
        let len = bytes.iter().position(|byte| *byte == 0).unwrap_or(MAX_LEN);
        str::from_utf8(&bytes[..len]).unwrap_or_default()
    }
}

impl fmt::Debug for CallerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallerName").field(&self.as_str()).finish()
    }
}

impl fmt::Display for CallerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
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
        assert_eq!(CallerName::parse(&"x".repeat(32)).unwrap().as_str(), "x".repeat(32));
        for bad in ["", ".a", "-", "A", "a b", "a@b", "ä", "a/b", &"x".repeat(33)] {
            assert!(CallerName::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn names_are_in_the_order_of_their_texts() {
        let texts = [
            "0",
            "a",
            "a-b",
            "a.b",
            "a0",
            "aa",
            "abcdefghijklmnop",
            "abcdefghijklmnopq",
            "abcdefghijklmnopr",
            "b",
        ];
        let names = texts.map(|text| CallerName::parse(text).unwrap());
        assert!(
            names.is_sorted() && names.iter().all(|name| *name == CallerName::parse(name.as_str()).unwrap())
        );
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
