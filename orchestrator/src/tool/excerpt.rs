//! Cuts long results to a size that a model can use.

/// Returns a text of more than `most` bytes as its beginning, a note of how much was left out, and its end.
pub(crate) fn excerpt(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    // The beginning says what the text is, the end shows the outcome.
    let head = &text[..text.floor_char_boundary(most - most / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - most / 2)..];
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n[... {left_out} bytes of this result were left out here ...]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_and_what_does_not_keeps_both_ends() {
        assert_eq!(excerpt("abcdef".into(), 6), "abcdef");
        let cut = "\n[... 2 bytes of this result were left out here ...]\n";
        assert_eq!(excerpt("abcdefg".into(), 5), format!("abc{cut}fg"));
        assert_eq!(excerpt("abc".into(), 0), "\n[... 3 bytes of this result were left out here ...]\n");
    }

    #[test]
    fn no_character_is_cut() {
        for most in 0..12 {
            let short = excerpt("äöü€🦀".into(), most);
            let kept = short.lines().filter(|line| !line.starts_with('[')).map(str::len).sum::<usize>();
            assert!(kept <= most, "{most}: {short}");
        }
    }
}
