//! Adapters from model APIs to the kernel's provider contract.
//!
//! An adapter makes one HTTP request per call, reads the response stream and yields events. It bounds the size of the
//! response and the length of silences. This crate does *not* retry, wait, choose targets or classify failures;
//! `everturn-diagnosis` classifies.

mod answer;
mod anthropic;
mod assembly;
mod bulk;
mod call_id;
mod chat;
mod clock;
mod config;
mod demo;
mod endpoint;
mod exchange;
mod gemini;
mod history;
mod http;
mod limit;
mod lister;
mod parameter;
mod redactor;
mod relay;
#[cfg(any(test, feature = "replay"))]
mod replay;
mod responses;
mod scripted;
mod secret;
mod sse;
mod surrogate;

#[cfg(any(test, feature = "replay"))]
pub use replay::{Dialect, Ending, replay};

pub use anthropic::{Anthropic, AnthropicConfig};
pub use chat::{ChatCompletions, ChatConfig, HistoryForm, OutputLimit, ReturnReasoning};
pub use config::{AnswerLimits, ConfigError, EndpointConfig};
pub use demo::Demo;
pub use gemini::{Gemini, GeminiConfig};
pub use http::{HttpClient, HttpConfig, Timeouts};
pub use lister::{ListedModel, Lister};
pub use redactor::Redactor;
pub use relay::{AnswerForm, KeyHeader, Relay, RelayEvent, RelayRequest};
pub use responses::{Responses, ResponsesConfig};
pub use scripted::{Cue, Scripted};
pub use secret::Secret;
pub use sse::{EventTooLarge, SseDecoder, SseEvent};
