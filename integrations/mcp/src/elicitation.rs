//! Questions of a server to the person behind a call (elicitation).

use everturn_orchestrator::{Ask, People, Reply};
use everturn_wire::{FieldKind, FieldOption, QuestionField, Value};
use reqwest::Url;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use serde_json::{Map, Number};

use crate::link::Link;

/// Maximum numbers of fields and of options of a field.
const MOST_FIELDS: usize = 32;
const MOST_OPTIONS: usize = 100;

/// Maximum size of what a server says, and of the whole question, in bytes.
const LONGEST_MESSAGE: usize = 4 << 10;
const LARGEST: usize = 32 << 10;

/// Asks the person, and returns the answer for the server.
///
/// # Errors
/// Returns why the question cannot be shown. It is declined then.
pub(crate) async fn answer(
    link: &Link,
    people: &People,
    asked: ElicitRequestParams,
) -> Result<ElicitResult, String> {
    let (message, ask) = question(link, asked)?;
    let has_form = matches!(ask, Ask::Form(_));
    Ok(match people.ask(link.name(), &message, ask).await {
        Reply::Accepted(content) => {
            let accepted = ElicitResult::new(ElicitationAction::Accept);
            if has_form { accepted.with_content(content) } else { accepted }
        }
        Reply::Declined => ElicitResult::new(ElicitationAction::Decline),
        Reply::Cancelled => ElicitResult::new(ElicitationAction::Cancel),
    })
}

/// Returns what to show, without the server's secrets.
fn question(link: &Link, asked: ElicitRequestParams) -> Result<(String, Ask), String> {
    let (message, ask, size) = match asked {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            let fields = fields(link, &requested_schema)?;
            let size = serde_json::to_string(&fields).map_or(usize::MAX, |json| json.len());
            (message, Ask::Form(fields), size)
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            // Anything else would run in the page, or open files.
            let url = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "https" | "http"));
            let url = url.ok_or("the page to open has no valid web address")?;
            let has_secret = |text: &str| link.redactor.redact(text.to_owned()) != text;
            if has_secret(url.as_str())
                || url.query_pairs().any(|(name, value)| has_secret(&name) || has_secret(&value))
            {
                return Err("the address of the page to open contains a secret".to_owned());
            }
            let url = String::from(url);
            let size = url.len();
            (message, Ask::Url(url), size)
        }
        _ => return Err("it is of an unknown kind".to_owned()),
    };
    if message.len() > LONGEST_MESSAGE {
        return Err(format!("its text has more than {LONGEST_MESSAGE} bytes"));
    }
    if message.len().saturating_add(size) > LARGEST {
        return Err(format!("it has more than {LARGEST} bytes"));
    }
    Ok((link.redactor.redact(message).into_owned(), ask))
}

/// Returns the fields in the order in which the server lists them.
fn fields(link: &Link, schema: &ElicitationSchema) -> Result<Vec<QuestionField>, String> {
    if schema.properties.len() > MOST_FIELDS {
        return Err(format!("it has more than {MOST_FIELDS} fields"));
    }
    let names: Vec<&String> = match &schema.property_order {
        Some(order) => order.iter().collect(),
        None => schema.properties.keys().collect(),
    };
    let is_required =
        |name: &String| schema.required.as_ref().is_some_and(|required| required.contains(name));
    let field = |name: &String| {
        if link.redactor.redact(name.clone()) != *name {
            return Err("the name of a field contains a secret".to_owned());
        }
        let schema = schema.properties.get(name).and_then(|schema| serde_json::to_value(schema).ok());
        let field =
            schema.as_ref().and_then(Value::as_object).and_then(|schema| Schema(link, schema).field(name));
        let field = field.ok_or_else(|| format!("its field {name:?} is of an unknown type"))?;
        if field.options.len() > MOST_OPTIONS {
            return Err(format!("its field {name:?} has more than {MOST_OPTIONS} options"));
        }
        if field.options.iter().any(|option| link.redactor.redact(option.value.clone()) != option.value) {
            return Err(format!("an option of its field {name:?} contains a secret"));
        }
        Ok(QuestionField { required: is_required(name).then_some(true), ..field })
    };
    names.into_iter().map(field).collect()
}

/// The schema of a field.
struct Schema<'s>(&'s Link, &'s Map<String, Value>);

impl Schema<'_> {
    fn field(&self, name: &str) -> Option<QuestionField> {
        let items = self.1.get("items").and_then(Value::as_object);
        let items = items.map(|items| Schema(self.0, items).options()).unwrap_or_default();
        let own = self.options();
        let (kind, options, bounds) = match self.1.get("type")?.as_str()? {
            "string" if !own.is_empty() => (FieldKind::Choice, own, None),
            "string" => (FieldKind::Text, Vec::new(), Some(("minLength", "maxLength"))),
            "number" => (FieldKind::Number, Vec::new(), Some(("minimum", "maximum"))),
            "integer" => (FieldKind::Integer, Vec::new(), Some(("minimum", "maximum"))),
            "boolean" => (FieldKind::Boolean, Vec::new(), None),
            "array" if !items.is_empty() => (FieldKind::Choices, items, Some(("minItems", "maxItems"))),
            _ => return None,
        };
        let (minimum, maximum) =
            bounds.map(|(least, most)| (self.number(least), self.number(most))).unwrap_or_default();
        Some(QuestionField {
            name: name.to_owned(),
            kind,
            title: self.text("title"),
            description: self.text("description"),
            required: None,
            format: self.text("format"),
            minimum,
            maximum,
            options,
            default: self.1.get("default").map(|value| self.shown(value)),
        })
    }

    /// The options, with or without titles.
    fn options(&self) -> Vec<FieldOption> {
        let list = |name: &str| self.1.get(name).and_then(Value::as_array);
        if let Some(titled) = list("oneOf").or_else(|| list("anyOf")) {
            let option = |option: &Value| {
                let value = option.get("const")?.as_str()?.to_owned();
                let title = option.get("title").and_then(Value::as_str).map(|title| self.redacted(title));
                Some(FieldOption { value, title })
            };
            return titled.iter().filter_map(option).collect();
        }
        let titles = list("enumNames").map(Vec::as_slice).unwrap_or_default();
        let option = |(place, value): (usize, &Value)| {
            let title = titles.get(place).and_then(Value::as_str).map(|title| self.redacted(title));
            Some(FieldOption { value: value.as_str()?.to_owned(), title })
        };
        list("enum").map(Vec::as_slice).unwrap_or_default().iter().enumerate().filter_map(option).collect()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.1.get(name)?.as_str().map(|text| self.redacted(text))
    }

    fn number(&self, name: &str) -> Option<Number> {
        self.1.get(name)?.as_number().cloned()
    }

    fn shown(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.redacted(text)),
            Value::Array(values) => values.iter().map(|value| self.shown(value)).collect(),
            other => other.clone(),
        }
    }

    fn redacted(&self, text: &str) -> String {
        self.0.redactor.redact(text.to_owned()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Command, Connection, ServerConfig, Setting};

    fn link() -> Link {
        let secret = [("KEY".to_owned(), Setting::Secret("s3cret-value".to_owned()))];
        let command = Command { env: secret.into(), ..Command::default() };
        Link::new(ServerConfig::new("a", Connection::Command(command)), None)
    }

    fn asked(params: Value) -> Result<(String, Value), String> {
        let (message, ask) = question(&link(), serde_json::from_value(params).unwrap())?;
        Ok((
            message,
            match ask {
                Ask::Form(fields) => serde_json::to_value(fields).unwrap(),
                Ask::Url(url) => json!(url),
                Ask::Login => json!(null),
            },
        ))
    }

    fn form(properties: &Value, required: &[&str]) -> Value {
        json!({ "message": "Which? s3cret-value", "requestedSchema": {
            "type": "object", "properties": properties, "required": required,
        } })
    }

    #[test]
    fn every_type_of_field_is_shown_in_the_servers_order_and_without_secrets() {
        let properties = json!({
            "zip": { "type": "string", "title": "ZIP s3cret-value", "minLength": 2, "maxLength": 5, "default": "10115" },
            "mail": { "type": "string", "format": "email", "description": "Yours" },
            "age": { "type": "integer", "minimum": 18, "maximum": 99 },
            "rate": { "type": "number", "maximum": 0.5 },
            "sure": { "type": "boolean", "default": true },
            "plain": { "type": "string", "enum": ["a", "b"] },
            "old": { "type": "string", "enum": ["a", "b"], "enumNames": ["An A", "A B"] },
            "titled": { "type": "string", "oneOf": [{ "const": "a", "title": "An A" }] },
            "several": { "type": "array", "minItems": 1, "maxItems": 2, "items": { "type": "string", "enum": ["a", "b"] } },
            "named": { "type": "array", "items": { "anyOf": [{ "const": "a", "title": "An A" }] } },
        });
        let (message, fields) = asked(form(&properties, &["zip"])).unwrap();
        assert_eq!(message, "Which? [secret]");
        let expected = json!([
            { "name": "zip", "kind": "text", "title": "ZIP [secret]", "required": true, "minimum": 2, "maximum": 5, "default": "10115" },
            { "name": "mail", "kind": "text", "format": "email", "description": "Yours" },
            { "name": "age", "kind": "integer", "minimum": 18, "maximum": 99 },
            { "name": "rate", "kind": "number", "maximum": 0.5 },
            { "name": "sure", "kind": "boolean", "default": true },
            { "name": "plain", "kind": "choice", "options": [{ "value": "a" }, { "value": "b" }] },
            { "name": "old", "kind": "choice", "options": [{ "value": "a", "title": "An A" }, { "value": "b", "title": "A B" }] },
            { "name": "titled", "kind": "choice", "options": [{ "value": "a", "title": "An A" }] },
            { "name": "several", "kind": "choices", "minimum": 1, "maximum": 2, "options": [{ "value": "a" }, { "value": "b" }] },
            { "name": "named", "kind": "choices", "options": [{ "value": "a", "title": "An A" }] },
        ]);
        let (Value::Array(fields), Value::Array(expected)) = (fields, expected) else { panic!("lists") };
        // The order of keys in a test's own JSON is that of the alphabet.
        for field in &expected {
            assert!(fields.contains(field), "{field}\n{fields:?}");
        }
        assert_eq!(fields.len(), expected.len());
    }

    #[test]
    fn a_page_is_a_web_page() {
        let page =
            |url: &str| asked(json!({ "mode": "url", "message": "Pay", "url": url, "elicitationId": "1" }));
        assert_eq!(page("https://pay.example/x?y=1").unwrap().1, "https://pay.example/x?y=1");
        for url in ["https://a.example/?key=s3cret-value", "https://a.example/?key=s3cret%2Dvalue"] {
            assert!(page(url).unwrap_err().contains("contains a secret"), "{url}");
        }
        let field = asked(form(&json!({ "s3cret-value": { "type": "boolean" } }), &[]));
        assert_eq!(field.unwrap_err(), "the name of a field contains a secret");
        for url in ["javascript:alert(1)", "file:///etc/passwd", "pay"] {
            assert!(page(url).unwrap_err().contains("no valid web address"), "{url}");
        }
    }

    #[test]
    fn what_is_too_large_is_declined() {
        let many: Map<String, Value> =
            (0..=MOST_FIELDS).map(|n| (n.to_string(), json!({ "type": "boolean" }))).collect();
        let options: Vec<String> = (0..=MOST_OPTIONS).map(|n| n.to_string()).collect();
        let long = "x".repeat(LARGEST);
        for (params, why) in [
            (form(&Value::Object(many), &[]), "more than 32 fields"),
            (form(&json!({ "a": { "type": "string", "enum": options } }), &[]), "more than 100 options"),
            (form(&json!({ "a": { "type": "string", "title": long } }), &[]), "more than 32768 bytes"),
            (
                json!({ "message": "x".repeat(LONGEST_MESSAGE + 1), "requestedSchema": { "type": "object", "properties": {} } }),
                "more than 4096 bytes",
            ),
        ] {
            let error = asked(params).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
