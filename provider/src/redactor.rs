//! Removes configured secrets from text, for other crates.

use std::fmt;

use crate::{EndpointConfig, Secret, endpoint, secret::Veil};

/// Removes configured secrets from text that leaves the process, such as traces with the content of messages.
///
/// Any eight consecutive characters of a secret are replaced, in all common encodings, so text may be truncated first.
#[derive(Clone, Default)]
pub struct Redactor {
    veil: Veil,
}

impl Redactor {
    /// Adds a secret.
    pub fn add(&mut self, secret: &Secret) {
        self.veil.add(secret.reveal());
    }

    /// Adds everything secret in the configuration of an endpoint: its key, and parts of its headers and URL.
    pub fn add_endpoint(&mut self, config: &EndpointConfig) {
        endpoint::hide_secrets(config, &mut self.veil);
    }

    /// Replaces all secrets in a text.
    pub fn redact(&self, text: &mut String) {
        self.veil.hide_in(text);
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_endpoints_and_others_are_replaced() {
        let mut redactor = Redactor::default();
        redactor.add(&Secret::new("the-token-of-the-server"));
        redactor.add_endpoint(&EndpointConfig {
            api_key: Some(Secret::new("sk-of-the-endpoint-1")),
            ..EndpointConfig::new("https://example.com/v1?key=in-its-query-1234")
        });
        let mut text = "the-token-of-the-server sk-of-the-endpoint-1 in-its-query-1234 hello".to_owned();
        redactor.redact(&mut text);
        assert_eq!(text, "[redacted] [redacted] [redacted] hello");
        assert_eq!(format!("{redactor:?}"), "Redactor");
    }
}
