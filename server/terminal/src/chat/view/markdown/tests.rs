use proptest::prelude::*;

use super::*;

/// The output for text that arrives in pieces: bold as `<b..>`, and so on; a hanging margin as `{..}`.
fn marked(pieces: impl IntoIterator<Item = Piece>) -> String {
    let shown = |piece| match piece {
        Piece::Hang(_, margin) => format!("{{{margin}}}"),
        Piece::Text(style, text) => {
            let names = [
                (style.bold, 'b'),
                (style.italic, 'i'),
                (style.underline, 'u'),
                (style.strike, 's'),
                (style.dim, 'd'),
                (style.is_code, 'c'),
            ];
            let names: String =
                names.into_iter().filter_map(|(is_set, name)| is_set.then_some(name)).collect();
            if names.is_empty() { text } else { format!("<{names} {text}>") }
        }
    };
    joined(pieces.into_iter().collect()).into_iter().map(shown).collect()
}

fn rendered_in(pieces: &[&str]) -> String {
    let mut markdown = Markdown::default();
    let mut all: Vec<Piece> = pieces.iter().flat_map(|piece| markdown.push(piece, 40)).collect();
    all.extend(markdown.flush(40));
    marked(all)
}

fn rendered(text: &str) -> String {
    rendered_in(&[text])
}

#[test]
fn words_have_styles() {
    for (text, expected) in [
        ("a **b c** d", "a <b b c> d"),
        ("*a* _b_ ***c*** __d__", "<i a> <i b> <bi c> <b d>"),
        ("`a *b*` ``c ` d``", "<c a *b*> <c c ` d>"),
        ("**a `b**` c**", "<b a ><bc b**><b  c>"),
        ("**a *b***", "<b a ><bi b>"),
        ("*a **b** c*", "<i a ><bi b><i  c>"),
        ("~~no~~ ~5", "<s no> ~5"),
        ("[a *b*](http://c/d)!", "<u a ><iu b><d  (http://c/d)>!"),
        ("[http://c](http://c \"t\")", "<u http://c>"),
        ("![cat](c.png)", "<u cat><d  (c.png)>"),
        ("<https://a.b> <b>", "<u https://a.b> <b>"),
        (r"\*a\* \d", r"*a* \d"),
    ] {
        assert_eq!(rendered(text), expected, "{text}");
    }
}

#[test]
fn what_is_no_markdown_is_shown_as_it_came() {
    for text in [
        "2 * 3 * 4",
        "snake_case_name and _x",
        "**not closed",
        "a `not closed",
        "[1] and [x] (y)",
        "[a](b",
        "a < b > c <http",
        "1.5 is -5",
        "#hashtag",
        "#######",
        "--",
        "2024 was",
        "5 > 4",
        "*\u{a0}a*b",
        "\\",
        "!",
        "~~~~",
    ] {
        let expected = if text == "~~~~" { "<d ~~~~>" } else { text };
        assert_eq!(rendered(text), expected, "{text}");
    }
}

#[test]
fn lines_are_what_they_begin_as() {
    for (text, expected) in [
        ("# A *b*\n## C", "<bu A ><biu b>\n<b C>"),
        ("- a\n  * b\n+ c", "\u{2022} {  }a\n  \u{2022} {    }b\n\u{2022} {  }c"),
        ("1. a\n10) b", "1. {   }a\n10) {    }b"),
        ("- [ ] a\n- [x] b\n- [c](d)", "\u{2610} {  }a\n\u{2611} {  }b\n\u{2022} {  }<u c><d  (d)>"),
        ("> a\n>b", "<d \u{2502} >{\u{2502} }a\n<d \u{2502} >{\u{2502} }b"),
        ("a\n\n---\n***\nb", &format!("a\n\n<d {0}>\n<d {0}>\nb", "\u{2500}".repeat(40))),
        ("**a** b\n*c* d", "<b a> b\n<i c> d"),
    ] {
        assert_eq!(rendered(text), expected, "{text}");
    }
}

#[test]
fn code_is_shown_as_it_is() {
    let text = "```rust\nlet **a** = 1;\n\n# x\n``\n````\nafter *it*";
    let expected = "<d ```rust>\n<c let **a** = 1;>\n\n<c # x>\n<c ``>\n<d ````>\nafter <i it>";
    assert_eq!(rendered(text), expected);
    assert_eq!(rendered("  ~~~\n  a\n  ~~~"), "<d   ~~~>\n<c   a>\n<d   ~~~>");
    assert_eq!(rendered("```a `b` ```"), "<c a `b` >", "on one line it is no block");
    assert_eq!(rendered("```\nnever closed"), "<d ```>\n<c never closed>");
}

#[test]
fn a_table_has_columns() {
    let text = "|a|Number|\n|:--|--:|\n| `x` | 1 |\n| **long** | 23\n\nafter";
    let expected = "<b a>     <b Number>\n<d \u{2500}\u{2500}\u{2500}\u{2500}  \u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}>\n\
                    <c x>          1\n<b long>      23\n\nafter";
    assert_eq!(rendered(text), expected);
    for text in ["|a|b|\n|c|d|\n", "| only\n", "|a\\|b|c|\n|-|-|\n"] {
        assert!(rendered(text).contains("a") || rendered(text) == text, "{text}");
    }
    assert_eq!(rendered("|a|b|\n|c|d|\n"), "|a|b|\n|c|d|\n");
    let wide = format!("|{}|b|\n|--|--|\n|1|2|\n", "a".repeat(60));
    assert_eq!(rendered(&wide), wide, "what does not fit is shown as it came");
    assert!(rendered("|a\\|b|\n|-|\n").starts_with("<b a|b>\n"));
}

#[test]
fn nothing_is_held_for_long() {
    let mut markdown = Markdown::default();
    let mut shown = |text: &str| marked(markdown.push(text, 40));
    assert_eq!(shown("Plain words"), "Plain words");
    assert_eq!(shown(" and **bo"), " and ");
    assert_eq!(shown("ld**"), "<b bold>");
    assert_eq!(shown("\n- "), "\n");
    assert_eq!(shown("it"), "\u{2022} {  }it");
    assert_eq!(shown("\n|a|\n|-|\n"), "\n");
    assert_eq!(shown("x"), "<b a>\n<d \u{2500}>\nx");
    assert_eq!(shown(" *"), " ");
    assert_eq!(shown(&"y".repeat(400)), format!("*{}", "y".repeat(400)), "what never ends is no emphasis");
    let mut markdown = Markdown::default();
    let row = format!("|{}|\n", "a".repeat(1000));
    let rows: Vec<Piece> = (0..40).flat_map(|_| markdown.push(&row, 40)).collect();
    assert!(marked(rows).len() > 32_000, "a table is not kept in memory for ever");
}

#[test]
fn what_comes_between_does_not_end_a_block_of_code() {
    let mut markdown = Markdown::default();
    let mut all = markdown.push("```\nlet a", 40);
    all.extend(markdown.flush(40));
    assert_eq!(marked(all), "<d ```>\n<c let a>");
    assert_eq!(marked(markdown.push(" = *b*\n```\n*c*", 40)), "<c  = *b*>\n<d ```>\n<i c>");
}

/// Text that is likely to contain Markdown.
fn likely(links: &'static [&'static str]) -> impl Strategy<Value = String> {
    let words = [
        "a", "b c", " ", "\n", "*", "**", "***", "_", "__", "`", "```", "~~", "[", "](x)", "- ", "1. ", "# ",
        "> ", "|", "|-|", "<http://", ">", "\\", "!", "é", "日", "\t",
    ];
    let words: Vec<&str> = words.iter().chain(links).copied().collect();
    prop::collection::vec(prop::sample::select(words), 0..60).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn it_makes_no_difference_how_a_text_is_split(
        text in likely(&["](", ")"]),
        cuts in prop::collection::vec(0_usize..200, 0..8),
    ) {
        let is_place = |at: &usize| *at < text.len() && text.is_char_boundary(*at);
        let mut places: Vec<usize> = cuts.into_iter().filter(is_place).chain([0, text.len()]).collect();
        places.sort_unstable();
        let pieces: Vec<&str> = places.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
        prop_assert_eq!(rendered_in(&pieces), rendered(&text));
    }

    // Titles of links are not shown, so the text has no quotes.
    #[test]
    fn no_word_is_lost(text in likely(&["](", ")"])) {
        let mut markdown = Markdown::default();
        let mut pieces = markdown.push(&text, 40);
        pieces.extend(markdown.flush(40));
        let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        let shown = pieces.iter().map(|piece| match piece {
            Piece::Text(_, text) => text.as_str(),
            Piece::Hang(..) => "",
        });
        prop_assert_eq!(letters(&shown.collect::<String>()), letters(&text));
    }
}
