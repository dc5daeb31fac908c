//! Which headers pass, and which do not.

use hyper::{
    HeaderMap,
    header::{
        ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, HeaderValue,
        PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    },
};

use super::unpack::Unpack;

/// Headers of one connection.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Headers that carry a credential.
const CREDENTIALS: [HeaderName; 4] = [
    AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static("api-key"),
];

/// The query field that carries a credential.
const KEY: &str = "key";

/// Prefixes of Everturn's own headers, and of those of a WebSocket, which may carry a token of it.
const OWN: [&str; 3] = ["everturn-", "x-everturn-", "sec-websocket-"];

/// Removes what belongs to the caller's connection, or was meant for Everturn.
pub(super) fn strip_request(headers: &mut HeaderMap) {
    strip_connection(headers);
    strip(headers, |name| {
        [HOST, CONTENT_LENGTH, EXPECT].contains(name) || OWN.iter().any(|own| name.as_str().starts_with(own))
    });
}

/// Removes headers. Few are, so names are compared: to look for each takes longer.
fn strip(headers: &mut HeaderMap, is_out: impl Fn(&HeaderName) -> bool) {
    let out: Vec<HeaderName> = headers.keys().filter(|name| is_out(name)).cloned().collect();
    for name in out {
        headers.remove(name);
    }
}

/// Declines compression that would hide what an answer says: for a stream any, as neither the beginning of content nor a wait fits into
/// it; otherwise what cannot be read.
pub(super) fn decline_compression(headers: &mut HeaderMap, streams: bool) {
    let offers = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|list| list.to_str().ok());
    let offers: Vec<&str> = offers.flat_map(|list| list.split(',')).map(str::trim).collect();
    let is_fine = |offer: &&str| !streams && Unpack::reads(offer.split(';').next().unwrap_or_default());
    let fine: Vec<&str> = offers.iter().copied().filter(is_fine).collect();
    if fine.len() < offers.len() {
        let left = if fine.is_empty() { "identity".to_owned() } else { fine.join(", ") };
        if let Ok(left) = HeaderValue::from_str(&left) {
            headers.insert(ACCEPT_ENCODING, left);
        }
    }
}

/// Removes the headers of a connection, and those that it names.
pub(super) fn strip_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    strip(headers, |name| HOP_BY_HOP.contains(name) || named.contains(name));
}

pub(super) fn strip_credentials(headers: &mut HeaderMap) {
    strip(headers, |name| CREDENTIALS.contains(name));
}

/// Returns the query without its credential; `None` if nothing is left.
pub(super) fn without_key(query: &str) -> Option<String> {
    let left: Vec<&str> = query.split('&').filter(|field| !is_key(field)).collect();
    let left = left.join("&");
    (!left.is_empty()).then_some(left)
}

fn is_key(field: &str) -> bool {
    field.split('=').next() == Some(KEY)
}

/// Returns the caller's credentials, which no failure may quote.
pub(super) fn credentials(headers: &HeaderMap, query: Option<&str>) -> Vec<String> {
    let of_headers = CREDENTIALS.into_iter().flat_map(|name| headers.get_all(name));
    let of_headers = of_headers.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let of_query = query.into_iter().flat_map(|query| query.split('&')).filter(|field| is_key(field));
    of_headers
        .chain(of_query.filter_map(|field| field.split_once('=')).map(|(_, key)| key.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn what_belongs_to_the_connection_or_to_us_stays_here() {
        let mut headers = map(&[
            ("connection", "close, x-hop"),
            ("x-hop", "1"),
            ("te", "trailers"),
            ("host", "here"),
            ("content-length", "3"),
            ("everturn-budget", "10m"),
            ("x-everturn-token", "secret"),
            ("anthropic-beta", "a,b"),
            ("x-unknown", "kept"),
        ]);
        strip_request(&mut headers);
        assert_eq!(headers, map(&[("anthropic-beta", "a,b"), ("x-unknown", "kept")]));
    }

    #[test]
    fn only_what_can_be_read_is_asked_for() {
        for (offer, streams, asked) in [
            ("gzip, deflate", false, "gzip, deflate"),
            ("gzip, deflate, br, zstd", false, "gzip, deflate"),
            ("br;q=1.0, gzip;q=0.8, *;q=0.1", false, "gzip;q=0.8"),
            ("br", false, "identity"),
            ("identity", false, "identity"),
            ("gzip, deflate", true, "identity"),
        ] {
            let mut headers = map(&[("accept-encoding", offer)]);
            decline_compression(&mut headers, streams);
            assert_eq!(headers, map(&[("accept-encoding", asked)]), "{offer}");
        }
        let mut headers = map(&[("x-unknown", "kept")]);
        decline_compression(&mut headers, true);
        assert_eq!(headers, map(&[("x-unknown", "kept")]), "nothing is added");
    }

    #[test]
    fn a_credential_is_found_wherever_it_is() {
        let headers = map(&[("authorization", "Bearer abc"), ("x-api-key", "def"), ("x-other", "ghi")]);
        assert_eq!(credentials(&headers, Some("alt=sse&key=jkl")), ["Bearer abc", "def", "jkl"]);
        assert_eq!(without_key("alt=sse&key=jkl").as_deref(), Some("alt=sse"));
        assert_eq!(without_key("key=jkl"), None);
    }
}
