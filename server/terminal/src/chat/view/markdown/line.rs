//! Determines the kind of a line from its beginning.

/// Maximum length of a table row, in bytes. A longer line is text, which is shown as it arrives.
const ROW: usize = 2000;

/// The kind of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// The level, from 1 to 6.
    Heading(usize),
    /// A list item: its indentation, and what is shown instead of its marker.
    Item {
        start: String,
        marker: String,
    },
    /// Begins with a digit; perhaps a numbered list item.
    Number,
    Quote,
    Rule,
    Fence(Fence),
    /// A row of a table.
    Row,
}

/// The opening fence of a code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    fn of(line: &str) -> Option<Self> {
        let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let length = run(line, mark);
        // The language may follow. If backticks follow, it is inline code.
        let is_fence = length >= 3 && (mark == '~' || !line[length..].contains('`'));
        is_fence.then_some(Self { mark, length })
    }

    /// Whether this line closes the block; `None` while that is not clear.
    pub(super) fn is_closed_by(&self, line: &str, is_complete: bool) -> Option<bool> {
        let line = line.trim_start_matches(' ');
        let length = run(line, self.mark);
        let is_possible = line[length..].chars().all(|c| c == ' ');
        match (is_possible, is_complete) {
            (false, _) => Some(false),
            (true, true) => Some(length >= self.length),
            (true, false) => None,
        }
    }
}

/// Whether a line, as far as it has arrived, can belong to a table.
pub(super) fn may_be_row(line: &str, is_complete: bool) -> bool {
    let line = line.trim_start_matches(' ');
    line.starts_with('|') || (line.is_empty() && !is_complete)
}

/// The kind of a line and its text; `None` while that is not clear.
pub(super) fn kind(line: &str, is_complete: bool) -> Option<(Kind, &str)> {
    let text = line.trim_start_matches([' ', '\t']);
    let start = &line[..line.len() - text.len()];
    // A complete line is never unclear.
    let unclear = |is_unclear: bool| is_unclear && !is_complete;
    let Some(first) = text.chars().next() else { return is_complete.then_some((Kind::Text, line)) };
    let plain = Some((Kind::Text, line));
    match first {
        '#' => {
            let level = run(text, '#');
            match text[level..].strip_prefix(' ') {
                Some(rest) if level <= 6 => Some((Kind::Heading(level), rest.trim_start())),
                None if unclear(level == text.len() && level <= 6) => None,
                _ => plain,
            }
        }
        '-' | '*' | '+' | '_' => {
            let is_marks = text.chars().all(|c| c == first || c == ' ');
            if unclear(is_marks) {
                return None;
            }
            if is_marks && first != '+' && text.chars().filter(|c| *c == first).count() >= 3 {
                return Some((Kind::Rule, ""));
            }
            match text[1..].strip_prefix(' ').filter(|_| first != '_') {
                Some(rest) => item(start, "\u{2022} ", rest, is_complete),
                None => plain,
            }
        }
        '0'..='9' if !is_complete => Some((Kind::Number, "")),
        '>' => match &text[1..] {
            "" if !is_complete => None,
            rest => Some((Kind::Quote, rest.strip_prefix(' ').unwrap_or(rest))),
        },
        '`' | '~' => {
            let length = run(text, first);
            match length >= 3 || length == text.len() {
                true if !is_complete => None,
                true => Some(Fence::of(text).map_or((Kind::Text, line), |fence| (Kind::Fence(fence), ""))),
                false => plain,
            }
        }
        '|' if text.len() > ROW => plain,
        '|' => is_complete.then_some((Kind::Row, "")),
        _ => plain,
    }
}

/// A list item, possibly a task.
fn item<'a>(start: &str, marker: &str, rest: &'a str, is_complete: bool) -> Option<(Kind, &'a str)> {
    let boxes = [("[ ] ", "\u{2610} "), ("[x] ", "\u{2611} "), ("[X] ", "\u{2611} ")];
    if !is_complete && boxes.iter().any(|(mark, _)| mark.starts_with(rest)) {
        return None;
    }
    let task = boxes.iter().find_map(|(mark, shown)| Some((*shown, rest.strip_prefix(mark)?)));
    let (marker, rest) = task.unwrap_or((marker, rest));
    Some((Kind::Item { start: start.to_owned(), marker: marker.to_owned() }, rest))
}

/// The number of times that `mark` is repeated at the start of a text.
fn run(text: &str, mark: char) -> usize {
    text.chars().take_while(|c| *c == mark).count()
}
