//! Which requests are the same.

mod members;

use http::HeaderMap;
use sha2::{Digest as _, Sha256};

use super::RelayCall;

/// Headers that tell callers apart.
const CREDENTIALS: [&str; 5] = ["authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie"];

/// A hash of a request's credential, session, method, path and body. Names the request, and cannot be made without them. Within
/// a session, bodies that differ in the order of their members are the same ([`members`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CallKey([u8; 32]);

impl CallKey {
    pub(super) fn of(call: &RelayCall) -> Self {
        let mut hash = Sha256::new();
        // Each part with its length, so that no two lists of parts are the same bytes.
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        let request = &call.request;
        for name in CREDENTIALS {
            for value in request.headers.get_all(name) {
                part(name.as_bytes());
                part(value.as_bytes());
            }
        }
        part(call.session.as_deref().unwrap_or_default().as_bytes());
        part(call.provider.as_deref().unwrap_or_default().as_bytes());
        part(request.method.as_str().as_bytes());
        part(request.path.as_bytes());
        part(request.query.as_deref().unwrap_or_default().as_bytes());
        match call.session.as_ref().and_then(|_| members::ordered(&request.body)) {
            Some(ordered) => ordered.iter().for_each(|piece| part(piece.as_bytes())),
            None => part(&request.body),
        }
        // Waits of callers without a name are found again by later versions.
        if let Some(caller) = &call.caller {
            part(caller.as_str().as_bytes());
        }
        Self(hash.finalize().into())
    }

    /// Returns its name in the store: 64 hexadecimal digits.
    pub(super) fn name(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads a name.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let mut key = [0; 32];
        if name.len() != 2 * key.len() || !name.is_ascii() {
            return None;
        }
        for (at, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&name[2 * at..2 * at + 2], 16).ok()?;
        }
        Some(Self(key))
    }

    /// Returns which of so many parts it belongs to.
    pub(super) fn shard(&self, parts: u8) -> u8 {
        self.0[0] % parts
    }

    #[cfg(test)]
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

/// Returns a short hash of the caller's credential, by which limits of one are not taken for another's.
pub(super) fn caller(headers: &HeaderMap, query: Option<&str>) -> String {
    let mut hash = Sha256::new();
    for name in CREDENTIALS {
        for value in headers.get_all(name) {
            hash.update(value.as_bytes());
            hash.update([0]);
        }
    }
    let key = query.into_iter().flat_map(|query| query.split('&')).filter(|field| field.starts_with("key="));
    key.for_each(|field| hash.update(field.as_bytes()));
    hash.finalize().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}
