//! The token required of clients.

use axum::http::{
    HeaderMap,
    header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use subtle::ConstantTimeEq as _;

const SCHEME: &[u8] = b"bearer ";

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
        let bearer = headers.get(AUTHORIZATION).and_then(|value| {
            let (scheme, token) = value.as_bytes().split_at_checked(SCHEME.len())?;
            scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim_ascii())
        });
        let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL);
        let mut offered = offered
            .iter()
            .flat_map(|list| list.as_bytes().split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii);
        bearer.is_some_and(|token| self.plain.as_bytes().ct_eq(token).into())
            || offered.any(|protocol| self.subprotocol.as_bytes().ct_eq(protocol).into())
    }
}
