//! Redacts secrets that a server repeats.

use std::{
    borrow::Cow,
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use crate::{Connection, ServerConfig, Setting};

/// Replaces a secret.
const VEILED: &str = "[secret]";

/// Minimum length of a secret. A shorter one may be a common word.
const SHORTEST: usize = 8;

/// Maximum number of tokens: those in use, and earlier ones.
const TOKENS: usize = 16;

/// The secrets that no text of a server may show.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    /// Each with its replacement, the longest first, because one may contain another.
    hidden: Vec<(String, &'static str)>,
    /// Whether the server's URL may have a secret in it, such as a key in its query.
    is_url_secret: bool,
    /// The latest tokens of a login.
    tokens: Mutex<VecDeque<String>>,
}

impl Redactor {
    pub(crate) fn of(config: &ServerConfig) -> Self {
        let (settings, url) = match &config.connection {
            Connection::Command(command) => (&command.env, None),
            Connection::Http(endpoint) => (&endpoint.headers, Some(endpoint.url.as_str())),
        };
        let oauth = match &config.connection {
            Connection::Http(endpoint) => endpoint.oauth.client_secret.as_ref(),
            Connection::Command(_) => None,
        };
        let secrets = settings.values().chain(oauth).filter_map(|setting| match setting {
            Setting::Secret(text) => Some(text.trim()),
            Setting::Plain(_) => None,
        });
        // `KEY` is as secret as `Bearer KEY`.
        let keys = secrets.clone().filter_map(|text| Some(text.split_once(' ')?.1));
        // A log shows one of several lines by itself, and JSON escapes some characters.
        let spellings = secrets.chain(keys).flat_map(|text| {
            let json = serde_json::Value::from(text).to_string();
            let lines = text.lines().map(|line| line.trim().to_owned());
            lines.chain([text.to_owned(), json[1..json.len() - 1].to_owned()])
        });
        let mut hidden: Vec<_> =
            spellings.filter(|text| text.len() >= SHORTEST).map(|text| (text, VEILED)).collect();
        let mut is_url_secret = false;
        if let Some(url) = url {
            // Errors contain the URL as parsed, not as written.
            let understood = reqwest::Url::parse(url).ok();
            // Without any other secret, its path may have one.
            is_url_secret = hidden.is_empty()
                || understood.as_ref().is_none_or(|url| {
                    url.query().is_some() || !url.username().is_empty() || url.password().is_some()
                });
            let understood = understood.map(String::from);
            let spellings = understood.into_iter().chain([url.to_owned()]);
            hidden.extend(spellings.filter(|text| !text.is_empty()).map(|text| (text, "[its url]")));
        }
        hidden.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        Self { hidden, is_url_secret, tokens: Mutex::default() }
    }

    /// Hides the tokens of a login, too.
    pub(crate) fn hide<'t>(&self, secrets: impl IntoIterator<Item = &'t str>) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        for secret in secrets.into_iter().filter(|secret| secret.len() >= SHORTEST) {
            if !tokens.iter().any(|known| known == secret) {
                tokens.truncate(TOKENS - 1);
                tokens.push_front(secret.to_owned());
            }
        }
    }

    /// Returns the text without secrets and without the server's URL.
    pub(crate) fn redact<'t>(&self, text: impl Into<Cow<'t, str>>) -> Cow<'t, str> {
        self.without(text.into(), |_| true)
    }

    /// Returns the text without secrets. For a schema, whose values may begin with the server's URL.
    pub(crate) fn redact_secrets<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.without(text.into(), |shown| shown == VEILED || self.is_url_secret)
    }

    fn without<'t>(&self, mut text: Cow<'t, str>, is_hidden: impl Fn(&str) -> bool) -> Cow<'t, str> {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let tokens = tokens.iter().map(|token| (token.as_str(), VEILED));
        for (hidden, shown) in
            self.hidden.iter().map(|(hidden, shown)| (hidden.as_str(), *shown)).chain(tokens)
        {
            if is_hidden(shown) && text.contains(hidden) {
                text = Cow::Owned(text.replace(hidden, shown));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use crate::{Command, Endpoint};

    use super::*;

    #[test]
    fn secrets_are_hidden_and_other_values_shown() {
        let setting = |text: &str| Setting::Secret(text.to_owned());
        let env = [
            ("A".to_owned(), setting("s3cret-value")),
            ("B".to_owned(), setting("s3cret-value-2")),
            ("C".to_owned(), setting("short")),
            ("D".to_owned(), Setting::Plain("plain-value".to_owned())),
            ("E".to_owned(), setting("-----BEGIN\nsecond-line\n\"quoted\"")),
        ];
        let command = Command { env: env.into(), ..Command::default() };
        let redactor = Redactor::of(&ServerConfig::new("a", Connection::Command(command)));
        let text = "s3cret-value s3cret-value-2 short plain-value";
        assert_eq!(redactor.redact(text), "[secret] [secret] short plain-value");
        assert_eq!(redactor.redact("trace: second-line"), "trace: [secret]");
        assert_eq!(redactor.redact(r#"{"a":"-----BEGIN\nsecond-line\n\"quoted\""}"#), r#"{"a":"[secret]"}"#);
    }

    /// A server at this URL that gets a key in a header.
    fn at(url: &str) -> Redactor {
        let headers = [("Authorization".to_owned(), Setting::Secret("Bearer s3cret-key".to_owned()))];
        let endpoint = Endpoint { url: url.to_owned(), headers: headers.into(), ..Endpoint::default() };
        Redactor::of(&ServerConfig::new("a", Connection::Http(endpoint)))
    }

    #[test]
    fn neither_the_url_nor_the_key_in_a_header_is_shown() {
        let redactor = at("http://Host/path?key=s3cret");
        let text = "for url (http://host/path?key=s3cret): s3cret-key";
        assert_eq!(redactor.redact(text), "for url ([its url]): [secret]");
        assert_eq!(redactor.redact_secrets(text), "for url ([its url]): [secret]");
    }

    #[test]
    fn a_schema_may_name_addresses_below_the_servers_own() {
        let redactor = at("https://example.com/mcp");
        let schema = r#"{"enum":["https://example.com/mcp/projects/1","s3cret-key"]}"#;
        assert_eq!(redactor.redact_secrets(schema), schema.replace("s3cret-key", "[secret]"));
    }
}
