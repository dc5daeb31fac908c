//! The memory used to parse untrusted input.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use everturn_wire::{Command, CommandError, SendRequest};
use peak_alloc::PeakAlloc;

// The only test in this file, because allocations of another one would count too.
#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The WebSocket transport's default frame limit.
const FRAME: usize = 4 << 20;

/// Returns the peak memory used by `work`, in bytes beyond what was allocated before.
fn cost<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let done = work();
    (ALLOCATOR.peak_usage().saturating_sub(before), done)
}

/// Returns `begin`, then `piece` repeated, then `end`.
fn filled(begin: &str, piece: &str, end: &str) -> String {
    let count = (FRAME - begin.len() - end.len()) / piece.len();
    let pieces = piece.repeat(count);
    format!("{begin}{}{end}", pieces.trim_end_matches(','))
}

/// Returns frames with many or deeply nested values.
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
        filled(
            r#"{"type":"question.answer","conversationId":"c","questionId":"q","action":"accept","content":["#,
            "{},",
            "]}",
        ),
        filled(r#"{"type":"chat.send","message":"","finalReport":{"schema":["#, "{},", "]}}"),
        filled(r#"{"type":"chat.send","message":"","finalReport":{"schema":["#, r#"{"":0},"#, "]}}"),
    ]
}

/// Returns frames with one long string, at every place where a string may or must not appear.
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
        (
            r#"{"type":"question.answer","conversationId":"c","questionId":"q","action":"accept","content":{"a":""#,
            r#""}}"#,
        ),
        (r#"{"type":"retry.set","enabled":""#, r#""}"#),
        (r#"{"type":"retry.set","preset":""#, r#""}"#),
        (r#"{"type":"retry.set","fallbackChains":{""#, r#"":[]}}"#),
        (r#"{"type":"retry.set","fallbackChains":{"":[""#, r#""]}}"#),
        (r#"{"type":"retry.set","fallbackChains":{"":""#, r#""}}"#),
        (r#"{"type":"retry.set","conversationId":""#, r#""}"#),
        (r#"{"type":"retry.set",""#, r#"":0}"#),
    ];
    // Serde quotes a delete character as six bytes. Because of the escape, the string is assembled in a buffer; as the
    // string comes last, the buffer grows to twice its size.
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
