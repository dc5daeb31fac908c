//! `/model`: lists models and routes, and chooses the next one.

use std::borrow::Cow;

use crate::wording;

/// Maximum length of a displayed name, in characters.
const NAME: usize = 100;

/// The model with this name, or the only one whose name contains it. If the server lists none, any name is accepted.
///
/// # Errors
/// The message to show when no model, or more than one, matches.
pub(super) fn meant<'a>(models: &'a [String], asked: &'a str) -> Result<&'a str, String> {
    if models.is_empty() || models.iter().any(|model| model == asked) {
        return Ok(asked);
    }
    let found: Vec<&String> = models.iter().filter(|model| model.contains(asked)).collect();
    let asked = wording::one_line(asked, NAME);
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(format!("No model or route matches {asked}; there are: {}", names(models.iter()))),
        several => Err(format!("{asked} matches several: {}", names(several.iter().copied()))),
    }
}

fn names<'a>(models: impl Iterator<Item = &'a String>) -> String {
    models.map(|model| wording::one_line(model, NAME)).collect::<Vec<_>>().join(", ")
}

/// Lists all models, one per line, and marks the current one.
pub(super) fn list(models: &[String], current: Option<&str>) -> String {
    let current = current.or(models.first().map(String::as_str));
    let row = |(place, model): (usize, &String)| {
        let mark = if current == Some(model.as_str()) { '\u{25cf}' } else { ' ' };
        let default = if place == 0 { "  (default)" } else { "" };
        format!("  {mark} {}{default}", wording::one_line(model, NAME))
    };
    let rows: Vec<String> = models.iter().enumerate().map(row).collect();
    // The conversation's model may no longer be on the server.
    let other = current.filter(|current| !models.iter().any(|model| model == current));
    let other = other.map_or(Cow::Borrowed(""), |other| {
        format!("\n  \u{25cf} {}  (not offered any more)", wording::one_line(other, NAME)).into()
    });
    format!(
        "Models and routes:\n{}{other}\n/model NAME chooses one; a part of its name is enough.",
        rows.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models() -> Vec<String> {
        ["sim/one", "sim/two", "route/two"].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_part_of_a_name_is_enough_where_only_one_has_it() {
        let models = models();
        for (asked, expected) in [
            ("sim/two", Ok("sim/two")),
            ("on", Ok("sim/one")),
            ("route", Ok("route/two")),
            ("two", Err("two matches several: sim/two, route/two")),
            ("x", Err("No model or route matches x; there are: sim/one, sim/two, route/two")),
        ] {
            assert_eq!(meant(&models, asked), expected.map_err(str::to_owned));
        }
        assert_eq!(meant(&[], "any/model"), Ok("any/model"));
    }

    #[test]
    fn the_list_marks_what_is_asked_next() {
        for (current, expected) in [
            (None, ["\u{25cf} sim/one  (default)", "  sim/two"]),
            (Some("sim/two"), ["  sim/one  (default)", "\u{25cf} sim/two"]),
        ] {
            let list = list(&models(), current);
            let rows: Vec<&str> = list.lines().skip(1).take(2).map(|row| &row[2..]).collect();
            assert_eq!(rows, expected);
        }
        assert!(list(&models(), Some("old/m")).contains("\u{25cf} old/m  (not offered any more)"));
    }
}
