//! Error codes of providers, and their meanings.

mod table;

use crate::kind::Kind;

/// How much weight a code has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// Decides on its own.
    Exact,
    /// Overrides the status, but text can refine it.
    Broad,
    /// A catch-all code of its provider. Text and an error status outweigh it.
    Vague,
}

/// The envelope that marks numeric codes of one provider, because others use the same numbers differently.
pub(crate) const ENVELOPE: &str = "base_resp.";

/// Maximum length of a code, in bytes.
const LONGEST: usize = 96;

/// Returns the meaning of a code, if known. Ignores case and punctuation.
pub(crate) fn meaning(code: &str) -> Option<(Rank, Kind)> {
    let code = core_of(code);
    if code.is_empty() || code.len() > LONGEST {
        return None;
    }
    let separators = ['.', ':'];
    let parts = code.rsplit(separators).chain(code.split(separators).next());
    [code].into_iter().chain(parts).find_map(find)
}

/// Strips an AWS namespace (`com.example#Name`) or locator (`Name:http://...`).
pub(crate) fn core_of(code: &str) -> &str {
    let code = code.rsplit_once('#').map_or(code, |(_, name)| name);
    code.split_once(":http").map_or(code, |(name, _)| name).trim()
}

fn find(code: &str) -> Option<(Rank, Kind)> {
    let mut buffer = [0; LONGEST];
    let full = squeeze(code, &mut buffer)?;
    let short = full.strip_suffix(b"error").or_else(|| full.strip_suffix(b"exception")).unwrap_or(full);
    let known = |name: &str| is(name, full) || (!short.is_empty() && is(name, short));
    table::CODES
        .iter()
        .find(|(_, _, names)| names.iter().any(|name| known(name)))
        .map(|(rank, kind, _)| (*rank, *kind))
}

/// Reduces a code to lower-case letters and digits.
fn squeeze<'b>(code: &str, buffer: &'b mut [u8; LONGEST]) -> Option<&'b [u8]> {
    let mut length = 0;
    for byte in code.bytes().filter(|byte| !is_filler(*byte)) {
        *buffer.get_mut(length)? = byte.to_ascii_lowercase();
        length += 1;
    }
    Some(&buffer[..length])
}

fn is_filler(byte: u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_alphanumeric()
}

/// Whether a name in the table, in snake case, equals this squeezed code.
fn is(name: &str, squeezed: &[u8]) -> bool {
    name.bytes().filter(|byte| !is_filler(*byte)).eq(squeezed.iter().copied())
}

/// Appends a code as words: `GoUsageLimitError` becomes `Go Usage Limit Error`.
pub(crate) fn words(code: &str, out: &mut String) {
    parted(core_of(code), out);
}

/// Appends text with its camel-case names split: `httpx.PoolTimeout` becomes `httpx.Pool Timeout`.
pub(crate) fn parted(text: &str, out: &mut String) {
    let mut after_small = false;
    for letter in text.chars() {
        if after_small && letter.is_ascii_uppercase() {
            out.push(' ');
        }
        after_small = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        out.push(letter);
    }
}

#[cfg(test)]
mod tests {
    use super::{Rank, meaning, words};
    use crate::kind::Kind;

    #[test]
    fn spelling_namespace_and_suffix_do_not_matter() {
        for name in [
            "ThrottlingException",
            "throttling_error",
            "com.amazon.coral.availability#ThrottlingException",
            "ThrottlingException:http://internal.example.com/coral/",
            "Throttling.RateQuota",
            "litellm.RateLimitError",
            "gateway:rate_limit_exceeded",
            "RESOURCE_EXHAUSTED",
        ] {
            assert_eq!(meaning(name), Some((Rank::Broad, Kind::RateLimited)), "{name}");
        }
        for name in ["", "error", "Error", "banana", "overloaded or not", &"x".repeat(1000), "é"] {
            assert_eq!(meaning(name), None, "{name}");
        }
    }

    #[test]
    fn codes_are_words_too() {
        let mut out = String::new();
        words("GoUsageLimitError", &mut out);
        assert_eq!(out, "Go Usage Limit Error");
    }
}
