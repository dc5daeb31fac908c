//! The token required of clients.

use axum::http::{
    HeaderMap, HeaderName,
    header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use subtle::ConstantTimeEq as _;

const SCHEME: &[u8] = b"bearer ";

/// Headers that carry the token as it is: Everturn's own, for callers whose other headers have a provider's credential,
/// and those in which vendors' programs send their key.
const PLAIN: [HeaderName; 4] = [
    HeaderName::from_static("x-everturn-token"),
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static("api-key"),
];

/// The token in both forms. Compared in constant time, and never displayed.
pub(super) struct Token {
    plain: String,
    /// As a WebSocket subprotocol, because a browser lets a page send nothing else when it opens a socket.
    subprotocol: String,
}

impl Token {
    /// Returns `None` if a header could not carry the token.
    pub(super) fn new(text: &str) -> Option<Self> {
        let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let subprotocol = format!("bearer.{}", URL_SAFE_NO_PAD.encode(text));
        fits.then(|| Self { plain: text.to_owned(), subprotocol })
    }

    pub(super) fn is_shown(&self, headers: &HeaderMap) -> bool {
        let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL);
        let mut offered = offered
            .iter()
            .flat_map(|list| list.as_bytes().split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii);
        self.is_bearer(headers)
            || PLAIN.iter().any(|name| self.is_in(headers, name))
            || offered.any(|protocol| self.subprotocol.as_bytes().ct_eq(protocol).into())
    }

    /// Removes the token from where it was shown: nothing behind the guard needs it, and no provider may receive it.
    pub(super) fn hide(&self, headers: &mut HeaderMap) {
        if self.is_bearer(headers) {
            headers.remove(AUTHORIZATION);
        }
        for name in PLAIN {
            if self.is_in(headers, &name) {
                headers.remove(name);
            }
        }
    }

    fn is_bearer(&self, headers: &HeaderMap) -> bool {
        headers.get_all(AUTHORIZATION).iter().any(|value| {
            let Some((scheme, token)) = value.as_bytes().split_at_checked(SCHEME.len()) else { return false };
            let is_token: bool = self.plain.as_bytes().ct_eq(token.trim_ascii()).into();
            scheme.eq_ignore_ascii_case(SCHEME) && is_token
        })
    }

    fn is_in(&self, headers: &HeaderMap, name: &HeaderName) -> bool {
        headers.get_all(name).iter().any(|value| self.plain.as_bytes().ct_eq(value.as_bytes()).into())
    }
}
