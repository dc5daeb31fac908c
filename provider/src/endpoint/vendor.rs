//! The vendor of an endpoint, as in OpenTelemetry's `gen_ai.provider.name`.

use url::Url;

/// Vendors by host name suffix.
const BY_HOST: &[(&str, &str)] = &[
    ("api.openai.com", "openai"),
    ("openai.azure.com", "azure.ai.openai"),
    ("services.ai.azure.com", "azure.ai.inference"),
    ("api.anthropic.com", "anthropic"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("amazonaws.com", "aws.bedrock"),
    ("api.mistral.ai", "mistral_ai"),
    ("api.deepseek.com", "deepseek"),
    ("api.groq.com", "groq"),
    ("api.x.ai", "x_ai"),
    ("api.perplexity.ai", "perplexity"),
    ("api.cohere.com", "cohere"),
    ("openrouter.ai", "openrouter"),
];

/// Returns the vendor of a known host, else `other`, because many servers implement another vendor's API.
pub(super) fn of(base: &Url, other: &'static str) -> &'static str {
    let host = base.host_str().unwrap_or_default();
    let is_of =
        |end: &str| host.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with(['.', '-']));
    BY_HOST.iter().find(|(end, _)| is_of(end)).map_or(other, |(_, name)| name)
}

/// Returns the base URL without possible secrets.
pub(super) fn shown(base: &Url) -> String {
    let mut shown = base.clone();
    // A URL without a host has neither.
    let _ = (shown.set_username(""), shown.set_password(None));
    shown.set_query(None);
    shown.set_fragment(None);
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendor_is_recognized_by_its_host() {
        for (base, name) in [
            ("https://api.openai.com/v1", "openai"),
            ("https://mine.openai.azure.com/openai", "azure.ai.openai"),
            ("https://europe-west1-aiplatform.googleapis.com/v1", "gcp.vertex_ai"),
            ("https://notapi.openai.com/v1", "other"),
            ("http://localhost:11434/v1", "other"),
        ] {
            assert_eq!(of(&base.parse().unwrap(), "other"), name, "{base}");
        }
    }

    #[test]
    fn no_credential_is_shown() {
        let base = "https://user:hunter2@example.org:8443/v1?key=hunter2#hunter2".parse().unwrap();
        assert_eq!(shown(&base), "https://example.org:8443/v1");
    }
}
