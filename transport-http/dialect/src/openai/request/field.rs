//! The fields of a request.

use std::{cell::Cell, fmt};

use everturn_wire::{ApprovalMode, Parameters, RetrySettings, SendRequest};
use serde::{
    Deserialize,
    de::{IgnoredAny, MapAccess, Visitor},
};

use super::{
    OnDisconnect,
    history::Spoken,
    mild::Mild,
    tool::{Choice, Format, Tool},
};
use crate::few::Few;

/// Fields that would change the form of the answer, and that this server does not support. Accepted if their value has
/// no effect.
const REFUSED: [&str; 12] = [
    "n",
    "logprobs",
    "top_logprobs",
    "logit_bias",
    "audio",
    "modalities",
    "web_search_options",
    "functions",
    "function_call",
    // Used by other servers of this API.
    "best_of",
    "guided_json",
    "guided_regex",
];

macro_rules! fields {
    ($($name:ident: $type:ty,)*) => {
        /// The supported fields. Others are skipped, unless they are among the refused ones.
        #[derive(Default)]
        pub(super) struct Fields {
            $(pub(super) $name: Option<$type>,)*
            /// The first unsupported field.
            pub(super) refused: Option<&'static str>,
        }

        impl<'de> Visitor<'de> for Reader<'_> {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        $(stringify!($name) => {
                            self.at.set(stringify!($name));
                            fields.$name = map.next_value()?;
                        })*
                        key => match REFUSED.iter().find(|name| **name == key) {
                            Some(name) => {
                                self.at.set(name);
                                let asked: Mild = map.next_value()?;
                                if !asked.is_nothing(name) {
                                    fields.refused.get_or_insert(name);
                                }
                            }
                            None => drop(map.next_value::<IgnoredAny>()?),
                        },
                    }
                    self.at.set("");
                }
                Ok(fields)
            }
        }
    };
}

/// Reads the fields, and keeps track of the current one.
pub(super) struct Reader<'a> {
    pub(super) at: &'a Cell<&'static str>,
}

fields! {
    model: String,
    messages: Few<Spoken>,
    stream: bool,
    stream_options: StreamOptions,
    temperature: f64,
    top_p: f64,
    stop: Stops,
    tools: Few<Tool>,
    tool_choice: Choice,
    parallel_tool_calls: bool,
    response_format: Format,
    max_tokens: u32,
    max_completion_tokens: u32,
    seed: i64,
    presence_penalty: f64,
    frequency_penalty: f64,
    reasoning_effort: String,
    metadata: Metadata,
    everturn: Options,
}

#[derive(Deserialize)]
pub(super) struct StreamOptions {
    pub(super) include_usage: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct Metadata {
    pub(super) conversation_id: Option<String>,
}

/// One stop sequence, or several.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Stops {
    One(String),
    Many(Few<String>),
}

impl Stops {
    pub(super) fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts.0,
        }
    }
}

/// Options specific to this server.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Options {
    pub(super) text: Option<TextMode>,
    pub(super) on_disconnect: Option<OnDisconnect>,
    pub(super) retry: Option<RetrySettings>,
    pub(super) approvals: Option<ApprovalMode>,
    /// Whether the server's tools, system prompt and summaries are added.
    pub(super) agent: Option<bool>,
}

/// When text is sent.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TextMode {
    /// As it arrives.
    Stream,
    /// When its step is complete.
    Hold,
}

/// Copies the parameters to the request.
pub(super) fn set(send: &mut SendRequest, parameters: Parameters) {
    send.temperature = parameters.temperature;
    send.top_p = parameters.top_p;
    send.stop = Some(parameters.stop).filter(|stop| !stop.is_empty());
    send.tool_choice = parameters.tool_choice;
    send.response_format = parameters.response_format;
    send.max_output_tokens = parameters.max_output_tokens;
    send.parallel_tool_calls = parameters.parallel_tool_calls;
    send.seed = parameters.seed;
    send.presence_penalty = parameters.presence_penalty;
    send.frequency_penalty = parameters.frequency_penalty;
}
