//! What an embedder says about an endpoint, and what can be wrong with it.

use std::fmt;

use crate::{Secret, SseDecoder};

/// Where an API is and how to be let in.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointConfig {
    /// The address that the API's own paths are appended to, e.g. `https://api.openai.com/v1`. A query is kept.
    pub base_url: String,
    /// The credential, where the endpoint wants one.
    pub api_key: Option<Secret>,
    /// Further headers of every request. They replace the adapter's own of the same name.
    pub headers: Vec<(String, Secret)>,
}

impl EndpointConfig {
    /// An endpoint without credential and further headers.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self { base_url: base_url.into(), api_key: None, headers: Vec::new() }
    }
}

impl fmt::Debug for EndpointConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Credentials are also put into an address: before its host, and in its query.
        let address = self.base_url.split(['?', '#']).next().unwrap_or_default();
        let shown = if address.contains('@') { "[redacted]" } else { address };
        f.debug_struct("EndpointConfig")
            .field("base_url", &shown)
            .field("api_key", &self.api_key)
            .field("headers", &self.headers)
            .finish()
    }
}

/// How much a provider may send in one call before the call is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimits {
    /// Bytes of one event. 16 MiB unless set.
    pub event: usize,
    /// Bytes of text, reasoning and tool arguments together. 64 MiB unless set.
    pub answer: usize,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self { event: SseDecoder::DEFAULT_LIMIT, answer: 64 << 20 }
    }
}

/// A configuration that no request can be made with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The base URL cannot be used.
    #[error("the base URL cannot be used: {0}; write it like https://api.example.com/v1")]
    BaseUrl(String),
    /// The API key has characters that no header can carry.
    #[error(
        "the API key has characters that a header cannot carry: look for line breaks or quotes pasted with it"
    )]
    ApiKey,
    /// A header's name or value cannot be sent.
    #[error("the header {name:?} cannot be sent: its {part} has characters that a header cannot carry")]
    Header {
        /// The header.
        name: String,
        /// Its `name` or its `value`.
        part: &'static str,
    },
    /// The HTTP client could not be made.
    #[error("the HTTP client could not be made: {0}")]
    Client(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_where_but_no_credential() {
        let mut config = EndpointConfig::new("https://host/v1?key=abcdefgh");
        config.api_key = Some("sk-12345678".into());
        config.headers.push(("x-team".into(), "teamsecret".into()));
        let shown = format!("{config:?}");
        assert!(shown.contains("https://host/v1\"") && shown.contains("x-team"), "{shown}");
        config.base_url = "https://user:pass@host/v1".into();
        for secret in ["abcdefgh", "sk-1234", "teamsecret", "pass@"] {
            assert!(!shown.contains(secret) && !format!("{config:?}").contains(secret), "{secret}");
        }
    }
}
