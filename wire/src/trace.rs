//! The trace that a request belongs to, as defined by W3C Trace Context.

use alloc::{borrow::ToOwned, string::String};

use serde::{Deserialize, Serialize};

/// Maximum length of a `tracestate` that is passed on, in bytes: the length that the specification asks every system to
/// accept.
const MAX_STATE: usize = 512;

/// The trace that a request belongs to: the `traceparent` and `tracestate` headers of W3C Trace Context.
///
/// It affects no decision. A value that does not parse is ignored, as the specification demands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceContext {
    parent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
}

impl TraceContext {
    /// Reads the two headers. Returns `None` if `parent` is not a valid `traceparent`; a `state` that is too long or not
    /// printable ASCII is dropped.
    pub fn read(parent: &str, state: Option<&str>) -> Option<Self> {
        let mut fields = parent.split('-');
        let (version, trace) = (fields.next()?, fields.next()?);
        let (span, flags) = (fields.next()?, fields.next()?);
        let is_version_0 = version == "00";
        let valid = is_hex(version, 2)
            && version != "ff"
            && is_id(trace, 32)
            && is_id(span, 16)
            && is_hex(flags, 2)
            // Later versions may add fields; version 0 has exactly four.
            && (!is_version_0 || fields.next().is_none())
            && parent.len() <= 128;
        let is_sound = |state: &&str| {
            !state.is_empty()
                && state.len() <= MAX_STATE
                && state.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
        };
        valid
            .then(|| Self { parent: parent.to_owned(), state: state.filter(is_sound).map(ToOwned::to_owned) })
    }

    /// Returns the value of `traceparent`: version, trace id, span id and flags.
    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// Returns the value of `tracestate`, unchanged.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

fn is_hex(field: &str, digits: usize) -> bool {
    field.len() == digits && field.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Whether the field is a valid id. An id of zeros is not.
fn is_id(field: &str, digits: usize) -> bool {
    is_hex(field, digits) && field.bytes().any(|byte| byte != b'0')
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::ToString};

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_valid_context_is_kept_as_it_came() {
        let context = TraceContext::read(PARENT, Some("vendor=1")).expect("valid");
        assert_eq!((context.parent(), context.state()), (PARENT, Some("vendor=1")));
        let later = format!("01{}-more", &PARENT[2..]);
        assert_eq!(TraceContext::read(&later, None).expect("a later version").parent(), later);
    }

    #[test]
    fn an_invalid_context_is_ignored() {
        let bad = [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ];
        for parent in bad {
            assert_eq!(TraceContext::read(parent, None), None, "{parent}");
        }
        let state = |state: &str| TraceContext::read(PARENT, Some(state)).and_then(|context| context.state);
        assert_eq!(state(&"x".repeat(513)), None);
        assert_eq!(state("a=1\r\nevil: 1"), None);
        assert_eq!(state("a=1, b=2"), Some("a=1, b=2".to_string()));
    }
}
