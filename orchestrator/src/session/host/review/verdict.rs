//! Parses a reviewer's answer. Nothing is inferred beyond what it says explicitly.

use everturn_kernel::{Assessment, ReviewAnswer};
use everturn_wire::{Category, Failure, Value};
use serde::Deserialize;

/// Maximum length of a field that is passed on, in characters.
const MAX_TEXT: usize = 500;

#[derive(Deserialize)]
struct Answer {
    outcome: Outcome,
    #[serde(default)]
    risk_level: Value,
    #[serde(default)]
    user_authorization: Value,
    #[serde(default)]
    rationale: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Allow,
    Deny,
}

/// Parses a reviewer's answer: a JSON object, alone or in a code block.
pub(super) fn read(text: &str) -> ReviewAnswer {
    let text = unfenced(text.trim());
    if text.is_empty() {
        let failure = Failure::new(Category::Unknown, false, "the reviewer gave no answer");
        return ReviewAnswer::Failed(failure);
    }
    match serde_json::from_str::<Answer>(text) {
        Ok(Answer { outcome, risk_level, user_authorization, rationale }) => {
            ReviewAnswer::Assessed(Assessment {
                allows: matches!(outcome, Outcome::Allow),
                risk_level: word(&risk_level),
                user_authorization: word(&user_authorization),
                rationale: word(&rationale),
            })
        }
        Err(error) => {
            let error: String = error.to_string().chars().take(MAX_TEXT).collect();
            ReviewAnswer::Unreadable(format!("the reviewer's answer is no assessment: {error}"))
        }
    }
}

/// The content of a code block, if it is the entire text.
fn unfenced(text: &str) -> &str {
    let inner = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    let inner = inner
        .and_then(|inner| inner.split_once('\n'))
        .filter(|(language, _)| language.trim().is_empty() || language.trim().eq_ignore_ascii_case("json"));
    inner.map_or(text, |(_, inner)| inner.trim())
}

fn word(value: &Value) -> Option<String> {
    let text = value.as_str()?.trim();
    (!text.is_empty()).then(|| text.chars().take(MAX_TEXT).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &str) -> Option<bool> {
        match read(text) {
            ReviewAnswer::Assessed(assessment) => Some(assessment.allows),
            _ => None,
        }
    }

    #[test]
    fn only_the_outcome_is_required_and_it_is_never_guessed() {
        for (text, expected) in [
            (r#"{"outcome":"allow"}"#, Some(true)),
            (r#" {"outcome": "deny", "risk_level": 7, "more": [1]} "#, Some(false)),
            ("```json\n{\"outcome\":\"allow\"}\n```", Some(true)),
            ("```\n{\"outcome\":\"deny\"}\n```", Some(false)),
            (r#"{"outcome":"ALLOW"}"#, None),
            (r#"{"outcome":"allowed"}"#, None),
            (r#"{"outcome":true}"#, None),
            (r#"{"risk_level":"low"}"#, None),
            (r#"I would say {"outcome":"allow"}"#, None),
            (r#"{"outcome":"allow"} {"outcome":"deny"}"#, None),
            (r#"{"outcome":"allow""#, None),
            ("allow", None),
            (r#"[{"outcome":"allow"}]"#, None),
        ] {
            assert_eq!(outcome(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_said_beside_it_is_passed_on_and_bounded() {
        let long =
            format!(r#"{{"outcome":"deny","rationale":"{}","risk_level":" high "}}"#, "x".repeat(9_000));
        let ReviewAnswer::Assessed(assessment) = read(&long) else { panic!("it is read") };
        assert_eq!(assessment.risk_level.as_deref(), Some("high"));
        assert_eq!(assessment.rationale.map(|text| text.len()), Some(MAX_TEXT));
        assert_eq!(assessment.user_authorization, None);
    }

    #[test]
    fn no_answer_is_not_asked_for_again_and_an_unreadable_one_is() {
        assert!(matches!(read("  "), ReviewAnswer::Failed(_)));
        assert!(matches!(read("well"), ReviewAnswer::Unreadable(_)));
    }
}
