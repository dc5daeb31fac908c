//! What a conversation sets for its model.

use alloc::{format, string::String};

use serde::{Deserialize, Serialize};

/// Maximum length of a system prompt, and of a reasoning effort, in bytes.
const LONGEST_PROMPT: usize = 128 << 10;
const LONGEST_EFFORT: usize = 32;

/// What a conversation sets for its model: kept with it, and used by each turn from the next on, unless its message says
/// otherwise. What is absent is as configured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ModelSettings {
    /// Instructions at the beginning of every request, in place of the configured ones. At most 128 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Sampling temperature, from 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Maximum number of tokens in an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Reasoning effort, in the provider's terms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
}

impl ModelSettings {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns them without texts that are blank, which set nothing.
    #[must_use]
    pub fn trimmed(mut self) -> Self {
        self.system_prompt = self.system_prompt.filter(|text| !text.trim().is_empty());
        self.reasoning_effort = self.reasoning_effort.filter(|text| !text.trim().is_empty());
        self
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// Returns the first setting that is out of its range, for people.
    pub fn check(&self) -> Result<(), String> {
        if self.system_prompt.as_ref().is_some_and(|text| text.len() > LONGEST_PROMPT) {
            return Err(format!("systemPrompt may have at most {LONGEST_PROMPT} bytes"));
        }
        if self.temperature.is_some_and(|degree| !(0.0..=2.0).contains(&degree)) {
            return Err("temperature must be between 0 and 2".into());
        }
        if self.max_output_tokens == Some(0) {
            return Err("maxOutputTokens must be at least 1".into());
        }
        let is_word =
            |text: &String| text.len() <= LONGEST_EFFORT && text.bytes().all(|byte| byte.is_ascii_graphic());
        match &self.reasoning_effort {
            Some(effort) if !is_word(effort) => Err(format!(
                "reasoningEffort must be one word of at most {LONGEST_EFFORT} characters, such as low or high"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_checked_and_blanks_set_nothing() {
        let of = |json: &str| serde_json::from_str::<ModelSettings>(json).unwrap();
        let wrong = [
            (r#"{"temperature":2.1}"#, "temperature"),
            (r#"{"temperature":-1}"#, "temperature"),
            (r#"{"maxOutputTokens":0}"#, "maxOutputTokens"),
            (r#"{"reasoningEffort":"very high"}"#, "reasoningEffort"),
        ];
        for (json, name) in wrong {
            assert!(of(json).check().unwrap_err().contains(name), "{json}");
        }
        assert_eq!(of(r#"{"temperature":0,"maxOutputTokens":1,"reasoningEffort":"low"}"#).check(), Ok(()));
        let long =
            ModelSettings { system_prompt: Some("x".repeat(LONGEST_PROMPT + 1)), ..ModelSettings::default() };
        assert!(long.check().unwrap_err().contains("systemPrompt"));
        assert!(of(r#"{"systemPrompt":" \n","reasoningEffort":""}"#).trimmed().is_empty());
    }
}
