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

#[test]
fn a_frame_costs_no_more_than_its_bytes() {
    let frames = [
        filled("[", "{},", "]"),
        filled(r#"{"type":"#, "[", ""),
        filled(r#"{"type":["#, "{},", "]}"),
        filled(r#"{"conversationId":["#, "0,", r#"],"type":"chat.stop"}"#),
        filled(r#"{"type":"chat.stop","conversationId":"c","more":["#, "{},", "]}"),
        filled(r#"{"type":"chat.stop","conversationId":"c""#, r#","":0"#, "}"),
        filled(r#"{"type":"chat.send","message":["#, "{},", "]}"),
        filled(r#"{"type":"chat.send","message":"","images":["#, r#"{"url":""},"#, "]}"),
        filled(r#"{"type":"chat.send","message":"","images":["#, r#"{"url":"","x":[[]]},"#, "]}"),
        filled(r#"{"type":"x"#, "y", r#""}"#),
    ];
    for frame in &frames {
        let (bytes, parsed) = cost(|| Command::parse(frame));
        // What is skipped is remembered in a byte for each level of it, which may have grown to twice that.
        assert!(bytes <= 2 * FRAME, "{bytes} bytes for {:?}, which is {parsed:?}", &frame[..60]);
    }
    let (bytes, parsed) = cost(|| serde_json::from_str::<SendRequest>(&frames[7]));
    assert!(
        bytes < 1 << 20 && parsed.unwrap_err().to_string().contains("more than 64 images"),
        "{bytes} bytes"
    );
    let (bytes, parsed) = cost(|| Command::parse(&frames[4]));
    assert!(bytes < 1000 && parsed.is_ok(), "{bytes} bytes");
    let long = filled(r#"{"type":"chat.send","message":""#, "long ", r#""}"#);
    let (bytes, parsed) = cost(|| Command::parse(&long));
    assert!(bytes <= 3 * FRAME && matches!(parsed, Ok(Command::ChatSend { .. })), "{bytes} bytes");
    assert!(matches!(Command::parse(&frames[1]), Err(CommandError::NotJson(_))));
}
