//! The progress that curl shows while it is not writing to a terminal.

/// What stands for a time that is not known, in each state of the meter.
const NO_TIME: &str = "--:--:--";

/// The text without it. Its states overwrite one another with carriage returns, and what comes next may follow at once.
pub(super) fn without(text: &str) -> String {
    if !text.contains(NO_TIME) {
        return text.to_owned();
    }
    let mut kept = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let words = line.trim_start();
        let is_title = words.starts_with("% Total") || words.starts_with("Dload");
        let rest = after(line);
        if !is_title && (rest.len() == line.len() || !rest.trim().is_empty()) {
            kept.push_str(rest);
        }
    }
    kept
}

/// What follows the states at the beginning of a line; the whole line where there are none.
fn after(line: &str) -> &str {
    let is_figure =
        |c: char| c.is_ascii_digit() || c.is_whitespace() || matches!(c, '-' | ':' | '.' | 'k' | 'M' | 'G');
    match line.rfind(NO_TIME) {
        Some(end) if line[..end].chars().all(is_figure) => {
            line[end..].trim_start_matches(|c| is_figure(c) && c != '\n')
        }
        _ => line,
    }
}
