//! Secrets in every encoding, in any text.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn veil(secret: &str) -> Veil {
    let mut veil = Veil::default();
    veil.add(secret);
    veil
}

fn hidden(secret: &str, text: &str) -> String {
    let mut text = text.to_owned();
    veil(secret).hide_in(&mut text);
    text
}

/// The encoding that the property uses.
#[derive(Clone, Copy, Debug)]
enum Written {
    Plain,
    Percent(bool),
    PercentAll(bool),
    Slashes,
    Unicode,
    Json,
    PercentInJson,
    Base64,
    UrlBase64,
    Basic,
}

const WAYS: &[Written] = &[
    Written::Plain,
    Written::Percent(true),
    Written::Percent(false),
    Written::PercentAll(true),
    Written::PercentAll(false),
    Written::Slashes,
    Written::Unicode,
    Written::Json,
    Written::PercentInJson,
    Written::Base64,
    Written::UrlBase64,
    Written::Basic,
];

fn percent(secret: &str, all: bool, upper: bool) -> String {
    let mut out = String::new();
    for byte in secret.bytes() {
        match (byte.is_ascii_alphanumeric() && !all, upper) {
            (true, _) => out.push(char::from(byte)),
            (_, true) => write!(out, "%{byte:02X}").unwrap(),
            (_, false) => write!(out, "%{byte:02x}").unwrap(),
        }
    }
    out
}

fn json(secret: &str) -> String {
    let quoted = serde_json::to_string(secret).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

fn written(secret: &str, way: Written) -> String {
    match way {
        Written::Plain => secret.to_owned(),
        Written::Percent(upper) => percent(secret, false, upper),
        Written::PercentAll(upper) => percent(secret, true, upper),
        Written::Slashes => json(secret).replace('/', "\\/"),
        Written::Unicode => secret.chars().map(|letter| format!("\\u{:04x}", u32::from(letter))).collect(),
        Written::Json => json(&json(secret)),
        Written::PercentInJson => percent(secret, false, true).replace('%', "\\u0025"),
        Written::Base64 => STANDARD.encode(secret),
        Written::UrlBase64 => URL_SAFE.encode(secret).trim_end_matches('=').to_owned(),
        Written::Basic => STANDARD.encode(format!("someone:{secret}")),
    }
}

/// Whether the two texts share eight consecutive bytes.
fn shares_a_window(one: &str, other: &str) -> bool {
    one.as_bytes().windows(WINDOW).any(|window| other.as_bytes().windows(WINDOW).any(|found| found == window))
}

proptest! {
    #[test]
    fn secrets_are_removed_completely(
        secret in "[!-~]{8,48}",
        way in prop::sample::select(WAYS),
        (before, after) in (".{0,24}", ".{0,24}"),
        (skipped, kept) in (0..8_usize, 8..60_usize),
    ) {
        // The surrounding text must not contain the secret by accident.
        prop_assume!(!shares_a_window(&secret, &before) && !shares_a_window(&secret, &after));
        let whole = written(&secret, way);
        let clean = hidden(&secret, &format!("{before}{whole}{after}"));
        prop_assert!(!shares_a_window(&clean, &secret), "{way:?} {clean}");
        // In base64, twelve digits are needed for eight characters.
        let digits = if matches!(way, Written::Base64 | Written::UrlBase64 | Written::Basic) { 12 } else { WINDOW };
        if whole.len() > digits + 8 {
            let left = whole.as_bytes().windows(digits + 8).any(|piece| {
                clean.as_bytes().windows(digits + 8).any(|found| found == piece)
            });
            prop_assert!(!left || clean.len() > 4096, "{way:?} {clean}");
        }
        // An arbitrary part of it.
        let part: String = secret.chars().skip(skipped).take(kept).collect();
        let clean = hidden(&secret, &format!("{before} {} {after}", written(&part, way)));
        prop_assert!(!shares_a_window(&clean, &part), "{way:?} {clean}");
        prop_assert!(part.len() < 16 || clean.contains(MARK), "{way:?} {clean}");
    }

    #[test]
    fn other_text_stays(secret in "[A-Za-z0-9]{8,40}", text in "[ -~]{0,200}") {
        prop_assume!(!shares_a_window(&secret, &text));
        prop_assert_eq!(hidden(&secret, &text), text);
    }
}

#[test]
fn a_backslash_before_an_escape_hides_no_secret() {
    let clean = hidden("!0!0A0!A", r"in \\u0025210\u0025210A0\u002521A");
    assert_eq!(clean, format!(r"in \{MARK}"));
}

#[test]
fn every_part_of_a_credential_is_secret() {
    let basic = format!("Basic {}", STANDARD.encode("someone:hush-hush-9"));
    let in_url = URL_SAFE.encode("someone:hush?hush>9");
    for (secret, text, clean) in [
        ("Bearer tok-12345678", "no tok-12345678!", "no [redacted]!"),
        ("Bearer tok-12345678", "no tok-12345...", "no [redacted]..."),
        (&basic, "user someone, password hush-hush-9", "user someone, password [redacted]"),
        (&in_url, "password hush?hush>9", "password [redacted]"),
        ("session=abc123def456; Path=/", "the session abc123def456 ended", "the session [redacted] ended"),
        ("correct horse battery staple", "Incorrect API key", "Incorrect API key"),
        ("correct horse battery staple", "no correct horse ba...", "no c[redacted]..."),
        ("correct horse battery staple", "no correct+horse", "no c[redacted]"),
        ("s3cret", "no s3cret, no s3crets", "no [redacted], no s3crets"),
        ("true", "true is true", "true is true"),
        ("ollama", "ollama is not running", "ollama is not running"),
        ("", "nothing", "nothing"),
    ] {
        assert_eq!(hidden(secret, text), clean, "{secret}");
    }
}
