//! Doors: which requests pass, to whom, and how their answers are read.

use everturn_orchestrator::Dialect;
use percent_encoding::percent_decode_str;

/// A door.
#[derive(Clone, Debug)]
pub(super) struct Door {
    /// The form of errors and waits, and of answers if they are read.
    pub(super) dialect: Dialect,
    /// Whether answers are read. Otherwise content begins with their first byte.
    pub(super) is_read: bool,
    /// What a provider must speak, in order of preference. Empty = anything.
    pub(super) speaks: &'static [Dialect],
    /// The only provider, if the path names one.
    pub(super) provider: Option<String>,
    /// The beginning of the path that is Everturn's.
    pub(super) prefix: String,
}

impl Door {
    pub(super) const MESSAGES: Self = Self::of(Dialect::Messages, &[Dialect::Messages]);
    /// Most servers of OpenAI's API speak both of its protocols.
    pub(super) const RESPONSES: Self = Self::of(Dialect::Responses, &[Dialect::Responses, Dialect::Chat]);
    pub(super) const CHAT: Self = Self::of(Dialect::Chat, &[Dialect::Chat]);
    /// Completions and embeddings.
    pub(super) const OPENAI: Self = Self::of(Dialect::Chat, &[Dialect::Chat, Dialect::Responses]);
    pub(super) const GEMINI: Self = Self::of(Dialect::Gemini, &[Dialect::Gemini]);

    const fn of(dialect: Dialect, speaks: &'static [Dialect]) -> Self {
        Self { dialect, is_read: true, speaks, provider: None, prefix: String::new() }
    }

    /// Any path of a provider; known ones are recognized by their end.
    pub(super) fn of_provider(path: &str) -> Self {
        let known = match path {
            _ if path.ends_with("/messages") => Some(Dialect::Messages),
            _ if path.ends_with("/responses") => Some(Dialect::Responses),
            _ if ["/completions", "/embeddings"].iter().any(|end| path.ends_with(end)) => Some(Dialect::Chat),
            _ if path.contains("enerateContent") => Some(Dialect::Gemini),
            _ => None,
        };
        let name = path.split('/').nth(2).unwrap_or_default();
        let provider = percent_decode_str(name).decode_utf8_lossy().into_owned();
        let prefix = ["/p/", name, "/"].concat();
        Self {
            dialect: known.unwrap_or(Dialect::Chat),
            is_read: known.is_some(),
            speaks: &[],
            provider: Some(provider),
            prefix,
        }
    }

    /// Returns the part of a path that is the provider's; `None` if it could leave the provider's base path.
    pub(super) fn path<'p>(&self, path: &'p str) -> Option<&'p str> {
        let own = match &*self.prefix {
            "" => path.strip_prefix("/v1beta/").or_else(|| path.strip_prefix("/v1/"))?,
            prefix => path.strip_prefix(prefix)?,
        };
        let leaves = |segment: &str| {
            let plain = segment.to_ascii_lowercase().replace("%2e", ".");
            matches!(plain.as_str(), "." | "..")
                || plain.contains("%2f")
                || plain.contains("%5c")
                || plain.contains('\\')
        };
        (!own.split('/').any(leaves)).then_some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_gets_of_a_path() {
        assert_eq!(Door::MESSAGES.path("/v1/messages/count_tokens"), Some("messages/count_tokens"));
        assert_eq!(Door::GEMINI.path("/v1beta/models/a:b"), Some("models/a:b"));
        let door = Door::of_provider("/p/sim/v1/files/a%20b");
        assert_eq!(door.path("/p/sim/v1/files/a%20b"), Some("v1/files/a%20b"));
        assert!(!door.is_read);
        let door = Door::of_provider("/p/my%20own/v1/files/%E9");
        assert_eq!(
            (door.provider.as_deref(), door.path("/p/my%20own/v1/files/%E9")),
            (Some("my own"), Some("v1/files/%E9"))
        );
        let door = Door::of_provider("/p/sim/v1/chat/completions");
        assert!(door.is_read && door.dialect == Dialect::Chat);
    }

    #[test]
    fn no_path_leaves_that_of_the_provider() {
        for path in ["/v1/../x", "/v1/a/%2E%2e/x", "/v1/.", "/v1/a%2f..%2fb", "/v1/a\\..\\b"] {
            assert_eq!(Door::MESSAGES.path(path), None, "{path}");
        }
    }
}
