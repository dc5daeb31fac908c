//! The part of a message around what was searched.

/// Maximum length of a passage, and of what precedes the word in it, in characters of the message.
const LONGEST: usize = 200;
const BEFORE: usize = 40;

/// Returns the part of `text` around the first of these lower-case words, on one line.
pub(super) fn passage(text: &str, words: &[String]) -> String {
    let starts = |at: usize, word: &str| {
        // Character by character, because lower case may have another length.
        let mut rest = text[at..].chars().flat_map(char::to_lowercase);
        word.chars().all(|wanted| rest.next() == Some(wanted))
    };
    let mut places = text.char_indices().map(|(at, _)| at);
    // A word that lower case has changed in the middle of the text is not found; the message begins with something, too.
    let at = places.find(|&at| words.iter().any(|word| starts(at, word))).unwrap_or_default();
    let start = text[..at].char_indices().rev().nth(BEFORE - 1).map_or(0, |(start, _)| start);
    // Not in the middle of a word.
    let start = match start {
        0 => 0,
        _ => text[start..at].find(char::is_whitespace).map_or(start, |gap| start + gap),
    };
    let end = text[start..].char_indices().nth(LONGEST).map_or(text.len(), |(length, _)| start + length);
    let line = text[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
    let mark = |more: &str| if more.trim().is_empty() { "" } else { "…" };
    format!("{}{line}{}", mark(&text[..start]), mark(&text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_has_the_first_word_with_some_text_before() {
        let long = "word ".repeat(100);
        let table = [
            ("The harvest is in.", &["harvest"][..], "The harvest is in.".to_owned()),
            ("one\n\n  two\tTHREE", &["three", "two"], "one two THREE".to_owned()),
            ("\u{130}\u{130} Ärger", &["ärger"], "\u{130}\u{130} Ärger".to_owned()),
            ("nothing of it", &["else"], "nothing of it".to_owned()),
            (&long, &["word"], format!("{}…", "word ".repeat(40).trim())),
        ];
        for (text, words, expected) in table {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(passage(text, &words), expected, "{text:?}");
        }
        let middle = format!("{long}the harvest is in, {long}");
        let shown = passage(&middle, &["harvest".to_owned()]);
        assert!(shown.starts_with("…word word") && shown.ends_with('…'), "{shown}");
        assert!(
            shown.contains("word the harvest is in, word") && shown.chars().count() <= LONGEST + 2,
            "{shown}"
        );
        let unbroken = "ä".repeat(1000) + "needle" + &"ö".repeat(1000);
        let shown = passage(&unbroken, &["needle".to_owned()]);
        assert_eq!(shown.chars().count(), LONGEST + 2);
        assert!(shown.starts_with(&format!("…{}needle", "ä".repeat(BEFORE))), "{shown}");
    }
}
