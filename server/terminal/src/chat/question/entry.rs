//! One field of a form: what is asked for, and what a typed line means.

use everturn_wire::{FieldKind, QuestionField, Value};

use crate::wording;

/// Maximum length of a displayed label, of an explanation and of an option, in characters.
const LABEL: usize = 100;
const HINT: usize = 300;
const OPTION: usize = 60;

/// What to type for a field.
pub(super) fn prompt(field: &QuestionField, number: usize, of: usize) -> String {
    let about = field.description.as_ref().map(|text| format!(" - {}", wording::one_line(text, HINT)));
    let kind = match field.kind {
        FieldKind::Number => "a number",
        FieldKind::Integer => "a whole number",
        FieldKind::Boolean => "y or n",
        FieldKind::Choice => "one of these, or its number",
        FieldKind::Choices => "some of these, or their numbers, with commas in between",
        _ => field.format.as_deref().unwrap_or("text"),
    };
    let kind = wording::one_line(kind, LABEL);
    let bounds = match (&field.minimum, &field.maximum) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        (Some(least), None) => format!(", at least {least}"),
        (None, Some(most)) => format!(", at most {most}"),
        (None, None) => String::new(),
    };
    let unit = match (field.kind, bounds.is_empty()) {
        (FieldKind::Text, false) => " characters",
        _ => "",
    };
    let skip = match (&field.default, field.required) {
        (Some(usual), _) => format!("; /skip takes {}", wording::one_line(&shown(usual), LABEL)),
        (None, Some(true)) => String::new(),
        (None, _) => "; /skip leaves it out".to_owned(),
    };
    let options = field.options.iter().enumerate().map(|(at, option)| {
        let title = option.title.as_ref().unwrap_or(&option.value);
        format!("\n  {}. {}", at + 1, wording::one_line(title, OPTION))
    });
    let (label, about) = (label(field), about.unwrap_or_default());
    format!("{number}/{of} {label}{about} ({kind}{bounds}{unit}{skip}){}", options.collect::<String>())
}

fn label(field: &QuestionField) -> String {
    wording::one_line(field.title.as_ref().unwrap_or(&field.name), LABEL)
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The value that a line means; without a line, what is filled in before, if anything.
pub(super) fn value(field: &QuestionField, text: Option<&str>) -> Result<Option<Value>, String> {
    let label = label(field);
    let Some(text) = text.map(str::trim) else {
        return match (&field.default, field.required) {
            (None, Some(true)) => Err(format!("{label} is required: /decline declines the whole question.")),
            (usual, _) => Ok(usual.clone()),
        };
    };
    let option = |word: &str| {
        let word = word.trim();
        let by_number =
            word.parse::<usize>().ok().and_then(|number| field.options.get(number.checked_sub(1)?));
        let is_it = |name: &str| name.eq_ignore_ascii_case(word);
        let by_name = field
            .options
            .iter()
            .find(|option| is_it(&option.value) || option.title.as_ref().is_some_and(|title| is_it(title)));
        by_name.or(by_number).map(|option| Value::String(option.value.clone()))
    };
    let found = match field.kind {
        FieldKind::Number => serde_json::from_str(text).ok().filter(Value::is_number).ok_or("a number"),
        FieldKind::Integer => {
            let number = text.parse::<i64>().map(Value::from);
            number.map_err(|_| "a whole number")
        }
        FieldKind::Boolean => match text.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(Value::Bool(true)),
            "n" | "no" | "false" => Ok(Value::Bool(false)),
            _ => Err("y or n"),
        },
        FieldKind::Choice => option(text).ok_or("one of its options"),
        FieldKind::Choices => text
            .split(',')
            .map(option)
            .collect::<Option<Vec<_>>>()
            .map(Value::Array)
            .ok_or("some of its options"),
        _ => Ok(Value::String(text.to_owned())),
    };
    found.map(Some).map_err(|kind| format!("{label} must be {kind}."))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(json: Value) -> QuestionField {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_line_is_read_as_its_field_needs() {
        let options = json!([{ "value": "a" }, { "value": "b", "title": "The B" }]);
        for (kind, text, expected) in [
            ("text", " Ada ", Ok(json!("Ada"))),
            ("number", "0.5", Ok(json!(0.5))),
            ("number", "half", Err("x must be a number.")),
            ("integer", "7", Ok(json!(7))),
            ("integer", "7.5", Err("x must be a whole number.")),
            ("boolean", "Yes", Ok(json!(true))),
            ("boolean", "perhaps", Err("x must be y or n.")),
            ("choice", "2", Ok(json!("b"))),
            ("choice", "the b", Ok(json!("b"))),
            ("choice", "3", Err("x must be one of its options.")),
            ("choices", "a, 2", Ok(json!(["a", "b"]))),
            ("choices", "c", Err("x must be some of its options.")),
        ] {
            let field = field(json!({ "name": "x", "kind": kind, "options": options }));
            assert_eq!(value(&field, Some(text)), expected.map(Some).map_err(str::to_owned), "{kind} {text}");
        }
    }

    #[test]
    fn a_prompt_tells_what_may_be_typed() {
        for (json, expected) in [
            (
                json!({ "name": "x", "kind": "text", "required": true, "minimum": 2, "maximum": 5 }),
                "1/2 x (text, 2 to 5 characters)",
            ),
            (
                json!({ "name": "x", "kind": "integer", "title": "Guests", "description": "How many?", "minimum": 1, "default": 2 }),
                "1/2 Guests - How many? (a whole number, at least 1; /skip takes 2)",
            ),
            (
                json!({ "name": "x", "kind": "choice", "options": [{ "value": "a", "title": "The A" }] }),
                "1/2 x (one of these, or its number; /skip leaves it out)\n  1. The A",
            ),
        ] {
            assert_eq!(prompt(&field(json), 1, 2), expected);
        }
    }
}
