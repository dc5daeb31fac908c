//! Tokens in requests.

use axum::http::{
    HeaderMap, HeaderName,
    header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::TokenHash;

const SCHEME: &[u8] = b"bearer ";

/// The beginning of the subprotocol that carries a token.
const SUBPROTOCOL: &[u8] = b"bearer.";

/// Headers that carry the token as it is: Everturn's own, for callers whose other headers have a provider's credential,
/// and those in which vendors' programs send their key.
const PLAIN: [HeaderName; 4] = [
    HeaderName::from_static("x-everturn-token"),
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static("api-key"),
];

/// A token that a request shows.
pub(super) enum Shown<'r> {
    Plain(&'r [u8]),
    /// As a WebSocket subprotocol, in base64url, because a browser lets a page send nothing else when it opens a socket.
    Encoded(Vec<u8>),
}

impl Shown<'_> {
    pub(super) fn hash(&self) -> TokenHash {
        match self {
            Self::Plain(bytes) => TokenHash::of(bytes),
            Self::Encoded(bytes) => TokenHash::of(bytes),
        }
    }
}

/// Returns the hash of the administrator's token, by which it is compared like those of callers, so that the time that takes
/// says nothing about the token, not even its length; `None` if a header could not carry the token.
pub(super) fn administrators(text: &str) -> Option<TokenHash> {
    let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then(|| TokenHash::of(text.as_bytes()))
}

/// Returns everything in a request that may be a token of this server; Everturn's own header first.
pub(super) fn shown(headers: &HeaderMap) -> impl Iterator<Item = Shown<'_>> {
    let [own, others @ ..] = PLAIN;
    let plain = |name: HeaderName| headers.get_all(name).iter().map(|value| Shown::Plain(value.as_bytes()));
    let bearer = headers.get_all(AUTHORIZATION).iter().filter_map(|value| bearer(value.as_bytes()));
    let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let offered = offered.flat_map(|list| list.as_bytes().split(|byte| *byte == b','));
    let offered = offered.filter_map(|protocol| {
        let encoded = protocol.trim_ascii().strip_prefix(SUBPROTOCOL)?;
        URL_SAFE_NO_PAD.decode(encoded).ok().map(Shown::Encoded)
    });
    plain(own).chain(bearer.map(Shown::Plain)).chain(offered).chain(others.into_iter().flat_map(plain))
}

/// Removes every token of this server (`is_ours`): nothing behind the guard needs one, and no provider may receive it.
pub(super) fn hide(headers: &mut HeaderMap, is_ours: impl Fn(TokenHash) -> bool) {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    if values.any(|value| bearer(value.as_bytes()).is_some_and(|token| is_ours(TokenHash::of(token)))) {
        headers.remove(AUTHORIZATION);
    }
    for name in PLAIN {
        if headers.get_all(&name).iter().any(|value| is_ours(TokenHash::of(value.as_bytes()))) {
            headers.remove(name);
        }
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim_ascii())
}
