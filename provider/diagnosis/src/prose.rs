//! Text normalized for matching whole words: lower case, one space between words, without URLs.
//!
//! Ports, identifiers and the digits of URLs would mislead a search in raw text.

use crate::pair::Pairs;

/// Maximum length of text examined, in bytes. The relevant part of an error comes early.
const LONGEST: usize = 8192;

/// Minimum number of words in a quotation. Shorter ones are quoted names.
const QUOTATION: usize = 3;

/// Maximum length of a quotation that is dropped, in bytes.
const LONGEST_QUOTATION: usize = 1024;

/// Separates texts of different origin, so that no phrase crosses them.
const SEAM: char = '|';

/// Words to match phrases against.
#[derive(Default)]
pub(crate) struct Prose {
    /// Begins and ends with a space.
    words: String,
    /// The first two bytes of each word, and its position. Comparing these is cheaper than searching.
    starts: Vec<([u8; 2], usize)>,
    /// The beginnings of the words, used to skip most phrases at once.
    pairs: Pairs,
    is_ascii: bool,
}

impl Prose {
    /// Collects the words of several texts. With `unquoted`, drops longer quotations, which echo a request.
    pub(crate) fn new<'a>(texts: impl IntoIterator<Item = &'a str>, unquoted: bool) -> Self {
        let mut words = String::from(" ");
        for text in texts {
            if words.len() >= LONGEST {
                break;
            }
            let end = text.floor_char_boundary(LONGEST - words.len());
            append(&mut words, &text[..end], unquoted && !text.trim_start().starts_with(['{', '[']));
            words.push(SEAM);
            words.push(' ');
        }
        let bytes = words.as_bytes();
        let spaces = bytes.iter().enumerate().filter(|(_, byte)| **byte == b' ');
        let starts: Vec<_> = spaces.map(|(at, _)| (head(&bytes[at + 1..]), at + 1)).collect();
        let mut pairs = Pairs::default();
        starts.iter().for_each(|(head, _)| pairs.insert(head));
        let is_ascii = words.is_ascii();
        Self { words, starts, pairs, is_ascii }
    }

    /// Returns the words, each with a space before and after it.
    pub(crate) fn words(&self) -> &str {
        &self.words
    }

    /// Iterates over the text from each word on.
    pub(crate) fn tails(&self) -> impl Iterator<Item = &str> {
        self.starts.iter().map(|(_, start)| &self.words[*start..])
    }

    /// Whether the phrase occurs as whole words. A final `*` matches any continuation of the last word.
    pub(crate) fn has(&self, phrase: &str) -> bool {
        self.ends(phrase).next().is_some()
    }

    pub(crate) fn has_any(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.has(phrase))
    }

    /// Iterates over the positions after each occurrence of the phrase.
    pub(crate) fn ends<'a>(&'a self, phrase: &'a str) -> impl Iterator<Item = usize> + 'a {
        let open = phrase.as_bytes().last() == Some(&b'*');
        let phrase = if open { &phrase[..phrase.len() - 1] } else { phrase };
        // Scripts without spaces have no word boundaries.
        let spaced = phrase.as_bytes().first().is_some_and(u8::is_ascii);
        let anywhere = (!spaced && !self.is_ascii)
            .then(|| self.words.match_indices(phrase).map(|(at, _)| at + phrase.len()));
        let whole =
            (spaced && self.pairs.may_have(phrase.as_bytes())).then(|| self.whole(phrase.as_bytes(), open));
        anywhere.into_iter().flatten().chain(whole.into_iter().flatten())
    }

    fn whole<'a>(&'a self, phrase: &'a [u8], open: bool) -> impl Iterator<Item = usize> + 'a {
        let words = self.words.as_bytes();
        let wanted = head(phrase);
        let alike = self.starts.iter().filter(move |(head, _)| *head == wanted);
        let begun = alike.filter(|(_, start)| words[*start..].starts_with(phrase));
        begun.map(|(_, start)| start + phrase.len()).filter(move |end| open || words.get(*end) == Some(&b' '))
    }
}

fn head(word: &[u8]) -> [u8; 2] {
    [word.first().copied().unwrap_or(b' '), word.get(1).copied().unwrap_or(b' ')]
}

fn append(words: &mut String, text: &str, unquoted: bool) {
    let mut rest = text;
    let mut before = ' ';
    while let Some(letter) = rest.chars().next() {
        let skipped = if let Some(length) = url_length(rest, before) {
            space(words);
            length
        } else if let Some(length) = unquoted.then(|| quotation_length(rest, before)).flatten() {
            space(words);
            length
        } else {
            push(words, before, letter, &rest[letter.len_utf8()..]);
            letter.len_utf8()
        };
        before = letter;
        rest = &rest[skipped..];
    }
    space(words);
}

fn space(words: &mut String) {
    if !words.ends_with(' ') {
        words.push(' ');
    }
}

fn push(words: &mut String, before: char, letter: char, rest: &str) {
    let after = rest.chars().next().unwrap_or(' ');
    match letter {
        _ if letter.is_ascii_alphanumeric() => words.push(letter.to_ascii_lowercase()),
        _ if letter.is_alphanumeric() => words.extend(letter.to_lowercase()),
        // Inside a number, a date or a time; or the sign of a number.
        '.' | ',' | ':' if before.is_ascii_digit() && after.is_ascii_digit() => words.push(letter),
        '+' | '-' if after.is_ascii_digit() && (matches!(before, ' ' | '0'..='9') || is_zone(words)) => {
            words.push(letter);
        }
        // ".5 s"
        '.' if matches!(before, ' ' | '~') && after.is_ascii_digit() => words.push_str("0."),
        // "1000 calls / month"
        '/' if is_time(rest) => {
            space(words);
            words.push_str("per ");
        }
        // "you've" is one word.
        '\'' | '\u{2019}' if before.is_ascii_alphabetic() && after.is_ascii_alphabetic() => {}
        _ => space(words),
    }
}

/// Whether the last word is a zone that an offset may follow, as in "UTC+2".
fn is_zone(words: &str) -> bool {
    [" utc", " gmt"].iter().any(|zone| words.ends_with(zone))
}

/// Whether a unit of time follows, as in "/ min".
fn is_time(text: &str) -> bool {
    let text = text.trim_start_matches(' ');
    let word = &text[..text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len())];
    ["s", "sec", "second", "min", "minute", "h", "hour", "day", "week", "month"].contains(&word)
}

/// Returns the length of the URL at the start, if there is one.
fn url_length(text: &str, before: char) -> Option<usize> {
    let starts =
        matches!(text.as_bytes().first(), Some(b'h' | b'H' | b'w')) && !before.is_ascii_alphanumeric();
    let known = |scheme: &str| text.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme));
    if !starts || !["http://", "https://", "ws://", "wss://"].iter().any(|scheme| known(scheme)) {
        return None;
    }
    let ends = |c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ')' | ']' | '}' | '<' | '>' | ',' | '\\')
    };
    Some(text.find(ends).unwrap_or(text.len()))
}

/// Returns the length of the quotation of several words at the start, if there is one.
fn quotation_length(text: &str, before: char) -> Option<usize> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    if before.is_alphanumeric() {
        return None;
    }
    let inside = &text[1..text.floor_char_boundary(LONGEST_QUOTATION)];
    let closes = |(at, _): &(usize, &str)| !inside[at + 1..].starts_with(|c: char| c.is_alphanumeric());
    let (end, _) = inside.match_indices(quote).find(closes)?;
    (inside[..end].split_whitespace().count() >= QUOTATION).then_some(end + 2)
}

#[cfg(test)]
mod tests {
    use super::Prose;

    fn words(text: &str, unquoted: bool) -> String {
        Prose::new([text], unquoted).words().trim_end_matches(['|', ' ']).trim_start().to_owned()
    }

    #[test]
    fn the_message_is_plain_text_without_urls() {
        assert_eq!(
            words("Rate-limited! See https://x.test/429?a=500, then.", false),
            "rate limited see then"
        );
        assert_eq!(words("You've hit 40,000 (got -186) at 2026-09-01T09:44:51Z", false), {
            "youve hit 40,000 got -186 at 2026-09-01t09:44:51z"
        });
    }

    #[test]
    fn quotations_are_removed_and_quoted_names_kept() {
        let text = "Invalid 'name' in \"rate limit reached, wait\" of the model's input";
        assert_eq!(words(text, true), "invalid name in of the models input");
        assert_eq!(words(text, false), "invalid name in rate limit reached wait of the models input");
    }

    #[test]
    fn phrases_match_whole_words_within_one_text() {
        let prose = Prose::new(["the rate", "limits, exceeded. 超过最大长度"], false);
        assert!(prose.has("exceed*") && prose.has("the rate") && prose.has("最大长度"));
        assert!(!prose.has("exceed") && !prose.has("rate limits") && !prose.has("he rate"));
    }
}
