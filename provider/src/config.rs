//! Configuration of an endpoint, and its errors.

use std::fmt;

use crate::{Secret, SseDecoder};

/// Address and credential of an endpoint.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointConfig {
    /// Base URL; the API's paths are appended to it, e.g. `https://api.openai.com/v1`. A query is kept.
    pub base_url: String,
    /// The credential, if the endpoint requires one.
    pub api_key: Option<Secret>,
    /// Additional headers of every request. They replace the adapter's headers with the same name.
    pub headers: Vec<(String, Secret)>,
}

impl EndpointConfig {
    /// Creates a configuration without credential or additional headers.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self { base_url: base_url.into(), api_key: None, headers: Vec::new() }
    }
}

impl fmt::Debug for EndpointConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Credentials may also appear in the URL: before the host, and in the query.
        let address = self.base_url.split(['?', '#']).next().unwrap_or_default();
        let shown = if address.contains('@') { "[redacted]" } else { address };
        f.debug_struct("EndpointConfig")
            .field("base_url", &shown)
            .field("api_key", &self.api_key)
            .field("headers", &self.headers)
            .finish()
    }
}

/// Limits on what a provider may send in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimits {
    /// Maximum size of one event, in bytes. Default: 16 MiB.
    pub event: usize,
    /// Maximum total size of text, reasoning and tool arguments, in bytes. Default: 64 MiB.
    pub answer: usize,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self { event: SseDecoder::DEFAULT_LIMIT, answer: 64 << 20 }
    }
}

/// An invalid configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The base URL cannot be used.
    #[error("the base URL cannot be used: {0}; write it like https://api.example.com/v1")]
    BaseUrl(String),
    /// The API key has characters that are not allowed in a header.
    #[error("the API key has characters that a header cannot carry: check for pasted line breaks or quotes")]
    ApiKey,
    /// A header's name or value is invalid.
    #[error("the header {name:?} cannot be sent: its {part} has characters that a header cannot carry")]
    Header {
        /// The header.
        name: String,
        /// Its `name` or its `value`.
        part: &'static str,
    },
    /// The HTTP client could not be created.
    #[error("cannot create the HTTP client: {0}")]
    Client(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_the_address_but_no_credential() {
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
