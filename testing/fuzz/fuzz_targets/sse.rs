//! The event decoder, compared with a simple one that has all bytes at once, and with itself on split input.
//!
//! The first byte of the input is the size of the pieces, the second the decoder's limit in units of 16 bytes.

#![no_main]

use everturn_provider::SseDecoder;
use libfuzzer_sys::fuzz_target;

type Event = (String, String);

fuzz_target!(|input: &[u8]| {
    let [size, limit, bytes @ ..] = input else { return };
    let size = usize::from(*size).max(1);
    let (whole, _) = decoded(SseDecoder::DEFAULT_LIMIT, [bytes]);
    assert_eq!(whole, plain(bytes), "the plain decoder disagrees");
    assert_eq!(decoded(SseDecoder::DEFAULT_LIMIT, bytes.chunks(size)).0, whole, "in pieces of {size}");

    let limit = usize::from(*limit) * 16;
    let bounded = decoded(limit, [bytes]);
    assert!(whole.starts_with(&bounded.0), "a limit changes no event");
    assert_eq!(decoded(limit, bytes.chunks(size)), bounded, "in pieces of {size}, at most {limit}");
    if bounded.1 {
        assert!(bytes.len() > limit, "{} bytes met the limit of {limit}", bytes.len());
    }
});

/// Returns the events of these pieces, and whether the limit was exceeded.
fn decoded<'a>(limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Event>, bool) {
    let mut decoder = SseDecoder::new(limit);
    let mut events = Vec::new();
    for mut piece in pieces {
        loop {
            match decoder.next(&mut piece) {
                Ok(Some(event)) => events.push((event.name.into_owned(), event.data.into_owned())),
                Ok(None) => break,
                Err(_) => return (events, true),
            }
        }
    }
    (events, false)
}

/// A straightforward implementation of the specification.
fn plain(bytes: &[u8]) -> Vec<Event> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text).replace("\r\n", "\n").replace('\r', "\n");
    let (mut events, mut name, mut data) = (Vec::new(), String::new(), String::new());
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    for line in complete.split('\n') {
        if line.is_empty() {
            if !data.is_empty() {
                data.pop();
                let name = if name.is_empty() { "message".to_owned() } else { name.clone() };
                events.push((name, data.clone()));
            }
            name.clear();
            data.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => data.extend([value, "\n"]),
            "event" => name = value.to_owned(),
            _ => {}
        }
    }
    events
}
