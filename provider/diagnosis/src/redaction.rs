//! Removes credentials from text shown to people or written to logs.

use crate::pair::Pairs;

/// Replaces a secret.
const MARK: &str = "[redacted]";

/// Prefixes of keys of well-known issuers. Case-sensitive, at the start of a word.
#[rustfmt::skip]
const PREFIXES: &[&str] = &[
    "sk-", "sk_", "pk-", "rk-", "AIza", "ya29.", "gsk_", "xai-", "hf_", "nvapi-", "pplx-", "r8_", "ghp_", "gho_",
    "ghs_", "github_pat_", "glpat-", "AKIA", "ASIA", "xoxb-", "eyJ", "csk-", "fw_", "tgp_",
];

/// Names whose value in `name=value` is a secret.
const ASSIGNED: &[&str] = &["key", "token", "sig", "signature"];

/// Names whose value in `name: value` is a secret, too.
#[rustfmt::skip]
const NAMED: &[&str] = &[
    "apikey", "api_key", "api-key", "api key", "x-api-key", "x-goog-api-key", "access_token", "refresh_token", "id_token",
    "auth_token", "client_secret", "secret", "password", "authorization",
];

/// Authorization schemes that precede a credential.
const SCHEMES: &[&str] = &["bearer", "basic", "token"];

/// Prefixes of `user:password@`.
const URLS: &[&str] = &["http://", "https://"];

/// The beginnings of all of these.
const STARTS: Pairs = Pairs::of(&[PREFIXES, ASSIGNED, NAMED, SCHEMES, URLS]);

/// Minimum number of characters after a prefix or scheme that make a secret.
const SHORTEST: usize = 6;

/// Copies a text without anything that looks like a credential, truncated to `room` bytes on a character boundary.
pub fn redact(text: &str, room: usize) -> String {
    let mut out = String::with_capacity(text.len().min(room));
    let mut copied = 0;
    let mut at = 0;
    let mut in_word = false;
    while at < text.len() && out.len() + (at - copied) < room {
        let first = text.as_bytes()[at];
        if let Some((kept, hidden)) =
            (!in_word && text.is_char_boundary(at)).then(|| secret(&text[at..])).flatten()
        {
            push(&mut out, &text[copied..at + kept], room);
            push(&mut out, MARK, room);
            at += kept + hidden;
            copied = at;
            // The apparent secret may be the name of one: "token x-api-key: ...".
            while let Some((kept, hidden)) = named_value(&text[at..]) {
                push(&mut out, &text[at..at + kept], room);
                push(&mut out, MARK, room);
                at += kept + hidden;
                copied = at;
            }
            in_word = false;
        } else {
            in_word = first.is_ascii_alphanumeric();
            at += 1;
        }
    }
    push(&mut out, &text[copied..text.floor_char_boundary(at)], room);
    out
}

fn push(out: &mut String, text: &str, room: usize) {
    let end = text.floor_char_boundary(room.saturating_sub(out.len()));
    out.push_str(&text[..end]);
}

/// Returns how many bytes to keep and then to hide, if a secret begins at the start of `text`.
fn secret(text: &str) -> Option<(usize, usize)> {
    if !STARTS.may_have(text.as_bytes()) {
        return None;
    }
    issued(text).or_else(|| after_scheme(text)).or_else(|| assigned(text)).or_else(|| in_url(text))
}

fn issued(text: &str) -> Option<(usize, usize)> {
    let prefix = PREFIXES.iter().find(|prefix| text.starts_with(**prefix))?;
    let length = value_length(text);
    (length >= prefix.len() + SHORTEST).then_some((0, length))
}

fn after_scheme(text: &str) -> Option<(usize, usize)> {
    let scheme = SCHEMES.iter().find(|scheme| starts_with(text, scheme))?;
    let rest = &text[scheme.len()..];
    let mut value = rest.trim_start_matches([' ', ':']);
    // "token: Bearer ..."
    for scheme in SCHEMES {
        if starts_with(value, scheme) && value[scheme.len()..].starts_with([' ', ':']) {
            value = value[scheme.len()..].trim_start_matches([' ', ':']);
        }
    }
    let kept = text.len() - value.len();
    let length = value_length(value);
    (value.len() < rest.len() && length >= SHORTEST && !is_word(&value[..length])).then_some((kept, length))
}

fn assigned(text: &str) -> Option<(usize, usize)> {
    let is_name = |name: &&&str| {
        let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '_';
        starts_with(text, name) && !text[name.len()..].starts_with(goes_on)
    };
    let named = NAMED.iter().find(is_name);
    let name = named.or_else(|| ASSIGNED.iter().find(is_name))?;
    let rest = &text[name.len()..];
    let sign = rest.trim_start_matches(is_quote).trim_start();
    let (kept, hidden) = named_value(rest).filter(|_| named.is_some() || sign.starts_with('='))?;
    Some((name.len() + kept, hidden))
}

/// Finds the secret after a name, possibly after its scheme: "api_key: Bearer ...".
fn named_value(text: &str) -> Option<(usize, usize)> {
    let (kept, hidden) = assigned_to(text)?;
    let (more, hidden) = after_scheme(&text[kept..]).unwrap_or((0, hidden));
    Some((kept + more, hidden))
}

/// Finds the value after a name: `: value`, `="value"`.
fn assigned_to(text: &str) -> Option<(usize, usize)> {
    let sign = text.trim_start_matches(is_quote).trim_start();
    let value = sign.strip_prefix(['=', ':'])?.trim_start().trim_start_matches(is_quote);
    let length = value_length(value);
    let is_prose = sign.starts_with(':') && is_word(&value[..length]);
    (length >= SHORTEST && !is_prose).then_some((text.len() - value.len(), length))
}

fn is_quote(letter: char) -> bool {
    matches!(letter, '"' | '\'' | '\\')
}

/// Finds the secret in `https://user:password@host`.
fn in_url(text: &str) -> Option<(usize, usize)> {
    let rest = URLS.iter().find_map(|scheme| text.strip_prefix(scheme))?;
    let end = rest.find(|c: char| c == '/' || c == '"' || c.is_whitespace()).unwrap_or(rest.len());
    let at = rest[..end].rfind('@')?;
    Some((text.len() - rest.len(), at))
}

fn starts_with(text: &str, name: &str) -> bool {
    text.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name))
}

/// Returns how many bytes of `text` can belong to one credential.
fn value_length(text: &str) -> usize {
    text.bytes()
        .position(|b| {
            !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'+' | b'/' | b'=' | b'~' | b'*'))
        })
        .unwrap_or(text.len())
}

/// Whether this is an ordinary word, such as "authentication", which often follows "bearer".
fn is_word(text: &str) -> bool {
    text.len() < 16 && text.trim_end_matches('.').bytes().all(|b| b.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::redact;

    #[test]
    fn secrets_are_removed_and_the_rest_is_kept() {
        for (text, clean) in [
            ("Incorrect API key provided: sk-proj-abc123xyz.", "Incorrect API key provided: [redacted]"),
            ("key sk-ant-****MxYA, retry", "key [redacted], retry"),
            ("Authorization: Bearer abc.DEF-123", "Authorization: Bearer [redacted]"),
            (r#"{"api_key":"topsecret1","n":1}"#, r#"{"api_key":"[redacted]","n":1}"#),
            (
                "GET https://x.test/v1?key=AIzaSyA1234567&alt=sse",
                "GET https://x.test/v1?key=[redacted]&alt=sse",
            ),
            ("https://me:pass@x.test/", "https://[redacted]@x.test/"),
            ("invalid token x-api-key: abcDEF123", "invalid token [redacted]: [redacted]"),
            ("csk-0123456789: Bearer abcDEF123", "[redacted]: Bearer [redacted]"),
            ("csk-0123456789: x-api-key: abcDEF123", "[redacted]: [redacted]: [redacted]"),
            ("api_key: Bearer abcDEF123", "api_key: Bearer [redacted]"),
            ("token: Bearer abcDEF123 expired", "token: Bearer [redacted] expired"),
            ("OPENAI_API_KEY=abcDEF123 is set", "OPENAI_API_KEY=[redacted] is set"),
        ] {
            assert_eq!(redact(text, 4096), clean);
        }
    }

    #[test]
    fn what_only_resembles_a_secret_is_kept() {
        for text in [
            "task-12345678 risk-free",
            "Missing bearer authentication in header",
            "max tokens: 123456, token count: 900000",
            "the key: none was given",
            "invalid api key: missing",
        ] {
            assert_eq!(redact(text, 4096), text);
        }
    }

    #[test]
    fn it_ends_between_characters() {
        assert_eq!(redact("ééé", 5), "éé");
        assert_eq!(redact("ab sk-0123456789", 8), "ab [reda");
        assert_eq!(redact("", 0), "");
    }
}
