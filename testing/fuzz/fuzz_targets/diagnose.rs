//! The diagnosis: no panic, bounded output, no secret, and no wait of more than a year.
//!
//! An input resembles a response: three bytes for stage, transport and status, then headers, a blank line, and the
//! body.

#![no_main]

use everturn_diagnosis::{Evidence, Stage, Transport, diagnose};
use libfuzzer_sys::fuzz_target;

/// The time of the tests, in epoch milliseconds.
const NOW: u64 = 1_788_220_800_000;

/// What must never be shown.
const SECRET: &str = "Zq7RkT0vWm3XnB8yLd5HsJ2c";
/// Number of its characters that count as a leak.
const SEEN: usize = 12;
/// The forms in which it appears in a body.
const FORMS: [&str; 7] = [
    "sk-{}",
    "Bearer {}",
    "\"api_key\": \"{}\"",
    "https://user:{}@x.test/v1",
    "x-api-key: {}",
    "https://x.test/v1?key={}",
    "AIza{}",
];

fuzz_target!(|input: &[u8]| {
    let [first, second, third, rest @ ..] = input else { return };
    let text = String::from_utf8_lossy(rest);
    // The fuzzer learns the secret from the comparison, and may use it in a form that cannot be recognized.
    if text.contains(&SECRET[..SEEN]) {
        return;
    }
    let (head, body) = text.split_once("\n\n").unwrap_or(("", &text));
    let headers: Vec<_> = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name, value.trim()))
        .collect();
    let stage = [Stage::Http, Stage::InStream, Stage::Transport][usize::from(*first % 3)];
    let evidence = Evidence {
        stage,
        status: (stage != Stage::Transport).then(|| 200 + u16::from(*third) * 2),
        headers: &headers,
        body,
        transport: transport(*second),
        now: NOW,
    };
    check(&evidence);
    let form = FORMS[usize::from(*second) % FORMS.len()].replace("{}", SECRET);
    let middle = body.floor_char_boundary(body.len() / 2);
    let told = format!("{} {form} {}", &body[..middle], &body[middle..]);
    check(&Evidence { body: &told, ..evidence });
});

fn transport(byte: u8) -> Option<Transport> {
    use Transport::{
        Connect, ConnectTimeout, Cut, Dns, FirstByteTimeout, IdleTimeout, Other, Tls, Truncated,
    };
    let kinds = [Dns, Connect, ConnectTimeout, Tls, FirstByteTimeout, IdleTimeout, Cut, Truncated, Other];
    kinds.get(usize::from(byte % 32)).copied()
}

fn check(evidence: &Evidence<'_>) {
    let failure = diagnose(evidence);
    assert!(failure.message.len() <= 4096, "{} bytes", failure.message.len());
    assert!(
        failure.hint_ms.is_none_or(|wait| (1..=366 * 86_400_000).contains(&wait)),
        "{:?}",
        failure.hint_ms
    );
    assert!(failure.provider_code.as_ref().is_none_or(|code| code.len() <= 96), "{failure:?}");
    assert!(!format!("{failure:?}").contains(&SECRET[..SEEN]), "{failure:?}");
    assert_eq!(diagnose(evidence), failure, "it depends on the evidence alone");
}
