//! Inline formatting: bold, code, links and the like.

use super::Piece;
use crate::chat::view::style::Style;

/// Maximum number of characters held until their meaning is clear.
const HELD: usize = 400;

/// Maximum nesting depth.
const DEPTH: usize = 4;

/// The text of one line, as it arrives.
pub(super) struct Inline {
    style: Style,
    held: String,
    previous: Option<char>,
}

/// Text with styles.
pub(super) type Spans = Vec<(Style, String)>;

impl Inline {
    /// Begins after this character of the line, if there is one.
    pub(super) fn new(style: Style, previous: Option<char>) -> Self {
        Self { style, held: String::new(), previous }
    }

    pub(super) fn push(&mut self, c: char, out: &mut Vec<Piece>) {
        self.held.push(c);
        self.show(self.held.chars().count() >= HELD, false, out);
    }

    /// Ends the line.
    pub(super) fn end(&mut self, out: &mut Vec<Piece>) {
        self.show(true, true, out);
    }

    fn show(&mut self, is_long: bool, is_complete: bool, out: &mut Vec<Piece>) {
        let mut is_long = is_long;
        while !self.held.is_empty() {
            let Some(Step { spans, taken }) =
                step(&self.held, self.previous, self.style, is_long || is_complete, DEPTH)
            else {
                return;
            };
            out.extend(spans.into_iter().map(|(style, text)| Piece::Text(style, text)));
            self.previous = self.held[..taken].chars().next_back();
            self.held.drain(..taken);
            is_long = false;
        }
    }
}

/// The spans of a complete text.
pub(super) fn spans(text: &str, style: Style) -> Spans {
    within(text, style, DEPTH)
}

fn within(text: &str, style: Style, depth: usize) -> Spans {
    let (mut rest, mut previous, mut all) = (text, None, Spans::new());
    while !rest.is_empty() {
        let Some(Step { spans, taken }) = step(rest, previous, style, true, depth) else { break };
        all.extend(spans);
        previous = rest[..taken].chars().next_back();
        rest = &rest[taken..];
    }
    all
}

/// An element at the start of a text.
struct Step {
    spans: Spans,
    /// Its length in the source, in bytes.
    taken: usize,
}

/// Why no element was recognized at the start of a text.
enum Not {
    /// More text is needed to decide.
    Yet,
    Ever,
}

/// Parses the element at the start of a text; `None` if more text is needed, which never happens if `is_complete`.
fn step(text: &str, previous: Option<char>, style: Style, is_complete: bool, depth: usize) -> Option<Step> {
    let first = text.chars().next()?;
    let found = match first {
        _ if depth == 0 => Err(Not::Ever),
        '\\' => escaped(text, style),
        '`' => code(text, style),
        '*' | '_' | '~' => emphasized(text, previous, style, is_complete, depth),
        '[' => link(text, style, depth),
        '!' => image(text, style, depth),
        '<' => address(text, style),
        _ => Err(Not::Ever),
    };
    match found {
        Ok(step) => Some(step),
        Err(Not::Yet) if !is_complete => None,
        Err(_) => {
            let is_run = matches!(first, '*' | '_' | '~' | '`');
            let taken = if is_run { run(text, first) } else { first.len_utf8() };
            Some(literal(&text[..taken], style))
        }
    }
}

fn literal(text: &str, style: Style) -> Step {
    Step { spans: vec![(style, text.to_owned())], taken: text.len() }
}

fn run(text: &str, mark: char) -> usize {
    text.chars().take_while(|c| *c == mark).count()
}

/// `\*`
fn escaped(text: &str, style: Style) -> Result<Step, Not> {
    let next = text[1..].chars().next().ok_or(Not::Yet)?;
    match next.is_ascii_punctuation() {
        true => Ok(Step { spans: vec![(style, next.to_string())], taken: 2 }),
        false => Err(Not::Ever),
    }
}

/// `` `code` ``
fn code(text: &str, style: Style) -> Result<Step, Not> {
    let length = run(text, '`');
    let end = code_end(text).ok_or(Not::Yet)?;
    let inside = &text[length..end - length];
    // One space on either side only separates backticks.
    let stripped = inside.strip_prefix(' ').and_then(|inside| inside.strip_suffix(' '));
    let inside = stripped.filter(|inside| !inside.trim().is_empty()).unwrap_or(inside);
    Ok(Step { spans: vec![(Style { is_code: true, ..style }, inside.to_owned())], taken: end })
}

/// The end of the inline code at the start of a text, in bytes.
fn code_end(text: &str) -> Option<usize> {
    let length = run(text, '`');
    let mut at = length;
    while let Some(found) = text[at..].find('`') {
        let closing = run(&text[at + found..], '`');
        at += found + closing;
        // A longer run is part of the code. At the end of the text, the run may still grow.
        if closing == length {
            return Some(at);
        }
    }
    None
}

/// `*italic*`, `**bold**`, `***both***`, likewise with underscores; `~~struck~~`.
fn emphasized(
    text: &str,
    previous: Option<char>,
    style: Style,
    is_complete: bool,
    depth: usize,
) -> Result<Step, Not> {
    let mark = text.chars().next().ok_or(Not::Ever)?;
    let length = run(text, mark);
    let after = text[length..].chars().next().ok_or(Not::Yet)?;
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let begins = !after.is_whitespace() && (mark != '_' || !is_word(previous));
    let style = match (mark, length) {
        _ if !begins => return Err(Not::Ever),
        ('~', 2) => Style { strike: true, ..style },
        ('*' | '_', 1) => Style { italic: true, ..style },
        ('*' | '_', 2) => Style { bold: true, ..style },
        ('*' | '_', 3) => Style { bold: true, italic: true, ..style },
        _ => return Err(Not::Ever),
    };
    let mut at = length;
    let mut before = None;
    // Whether a nested element has begun whose end has not arrived yet.
    let mut is_unclear = false;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        at += match c {
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '`' => code_end(rest).unwrap_or_else(|| {
                is_unclear = true;
                run(rest, '`')
            }),
            c if c == mark => {
                let closing = run(rest, mark);
                let next = rest[closing..].chars().next();
                let ends =
                    before.is_some_and(|c: char| !c.is_whitespace()) && (mark != '_' || !is_word(next));
                // A longer run may also close a nested element.
                if ends && closing >= length && (closing == length || closing == 3) {
                    // At the end of the available text, the run may still grow to close two elements.
                    let may_grow = next.is_none() && closing < 3 && text[length..at].contains(mark);
                    if !is_complete && (may_grow || is_unclear) {
                        return Err(Not::Yet);
                    }
                    let taken = at + closing;
                    let inside = &text[length..taken - length];
                    return Ok(Step { spans: within(inside, style, depth - 1), taken });
                }
                closing
            }
            c => c.len_utf8(),
        };
        before = text[..at].chars().next_back();
    }
    Err(Not::Yet)
}

/// `[text](https://example.com)`
fn link(text: &str, style: Style, depth: usize) -> Result<Step, Not> {
    let (label, target, taken) = link_parts(text)?;
    let mut spans = within(label, Style { underline: true, ..style }, depth - 1);
    // The target is shown, as nobody should follow a link without seeing where it leads.
    if target != label && target.strip_prefix("mailto:") != Some(label) {
        spans.push((Style { dim: true, ..style }, format!(" ({target})")));
    }
    Ok(Step { spans, taken })
}

/// `![text](https://example.com/a.png)`
fn image(text: &str, style: Style, depth: usize) -> Result<Step, Not> {
    match text[1..].chars().next() {
        None => Err(Not::Yet),
        Some('[') => {
            let Step { spans, taken } = link(&text[1..], style, depth)?;
            Ok(Step { spans, taken: taken + 1 })
        }
        Some(_) => Err(Not::Ever),
    }
}

/// The label and target of a link, and its length in bytes.
fn link_parts(text: &str) -> Result<(&str, &str, usize), Not> {
    let (mut depth, mut end) = (0_usize, None);
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            end = Some(at);
            break;
        }
    }
    let end = end.ok_or(Not::Yet)?;
    match text[end + 1..].chars().next() {
        None => return Err(Not::Yet),
        Some('(') => {}
        Some(_) => return Err(Not::Ever),
    }
    let inside = &text[end + 2..];
    let mut depth = 1_usize;
    for (at, c) in inside.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let inside = inside[..at].trim();
            let target = inside.split_whitespace().next().unwrap_or_default();
            // Anything but a title is text, which must not be lost.
            if !is_title(inside[target.len()..].trim_start()) {
                return Err(Not::Ever);
            }
            let target = target.trim_start_matches('<').trim_end_matches('>');
            return Ok((&text[1..end], target, end + 2 + at + 1));
        }
    }
    Err(Not::Yet)
}

/// Whether this may follow the target of a link: nothing, or a title, which is not shown.
fn is_title(text: &str) -> bool {
    let quoted = |open: char, close: char| text.len() > 1 && text.starts_with(open) && text.ends_with(close);
    text.is_empty() || quoted('"', '"') || quoted('\'', '\'') || quoted('(', ')')
}

/// `<https://example.com>`
fn address(text: &str, style: Style) -> Result<Step, Not> {
    let starts = ["<https://", "<http://", "<mailto:"];
    if starts.iter().any(|start| start.starts_with(text)) {
        return Err(Not::Yet);
    }
    if !starts.iter().any(|start| text.starts_with(start)) {
        return Err(Not::Ever);
    }
    let end = text.find(['>', ' ']).ok_or(Not::Yet)?;
    match text[end..].starts_with('>') {
        true => {
            let shown = text[1..end].trim_start_matches("mailto:").to_owned();
            Ok(Step { spans: vec![(Style { underline: true, ..style }, shown)], taken: end + 1 })
        }
        false => Err(Not::Ever),
    }
}
