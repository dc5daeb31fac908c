//! Whether an answer fits its form.

use everturn_wire::{FieldKind, Question, QuestionAnswer, QuestionField, QuestionKind, Value};
use serde_json::{Map, Number};

const LARGEST: usize = QuestionAnswer::MAX_CONTENT;

/// Returns the content of an accepted question.
///
/// # Errors
/// Returns the first thing that does not fit, for people.
pub(super) fn content(question: &Question, content: Option<Value>) -> Result<Option<Value>, String> {
    match question.kind {
        QuestionKind::Form => {}
        QuestionKind::Login => {
            return Err(format!("this question ends when somebody has logged in at {}", question.asker));
        }
        _ => return Ok(None),
    }
    let content = match content.unwrap_or_else(|| Value::Object(Map::new())) {
        Value::Object(content) => content,
        _ => return Err("`content` must be an object with the values of the fields".to_owned()),
    };
    if serde_json::to_string(&content).map_or(true, |json| json.len() > LARGEST) {
        return Err(format!("`content` may have at most {LARGEST} bytes"));
    }
    if let Some(name) = content.keys().find(|name| !question.fields.iter().any(|field| field.name == **name))
    {
        return Err(format!("there is no field {name:?}"));
    }
    for field in &question.fields {
        match content.get(&field.name) {
            Some(value) => check(field, value).map_err(|why| format!("{} {why}", label(field)))?,
            None if field.required == Some(true) => return Err(format!("{} is required", label(field))),
            None => {}
        }
    }
    Ok(Some(Value::Object(content)))
}

fn label(field: &QuestionField) -> &str {
    field.title.as_deref().unwrap_or(&field.name)
}

/// Checks a value. The error continues a sentence that begins with the field's label.
fn check(field: &QuestionField, value: &Value) -> Result<(), String> {
    let is_option =
        |value: &Value| field.options.iter().any(|option| Some(option.value.as_str()) == value.as_str());
    match (field.kind, value) {
        (FieldKind::Text, Value::String(text)) => {
            within(field, text.chars().count() as f64, "characters")?;
            let Some(format) = &field.format else { return Ok(()) };
            // An optional field that was left empty.
            let may_be_empty = text.is_empty() && field.required != Some(true);
            if may_be_empty || has_format(format, text) {
                Ok(())
            } else {
                Err(format!("must be {}", described(format)))
            }
        }
        (FieldKind::Number, Value::Number(number)) => within(field, value_of(number), ""),
        (FieldKind::Integer, Value::Number(number)) if is_whole(number) => {
            within(field, value_of(number), "")
        }
        (FieldKind::Boolean, Value::Bool(_)) => Ok(()),
        (FieldKind::Choice, value) if is_option(value) => Ok(()),
        (FieldKind::Choices, Value::Array(values)) if values.iter().all(is_option) => {
            within(field, values.len() as f64, "choices")
        }
        (kind, _) => Err(format!(
            "must be {}",
            match kind {
                FieldKind::Text => "a text",
                FieldKind::Number => "a number",
                FieldKind::Integer => "a whole number",
                FieldKind::Boolean => "true or false",
                FieldKind::Choice => "one of its options",
                FieldKind::Choices => "a list of its options",
                _ => "of a kind that this version knows",
            }
        )),
    }
}

fn within(field: &QuestionField, size: f64, unit: &str) -> Result<(), String> {
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let has = if unit.is_empty() { "be" } else { "have" };
    if let Some(least) = field.minimum.as_ref().filter(|least| size < value_of(least)) {
        return Err(format!("must {has} at least {least}{unit}"));
    }
    if let Some(most) = field.maximum.as_ref().filter(|most| size > value_of(most)) {
        return Err(format!("must {has} at most {most}{unit}"));
    }
    Ok(())
}

fn value_of(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

fn is_whole(number: &Number) -> bool {
    value_of(number).fract() == 0.0
}

/// Whether a text has the shape of a format. Unknown formats, and what a server checks better, are not checked.
fn has_format(format: &str, text: &str) -> bool {
    let is_date = |text: &str| {
        let parts: Vec<&str> = text.split('-').collect();
        let is_figure = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
        parts.iter().map(|part| part.len()).eq([4, 2, 2]) && parts.iter().all(is_figure)
    };
    match format {
        "email" => text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty()),
        "uri" => text.split_once(':').is_some_and(|(scheme, rest)| {
            let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
            !rest.is_empty()
                && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.bytes().all(is_letter)
        }),
        "date" => is_date(text),
        "date-time" => {
            text.split_once(['T', 't']).is_some_and(|(date, time)| is_date(date) && time.contains(':'))
        }
        _ => true,
    }
}

fn described(format: &str) -> &'static str {
    match format {
        "email" => "an e-mail address",
        "uri" => "a URL",
        "date" => "a date, such as 2026-12-31",
        _ => "a date and time, such as 2026-12-31T23:59:00Z",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form() -> Question {
        let question = json!({
            "questionId": "q", "stepId": "t#0", "toolCallId": "c", "toolName": "a__book", "asker": "a", "kind": "form",
            "message": "Which room?", "fields": [
                { "name": "name", "kind": "text", "title": "Your name", "required": true, "minimum": 2, "maximum": 5 },
                { "name": "mail", "kind": "text", "format": "email" },
                { "name": "when", "kind": "text", "format": "date" },
                { "name": "page", "kind": "text", "format": "uri" },
                { "name": "guests", "kind": "integer", "minimum": 1, "maximum": 4 },
                { "name": "rate", "kind": "number", "maximum": 0.5 },
                { "name": "quiet", "kind": "boolean" },
                { "name": "bed", "kind": "choice", "options": [{ "value": "one" }, { "value": "two" }] },
                { "name": "extras", "kind": "choices", "maximum": 1, "options": [{ "value": "tea" }, { "value": "egg" }] },
            ],
        });
        serde_json::from_value(question).unwrap()
    }

    #[test]
    fn what_fits_is_returned_as_it_was_given() {
        let whole = json!({
            "name": "Ada", "mail": "a@b.c", "when": "2026-01-31", "page": "https://a.b", "guests": 2, "rate": 0.25,
            "quiet": true, "bed": "two", "extras": ["egg"],
        });
        for given in [json!({ "name": "Jörg" }), json!({ "name": "Ada", "mail": "" }), whole] {
            assert_eq!(content(&form(), Some(given.clone())), Ok(Some(given)));
        }
    }

    #[test]
    fn what_does_not_fit_is_told() {
        for (given, why) in [
            (json!(7), "`content` must be an object"),
            (json!({}), "Your name is required"),
            (json!({ "name": "A" }), "Your name must have at least 2 characters"),
            (json!({ "name": "Adelaide" }), "Your name must have at most 5 characters"),
            (json!({ "name": 7 }), "Your name must be a text"),
            (json!({ "name": "Ada", "other": 1 }), "there is no field \"other\""),
            (json!({ "name": "Ada", "mail": "ada" }), "mail must be an e-mail address"),
            (json!({ "name": "Ada", "when": "1.1.2026" }), "when must be a date"),
            (json!({ "name": "Ada", "page": "a.b" }), "page must be a URL"),
            (json!({ "name": "Ada", "guests": 1.5 }), "guests must be a whole number"),
            (json!({ "name": "Ada", "guests": 5 }), "guests must be at most 4"),
            (json!({ "name": "Ada", "rate": 1 }), "rate must be at most 0.5"),
            (json!({ "name": "Ada", "quiet": "yes" }), "quiet must be true or false"),
            (json!({ "name": "Ada", "bed": "three" }), "bed must be one of its options"),
            (json!({ "name": "Ada", "extras": ["tea", "ham"] }), "extras must be a list of its options"),
            (json!({ "name": "Ada", "extras": ["tea", "egg"] }), "extras must have at most 1 choices"),
            (json!({ "name": "x".repeat(LARGEST) }), "`content` may have at most 65536 bytes"),
        ] {
            let error = content(&form(), Some(given)).unwrap_err();
            assert!(error.starts_with(why), "{why}: {error}");
        }
    }

    #[test]
    fn only_a_form_has_content() {
        let url = Question { kind: QuestionKind::Url, ..form() };
        assert_eq!(content(&url, Some(json!({ "a": 1 }))), Ok(None));
        let login = Question { kind: QuestionKind::Login, ..form() };
        assert!(content(&login, None).unwrap_err().contains("logged in at a"));
    }
}
