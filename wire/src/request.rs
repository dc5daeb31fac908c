//! Parameters for the model, and tools that the caller runs.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Parameters that are passed on to the model's API. A turn is refused if its target's API lacks one of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Parameters {
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling: the probability mass to sample from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Sequences at which the model stops.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Whether the model may or must call tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// The format of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// Maximum number of tokens in an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Whether the model may call several tools in one step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Seed for sampling, if the API attempts reproducible answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Penalty for tokens that have occurred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// Penalty for tokens according to how often they have occurred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
}

impl Parameters {
    /// Whether no parameter is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the wire names of the parameters that are set, except `maxOutputTokens`, which every API has.
    pub fn names(&self) -> Vec<&'static str> {
        let set = [
            ("temperature", self.temperature.is_some()),
            ("topP", self.top_p.is_some()),
            ("stop", !self.stop.is_empty()),
            ("toolChoice", self.tool_choice.is_some()),
            ("responseFormat", self.response_format.is_some()),
            ("parallelToolCalls", self.parallel_tool_calls.is_some()),
            ("seed", self.seed.is_some()),
            ("presencePenalty", self.presence_penalty.is_some()),
            ("frequencyPenalty", self.frequency_penalty.is_some()),
        ];
        set.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
    }

    /// Returns the names of the parameters that are set and not in `known`.
    pub fn names_beyond(&self, known: &[&str]) -> Vec<&'static str> {
        self.names().into_iter().filter(|name| !known.contains(name)).collect()
    }
}

/// Whether the model may or must call tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ToolChoice {
    /// It may.
    Auto,
    /// It must not.
    None,
    /// It must call at least one.
    Required,
    /// It must call this one.
    Tool {
        /// Its name.
        name: String,
    },
}

/// The format of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum ResponseFormat {
    /// Plain text.
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON that fits a schema.
    JsonSchema {
        /// The schema's name.
        name: String,
        /// The JSON Schema.
        schema: Value,
        /// Whether the answer must match the schema exactly, if the API offers that choice.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
}

/// A tool that the caller runs. The model's calls of it end the turn and are handed to the caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CallerTool {
    /// The name that the model uses: 1 to 64 of the characters A-Z a-z 0-9 _ -.
    pub name: String,
    /// Its description for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// JSON Schema of its arguments; none if absent.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input_schema: Value,
}

/// A tool call that was handed to the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CallerCall {
    /// The id of the call. Its result must have the same id.
    pub tool_call_id: String,
    /// The tool's name.
    pub tool_name: String,
    /// The arguments.
    pub input: Value,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_parameter_but_the_limit_has_its_wire_name_in_the_list() {
        let all = json!({
            "temperature": 0.5, "topP": 0.9, "stop": ["END"], "toolChoice": { "type": "tool", "name": "read" },
            "responseFormat": { "type": "json-object" }, "maxOutputTokens": 7, "parallelToolCalls": false,
            "seed": 7, "presencePenalty": 0.1, "frequencyPenalty": 0.2,
        });
        let parameters: Parameters = serde_json::from_value(all.clone()).unwrap();
        assert_eq!(serde_json::to_value(&parameters).unwrap(), all);
        let mut names: Vec<&str> = all.as_object().unwrap().keys().map(String::as_str).collect();
        names.retain(|name| *name != "maxOutputTokens");
        let mut listed = parameters.names();
        listed.sort_unstable();
        names.sort_unstable();
        assert_eq!(listed, names);
        assert!(Parameters::default().names().is_empty() && Parameters::default().is_empty());
        assert_eq!(parameters.names_beyond(&["seed", "stop", "topP"]).len(), 6);
    }
}
