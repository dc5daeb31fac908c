//! What it costs to read what a stranger sent.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use everturn_wire::{Command, CommandError, SendRequest};
use peak_alloc::PeakAlloc;

// One test in this file: what another one allocates would count too.
#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// As long as the WebSocket transport takes them by default.
const FRAME: usize = 4 << 20;

/// The most bytes that are held while it runs, beyond what was held before.
fn cost<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let done = work();
    (ALLOCATOR.peak_usage().saturating_sub(before), done)
}

/// That piece again and again between a beginning and an end.
fn filled(begin: &str, piece: &str, end: &str) -> String {
    let count = (FRAME - begin.len() - end.len()) / piece.len();
    let pieces = piece.repeat(count);
    format!("{begin}{}{end}", pieces.trim_end_matches(','))
}

/// Frames of many values, or of deep ones.
fn nested() -> Vec<String> {
    vec![
        filled("[", "{},", "]"),
        filled(r#"{"type":"#, "[", ""),
        filled(r#"{"type":["#, "{},", "]}"),
        filled(r#"{"conversationId":["#, "0,", r#"],"type":"chat.stop"}"#),
        filled(r#"{"type":"chat.stop","conversationId":"c","more":["#, "{},", "]}"),
        filled(r#"{"type":"chat.stop","conversationId":"c""#, r#","":0"#, "}"),
        filled(r#"{"type":"retry.set""#, r#","":0"#, "}"),
        filled(r#"{"type":"retry.set","maxRetries":["#, "{},", "]}"),
        filled(r#"{"type":"retry.set","fallbackChains":{"#, r#""":[],"#, "}}"),
        filled(r#"{"type":"retry.set","fallbackChains":{"":["#, r#""","#, "]}}"),
        filled(r#"{"type":"chat.send","message":["#, "{},", "]}"),
        filled(r#"{"type":"chat.send","message":"","images":["#, r#"{"url":""},"#, "]}"),
        filled(r#"{"type":"chat.send","message":"","images":["#, r#"{"url":"","x":[[]]},"#, "]}"),
        filled(r#"{"type":"chat.send","message":"","finalReport":{"schema":["#, "{},", "]}}"),
        filled(r#"{"type":"chat.send","message":"","finalReport":{"schema":["#, r#"{"":0},"#, "]}}"),
    ]
}

/// Frames with one long string, at every place where a string may stand or must not.
fn stringy() -> Vec<String> {
    let places = [
        (r#"{"type":"x"#, r#""}"#),
        (r#"{"type":"chat.stop","conversationId":"c",""#, r#"":0}"#),
        (r#"{"type":"chat.stop","conversationId":""#, r#""}"#),
        (r#"{"type":"chat.queue","conversationId":""#, r#""}"#),
        (r#"{"type":"chat.retry","conversationId":"c","turnId":""#, r#""}"#),
        (r#"{"type":"chat.send","message":""#, r#""}"#),
        (r#"{"type":"chat.send","message":"","images":""#, r#""}"#),
        (r#"{"type":"chat.send","message":"","images":[""#, r#""]}"#),
        (r#"{"type":"chat.send","message":"","images":[{"url":""#, r#""}]}"#),
        (r#"{"type":"chat.send","message":"","extensions":""#, r#""}"#),
        (r#"{"type":"chat.subscribe","conversationId":"c","extensions":""#, r#""}"#),
        (r#"{"type":"chat.retry","conversationId":"c","turnId":"t","extensions":""#, r#""}"#),
        (r#"{"type":"chat.send","message":"","retry":""#, r#""}"#),
        (r#"{"type":"chat.send","message":"","retry":{"preset":""#, r#""}}"#),
        (r#"{"type":"chat.send","message":"","finalReport":""#, r#""}"#),
        (r#"{"type":"chat.send","message":"","finalReport":{"schema":""#, r#""}}"#),
        (r#"{"type":"chat.send","message":"","finalReport":{""#, r#"":0}}"#),
        (r#"{"type":"chat.send","message":"","finalReport":{"maxAttempts":""#, r#""}}"#),
        (r#"{"type":"retry.set","enabled":""#, r#""}"#),
        (r#"{"type":"retry.set","preset":""#, r#""}"#),
        (r#"{"type":"retry.set","fallbackChains":{""#, r#"":[]}}"#),
        (r#"{"type":"retry.set","fallbackChains":{"":[""#, r#""]}}"#),
        (r#"{"type":"retry.set","fallbackChains":{"":""#, r#""}}"#),
        (r#"{"type":"retry.set","conversationId":""#, r#""}"#),
        (r#"{"type":"retry.set",""#, r#"":0}"#),
    ];
    // A delete takes six bytes where serde quotes it. Because of the escape, the string is put together in a buffer,
    // and as it comes last, that buffer grows to twice the string.
    places.iter().map(|(begin, end)| filled(begin, "\u{7f}", &format!("\\n{end}"))).collect()
}

#[test]
fn a_frame_costs_at_most_four_times_its_bytes() {
    for frame in nested().into_iter().chain(stringy()) {
        let begin = &frame[..60];
        let (bytes, parsed) = cost(|| Command::parse(&frame));
        assert!(bytes <= 4 * FRAME, "{bytes} bytes for {begin:?}");
        assert!(parsed.map_or_else(|error| error.to_string().len() < 1000, |_| true), "{begin:?}");
        if begin.contains("chat.send") {
            let (bytes, _) = cost(|| serde_json::from_str::<SendRequest>(&frame));
            assert!(bytes <= 4 * FRAME, "{bytes} bytes for the body {begin:?}");
        }
    }
    let [many, skipped] = [11, 4].map(|at| nested().swap_remove(at));
    let (bytes, parsed) = cost(|| serde_json::from_str::<SendRequest>(&many));
    assert!(
        bytes < 1 << 20 && parsed.unwrap_err().to_string().contains("more than 64 images"),
        "{bytes} bytes"
    );
    let (bytes, parsed) = cost(|| Command::parse(&skipped));
    assert!(bytes < 1000 && parsed.is_ok(), "{bytes} bytes");
    assert!(matches!(Command::parse(&nested()[1]), Err(CommandError::NotJson(_))));
}
