//! The content of an append that is too large for one message: stored in parts first, which the append then names.

use sha2::{Digest as _, Sha256};

/// Header of a part: the version that its append must follow.
pub(crate) const AFTER: &str = "Ev-After";

/// Size of a part, in bytes.
pub(crate) const PART: usize = 512 << 10;

/// Size of content from which it is stored in parts, in bytes.
pub(crate) const LARGE: usize = 768 << 10;

/// The parts that an append names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
    pub(crate) hash: String,
}

impl Parts {
    /// Returns what an append says of content that is stored in parts of `size` bytes.
    pub(crate) fn of(content: &[u8], size: usize) -> Self {
        Self { count: content.len().div_ceil(size), bytes: content.len(), hash: hash(content) }
    }

    pub(crate) fn to_text(&self) -> String {
        format!("{}/{}/{}", self.count, self.bytes, self.hash)
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split('/');
        let (count, bytes) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { count, bytes, hash: words.next()?.to_owned() })
    }
}

/// Returns the hash of content.
pub(crate) fn hash(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_they_are_written() {
        let parts = Parts::of(b"abcde", 2);
        assert_eq!(parts.count, 3);
        assert_eq!(Parts::parse(&parts.to_text()), Some(parts));
        assert_eq!(Parts::parse("1/2"), None);
    }
}
