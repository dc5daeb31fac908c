//! Keeps the server's own credentials out of refusals that are passed on, as out of other failures. Lengths stay, because headers
//! name them.

use bytes::Bytes;
use hyper::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue},
};

use super::unpack::Unpack;
use crate::secret::Veil;

/// Overwrites secrets in a refusal. Returns its headers, its body, and the first `most` bytes of what the body says. One that is
/// compressed stays so, unless there is a secret in it.
pub(super) fn clean(
    veil: &Veil,
    mut headers: HeaderMap,
    body: Vec<Bytes>,
    most: usize,
) -> (HeaderMap, Vec<Bytes>, Vec<u8>) {
    clean_headers(veil, &mut headers);
    let coding = headers.get(CONTENT_ENCODING).and_then(|coding| coding.to_str().ok()).unwrap_or_default();
    let Some(mut said) = Unpack::of(coding).whole(&body) else {
        let start = body.iter().flatten().take(most).copied().collect();
        return (headers, clean_body(veil, body, most), start);
    };
    let clean = clean_body(veil, vec![Bytes::from(said.clone())], most).concat();
    let is_clean = clean == said;
    said.truncate(most);
    if is_clean {
        return (headers, body, said);
    }
    headers.remove(CONTENT_ENCODING);
    headers.remove(CONTENT_LENGTH);
    (headers, vec![clean.into()], said)
}

/// Overwrites secrets in the headers.
fn clean_headers(veil: &Veil, headers: &mut HeaderMap) {
    for value in headers.values_mut() {
        let clean = std::str::from_utf8(value.as_bytes()).ok().and_then(|text| veil.overwritten(text));
        if let Some(clean) = clean.and_then(|text| HeaderValue::from_str(&text).ok()) {
            *value = clean;
        }
    }
}

/// Overwrites secrets in the body: in any encoding within the first `most` bytes, which explain it, and as they are in the rest.
pub(super) fn clean_body(veil: &Veil, pieces: Vec<Bytes>, most: usize) -> Vec<Bytes> {
    let body = pieces.concat();
    let start = &body[..body.len().min(most)];
    let text = std::str::from_utf8(start)
        .unwrap_or_else(|error| std::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default());
    let pieces = match veil.overwritten(text) {
        Some(clean) => vec![Bytes::from(clean), Bytes::copy_from_slice(&body[text.len()..])],
        None => pieces,
    };
    pieces.into_iter().map(|piece| veil.whole().overwrite(piece)).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const KEY: &str = "sk-0123456789abcdef";

    fn cleaned(pieces: &[&str], most: usize) -> String {
        let mut veil = Veil::default();
        veil.add(KEY);
        let pieces = pieces.iter().map(|piece| Bytes::copy_from_slice(piece.as_bytes())).collect();
        String::from_utf8(clean_body(&veil, pieces, most).concat()).unwrap()
    }

    #[test]
    fn secrets_are_overwritten_and_lengths_stay() {
        assert_eq!(
            cleaned(&["{\"wrong\": \"", "sk-0123456", "789abcdef\"}"], 100),
            format!("{{\"wrong\": \"{}\"}}", "*".repeat(KEY.len()))
        );
        assert_eq!(cleaned(&["ä sk-01234567 ü"], 100), "ä *********** ü", "a part of it");
        assert_eq!(cleaned(&["all is well"], 100), "all is well");
        let far = format!("{} {KEY} sk-01234567", "x".repeat(20));
        assert_eq!(
            cleaned(&[&far], 10),
            far.replace(KEY, &"*".repeat(KEY.len())),
            "beyond the explanation, only the whole"
        );
    }

    #[test]
    fn a_compressed_refusal_loses_them_and_its_compression() {
        let mut veil = Veil::default();
        veil.add(KEY);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        let gzip = |text: &str| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(text.as_bytes()).unwrap();
            Bytes::from(encoder.finish().unwrap())
        };
        let innocent = vec![gzip("{\"message\": \"slow down\"}")];
        let (kept, body, said) = clean(&veil, headers.clone(), innocent.clone(), 20);
        assert_eq!((kept, body, &said[..]), (headers.clone(), innocent, &b"{\"message\": \"slow do"[..]));
        let (left, body, _) = clean(&veil, headers, vec![gzip(&format!("no {KEY}"))], 100);
        assert_eq!(body.concat(), format!("no {}", "*".repeat(KEY.len())).as_bytes());
        assert!(left.is_empty());
    }

    #[test]
    fn headers_lose_them_too() {
        let mut veil = Veil::default();
        veil.add(KEY);
        let mut headers = HeaderMap::new();
        headers.insert("x-said", format!("no {KEY}").parse().unwrap());
        headers.insert("x-request-id", "req_1".parse().unwrap());
        clean_headers(&veil, &mut headers);
        assert_eq!(headers["x-said"], format!("no {}", "*".repeat(KEY.len())));
        assert_eq!(headers["x-request-id"], "req_1");
    }
}
