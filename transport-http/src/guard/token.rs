//! Tokens in requests.

use std::borrow::Cow;

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

/// What a request shows as a token, and in which header.
pub(super) struct Shown<'r> {
    pub(super) header: HeaderName,
    token: Cow<'r, [u8]>,
}

impl<'r> Shown<'r> {
    fn plain(header: &HeaderName, token: &'r [u8]) -> Self {
        Self { header: header.clone(), token: token.into() }
    }

    pub(super) fn hash(&self) -> TokenHash {
        TokenHash::of(&self.token)
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
    let plain = |name: HeaderName| {
        headers.get_all(&name).iter().map(move |value| Shown::plain(&name, value.as_bytes()))
    };
    let bearer = headers.get_all(AUTHORIZATION).iter().filter_map(|value| bearer(value.as_bytes()));
    let bearer = bearer.map(|token| Shown::plain(&AUTHORIZATION, token));
    // As a subprotocol, in base64url, because a browser lets a page send nothing else when it opens a socket.
    let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let offered = offered.flat_map(|list| list.as_bytes().split(|byte| *byte == b','));
    let offered = offered.filter_map(|protocol| {
        let encoded = protocol.trim_ascii().strip_prefix(SUBPROTOCOL)?;
        let token = URL_SAFE_NO_PAD.decode(encoded).ok()?.into();
        Some(Shown { header: SEC_WEBSOCKET_PROTOCOL, token })
    });
    plain(own).chain(bearer).chain(offered).chain(others.into_iter().flat_map(plain))
}

/// Removes every token of this server (`is_ours`): nothing behind the guard needs one, and no provider may receive it. `known`: the
/// header in which one was found, which is not hashed again.
pub(super) fn hide(headers: &mut HeaderMap, known: Option<&HeaderName>, is_ours: impl Fn(TokenHash) -> bool) {
    let is_token = |token: &[u8]| is_ours(TokenHash::of(token));
    let mut values = headers.get_all(AUTHORIZATION).iter();
    if known == Some(&AUTHORIZATION) || values.any(|value| bearer(value.as_bytes()).is_some_and(is_token)) {
        headers.remove(AUTHORIZATION);
    }
    for name in PLAIN {
        if known == Some(&name) || headers.get_all(&name).iter().any(|value| is_token(value.as_bytes())) {
            headers.remove(name);
        }
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim_ascii())
}
