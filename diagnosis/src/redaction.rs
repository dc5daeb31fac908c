//! Takes credentials out of text that people and logs will see.

/// What stands in a secret's place.
const MARK: &str = "[redacted]";

/// How the keys of well-known issuers begin. Compared with case, at the start of a word.
const PREFIXES: &[&str] = &[
    "sk-",
    "sk_",
    "pk-",
    "rk-",
    "AIza",
    "ya29.",
    "gsk_",
    "xai-",
    "hf_",
    "nvapi-",
    "pplx-",
    "r8_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "AKIA",
    "ASIA",
    "xoxb-",
    "eyJ",
    "csk-",
    "fw_",
    "tgp_",
];

/// Names whose value is a secret, in `name=value` and, where the flag says so, in `name: value`.
const NAMES: &[(&str, bool)] = &[
    ("key", false),
    ("token", false),
    ("sig", false),
    ("signature", false),
    ("apikey", true),
    ("api_key", true),
    ("api-key", true),
    ("api key", true),
    ("x-api-key", true),
    ("x-goog-api-key", true),
    ("access_token", true),
    ("refresh_token", true),
    ("id_token", true),
    ("client_secret", true),
    ("secret", true),
    ("password", true),
];

/// Schemes of the authorization header, which a credential follows.
const SCHEMES: &[&str] = &["bearer", "basic", "token"];

/// The fewest characters after a prefix or scheme that make a secret.
const SHORTEST: usize = 6;

/// Copies `text` without its secrets, at most `room` bytes, cut between characters.
pub(crate) fn redact(text: &str, room: usize) -> String {
    let mut out = String::with_capacity(text.len().min(room));
    let mut rest = text;
    let mut in_word = false;
    while let Some(first) = rest.chars().next() {
        let found = if in_word { None } else { secret(rest) };
        let (copied, skipped, mark) = match found {
            Some((kept, hidden)) => (kept, kept + hidden, MARK),
            None => (first.len_utf8(), first.len_utf8(), ""),
        };
        if out.len() + copied + mark.len() > room {
            break;
        }
        out.push_str(&rest[..copied]);
        out.push_str(mark);
        in_word = first.is_ascii_alphanumeric() || first == '_';
        rest = &rest[skipped..];
    }
    out
}

/// Where a secret begins at the start of `text`: how many bytes to keep, then how many to hide.
fn secret(text: &str) -> Option<(usize, usize)> {
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
    let value = rest.trim_start_matches([' ', ':']);
    let kept = text.len() - value.len();
    let length = value_length(value);
    (value.len() < rest.len() && length >= SHORTEST && !is_word(&value[..length])).then_some((kept, length))
}

fn assigned(text: &str) -> Option<(usize, usize)> {
    let (name, with_colon) = NAMES.iter().find(|(name, _)| {
        starts_with(text, name)
            && !text[name.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
    })?;
    let quotes = |c: char| matches!(c, '"' | '\'' | '\\');
    let sign = text[name.len()..].trim_start_matches(quotes).trim_start();
    let value = match sign.chars().next()? {
        '=' => &sign[1..],
        ':' if *with_colon => &sign[1..],
        _ => return None,
    };
    let value = value.trim_start().trim_start_matches(quotes);
    let length = value_length(value);
    (length >= SHORTEST && !(sign.starts_with(':') && is_word(&value[..length])))
        .then_some((text.len() - value.len(), length))
}

/// `https://user:password@host`.
fn in_url(text: &str) -> Option<(usize, usize)> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
    let end = rest.find(|c: char| c == '/' || c == '"' || c.is_whitespace()).unwrap_or(rest.len());
    let at = rest[..end].rfind('@')?;
    Some((text.len() - rest.len(), at))
}

fn starts_with(text: &str, name: &str) -> bool {
    text.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name))
}

/// How many bytes of `text` can belong to one credential.
fn value_length(text: &str) -> usize {
    text.bytes()
        .position(|b| {
            !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'+' | b'/' | b'=' | b'~' | b'*'))
        })
        .unwrap_or(text.len())
}

/// Plain prose such as "authentication", which follows "bearer" in many a message.
fn is_word(text: &str) -> bool {
    text.len() < 16 && text.trim_end_matches('.').bytes().all(|b| b.is_ascii_lowercase())
}
