//! The progress meter that curl prints if its output is not a terminal.

/// The placeholder for an unknown time, present in every state of the meter.
const NO_TIME: &str = "--:--:--";

/// Returns the text without the meter. Its states overwrite one another with carriage returns, and other output may
/// follow directly.
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

/// Returns what follows the meter's states at the start of a line, or the whole line if there are none.
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
