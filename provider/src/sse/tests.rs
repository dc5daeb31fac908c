//! The decoder against a table, against itself with split input, and against an independent decoder.

use futures_util::{FutureExt as _, StreamExt as _, stream};
use proptest::prelude::*;
use sse_stream::SseByteStream;

use super::*;

type Owned = (String, String);

/// A description, the bytes, and the names and data of the expected events.
type Row = (&'static str, &'static [u8], &'static [(&'static str, &'static str)]);

/// Decodes all pieces. Returns the events, and whether the limit was exceeded.
fn decode_within<'a>(limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Owned>, bool) {
    let mut decoder = SseDecoder::new(limit);
    let mut events = Vec::new();
    for mut piece in pieces {
        loop {
            match decoder.next(&mut piece) {
                Ok(Some(event)) => events.push((event.name.into_owned(), event.data.into_owned())),
                Ok(None) => break,
                Err(EventTooLarge { .. }) => return (events, true),
            }
        }
    }
    (events, false)
}

fn decode(bytes: &[u8]) -> Vec<Owned> {
    decode_within(SseDecoder::DEFAULT_LIMIT, [bytes]).0
}

#[test]
fn every_form_of_the_format() {
    let table: [Row; 22] = [
        ("line feed", b"data: a\n\ndata: b\n\n", &[("message", "a"), ("message", "b")]),
        ("carriage return", b"data: a\r\rdata: b\r\r", &[("message", "a"), ("message", "b")]),
        ("both", b"data: a\r\n\r\ndata: b\r\n\r\n", &[("message", "a"), ("message", "b")]),
        ("mixed", b"data: a\r\n\rdata: b\n\r\n", &[("message", "a"), ("message", "b")]),
        ("a CRLF is one end, not two", b"data: a\r\ndata: b\r\n\r\n", &[("message", "a\nb")]),
        ("byte order mark", b"\xEF\xBB\xBFdata: a\n\n", &[("message", "a")]),
        ("byte order mark later", b"data: a\n\n\xEF\xBB\xBFdata: b\n\n", &[("message", "a")]),
        ("no space after the colon", b"data:a\n\n", &[("message", "a")]),
        ("one space only is taken off", b"data:  a\n\n", &[("message", " a")]),
        ("lines are joined", b"data: a\ndata:\ndata: b\n\n", &[("message", "a\n\nb")]),
        ("a name", b"event: error\ndata: a\n\n", &[("error", "a")]),
        ("the last name counts", b"event: x\nevent: y\ndata: a\n\n", &[("y", "a")]),
        ("a name ends with its event", b"event: x\n\ndata: a\n\n", &[("message", "a")]),
        ("an empty name is none", b"event:\ndata: a\n\n", &[("message", "a")]),
        ("comments", b": hi\n\n:\ndata: a\n: there\ndata: b\n\n", &[("message", "a\nb")]),
        ("other fields", b"id: 1\nretry: 5\ndatum: x\n data: x\ndata: a\n\n", &[("message", "a")]),
        ("a field without a colon", b"data\ndata: a\n\n", &[("message", "\na")]),
        ("no data, no event", b"event: x\nid: 1\n\n\n\n", &[]),
        ("empty data is data", b"data:\n\n", &[("message", "")]),
        ("no end, no event", b"data: a\n\ndata: b\n", &[("message", "a")]),
        (
            "separators of other alphabets end no line",
            "data: a\u{2028}b\u{2029}c\u{85}d\u{b}\u{c}\n\n".as_bytes(),
            &[("message", "a\u{2028}b\u{2029}c\u{85}d\u{b}\u{c}")],
        ),
        (
            "what is no UTF-8 is shown as such",
            b"data: a\xFFb\xE2\x82\n\n",
            &[("message", "a\u{FFFD}b\u{FFFD}")],
        ),
    ];
    for (name, bytes, expected) in table {
        let expected: Vec<Owned> = expected.iter().map(|&(n, d)| (n.into(), d.into())).collect();
        assert_eq!(decode(bytes), expected, "{name}");
    }
}

#[test]
fn an_event_is_seen_as_soon_as_its_blank_line_has_one_byte() {
    let mut decoder = SseDecoder::new(64);
    let mut input: &[u8] = b"data: a\r\n\r";
    assert_eq!(decoder.next(&mut input).unwrap().unwrap().data, "a");
    let mut input: &[u8] = b"\ndata: b\n\n";
    assert_eq!(decoder.next(&mut input).unwrap().unwrap().data, "b");
}

#[test]
fn an_event_may_be_as_large_as_the_limit_but_no_larger() {
    let exact = [b"data: ".as_slice(), &[b'x'; 94], b"\n\n"].concat();
    assert_eq!(decode_within(100, [exact.as_slice()]).0[0].1.len(), 94);
    let more = [b"data: ".as_slice(), &[b'x'; 95], b"\n\n"].concat();
    assert_eq!(decode_within(100, [more.as_slice()]), (vec![], true));
    let lines = b"data: 0123456789\n".repeat(10);
    assert_eq!(decode_within(100, [lines.as_slice()]), (vec![], true));
    let comment = [b":".as_slice(), &[b'x'; 1000]].concat();
    assert_eq!(decode_within(100, comment.chunks(1)), (vec![], true), "nor does an endless comment grow");
}

/// Returns what is left over after reading all pieces.
fn stray<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut decoder = SseDecoder::new(SseDecoder::DEFAULT_LIMIT);
    for mut piece in pieces {
        while decoder.next(&mut piece).unwrap().is_some() {}
    }
    decoder.stray().into_owned()
}

#[test]
fn stray_lines_are_kept_until_the_next_event() {
    let error = "{\n  \"error\": {\"code\": 503}\n}";
    for (bytes, expected) in [
        (error.to_owned(), error),
        (format!("data: a\n\n{error}"), error),
        (format!("data: a\n\n: hi\nid: 1\nretry: 2\nevent: x\n\n{error}"), error),
        (format!("{error}\n\ndata: a\n\n"), ""),
        ("data: a\n\n".to_owned(), ""),
    ] {
        let bytes = bytes.as_bytes();
        assert_eq!(stray([bytes]), expected);
        assert_eq!(stray(bytes.chunks(1)), expected, "byte by byte");
    }
    let lines = "0123456\n".repeat(10_000);
    let kept = stray([lines.as_bytes(), "x".repeat(70_000).as_bytes()]);
    assert_eq!(kept.len(), 64 << 10, "not without end");
    assert!(lines.starts_with(kept.trim_end_matches('x')), "from its beginning");
}

#[test]
fn nothing_is_decoded_after_the_limit() {
    let mut decoder = SseDecoder::new(20);
    let mut input: &[u8] = b"data: 0123456789abcdefghij\n\ndata: a\n\n";
    assert!(decoder.next(&mut input).is_err());
    assert!(decoder.next(&mut input).is_err());
}

/// A decoder that rescanned the event for every piece would read half a terabyte here.
#[test]
fn eight_mebibytes_pass_in_one_piece_and_in_many() {
    let text = "0123456789abcdef".repeat(8 << 16);
    let bytes = format!("event: big\ndata: {text}\n\n").into_bytes();
    for size in [bytes.len(), 1 << 14, 61] {
        let (events, too_large) = decode_within(SseDecoder::DEFAULT_LIMIT, bytes.chunks(size));
        assert!(!too_large);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].1.len(), 8 << 20);
    }
}

/// Bytes in which characters significant to the format are frequent.
fn stream_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "data: ".as_bytes(),
        b"data:",
        b"data",
        b"event: ",
        b"event:",
        b"id: 7",
        b"retry: 9",
        b":",
        b" ",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\r\n\r\n",
        b"a",
        b"{\"b\":1}",
        b"error",
        "é".as_bytes(),
        "\u{2028}".as_bytes(),
        "\u{1F600}".as_bytes(),
        "\u{FEFF}".as_bytes(),
        b"\0",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn with_broken_bytes() -> impl Strategy<Value = Vec<u8>> {
    (stream_bytes(), prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)).prop_map(
        |(mut bytes, changes)| {
            for (at, byte) in changes {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            bytes
        },
    )
}

fn by_the_oracle(bytes: &[u8]) -> Vec<Owned> {
    let input = stream::iter([Ok::<&[u8], std::io::Error>(bytes)]);
    let events: Vec<_> = SseByteStream::new(input).collect().now_or_never().expect("all input is there");
    let name =
        |name: Option<String>| name.filter(|name| !name.is_empty()).unwrap_or_else(|| "message".into());
    let event = |event: sse_stream::Sse| event.data.map(|data| (name(event.event), data));
    events.into_iter().filter_map(|result| event(result.expect("the input is UTF-8"))).collect()
}

proptest! {
    #[test]
    fn the_events_are_the_same_however_the_bytes_are_split(bytes in with_broken_bytes(), limit in 1_usize..80) {
        let whole = decode_within(limit, [bytes.as_slice()]);
        for at in 0..bytes.len() {
            let (head, tail) = bytes.split_at(at);
            prop_assert_eq!(&decode_within(limit, [head, tail]), &whole, "split at {}", at);
        }
        prop_assert_eq!(&decode_within(limit, bytes.chunks(1)), &whole, "byte by byte");
    }

    #[test]
    fn an_independent_decoder_agrees(bytes in stream_bytes()) {
        prop_assert_eq!(decode(&bytes), by_the_oracle(&bytes));
    }
}
