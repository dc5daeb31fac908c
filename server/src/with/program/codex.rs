//! codex: told by `-c`, which overrides its configuration for one run.

use std::{ffi::OsString, fs, io, path::PathBuf};

use anyhow::Result;
use toml::Table;

use super::{HEADER, Lookup, Site, TOKEN, Told};
use crate::with::{
    own,
    upstream::{Upstream, Vendor::OpenAi},
};

/// Where calls go that are paid by a subscription.
const CHATGPT: &str = "https://chatgpt.com/backend-api/codex";

/// Where its calls go: to the provider of its configuration, else where the environment says, else to the vendor, by the way
/// its user has logged in.
pub(super) fn upstreams(environment: &Lookup<'_>) -> Vec<Upstream> {
    if let Some(Err(error)) = configuration(environment)
        && let Some(path) = path(environment)
    {
        own::unread(&path, &error, "a provider that it names is not known");
    }
    let configured = configured(environment).map(|(_, base_url)| base_url);
    let of_vendor = || Some(configuration(environment)?.ok()?.get("openai_base_url")?.as_str()?.to_owned());
    let base_url = configured.or_else(of_vendor).or_else(|| environment("OPENAI_BASE_URL"));
    let base_url = base_url.or_else(|| is_subscriber(environment).then(|| CHATGPT.to_owned()));
    vec![base_url.map_or_else(|| Upstream::usual(OpenAi), |base_url| Upstream { vendor: OpenAi, base_url })]
}

pub(super) fn told(site: &Site<'_>, _: &[OsString]) -> Result<Told> {
    let base_url = format!("{}/v1", site.url);
    let (name, mut overrides) = match configured(site.environment) {
        Some((name, _)) => {
            let base_url = format!("model_providers.{name}.base_url={base_url:?}");
            (name, vec![base_url])
        }
        None => {
            let key = match (site.environment)("OPENAI_API_KEY") {
                Some(_) => "env_key = \"OPENAI_API_KEY\"",
                None => "requires_openai_auth = true",
            };
            let overrides = vec![
                "model_provider=\"everturn\"".to_owned(),
                format!(
                    "model_providers.everturn={{ name = \"OpenAI\", base_url = {base_url:?}, wire_api = \"responses\", {key} }}"
                ),
            ];
            ("everturn".to_owned(), overrides)
        }
    };
    // With a login, bodies would be compressed, and nothing could be read of them.
    overrides.push("features.enable_request_compression=false".to_owned());
    if site.has_token {
        overrides.push(format!("model_providers.{name}.env_http_headers.{HEADER}={TOKEN:?}"));
    }
    let arguments = overrides.into_iter().flat_map(|value| ["-c".into(), value.into()]).collect();
    Ok(Told { arguments, ..Told::default() })
}

/// Returns the provider of its configuration, if that names another than the built-in one: name and base URL.
fn configured(environment: &Lookup<'_>) -> Option<(String, String)> {
    let config = configuration(environment)?.ok()?;
    let name = config.get("model_provider")?.as_str()?;
    let base_url = config.get("model_providers")?.get(name)?.get("base_url")?.as_str()?;
    Some((name.to_owned(), base_url.to_owned()))
}

/// Reads its configuration. An error quotes nothing of it, as it may have keys.
pub(super) fn configuration(environment: &Lookup<'_>) -> Option<io::Result<Table>> {
    let text = fs::read_to_string(path(environment)?);
    Some(text.and_then(|text| {
        text.parse().map_err(|error: toml::de::Error| io::Error::other(error.message().to_owned()))
    }))
}

fn path(environment: &Lookup<'_>) -> Option<PathBuf> {
    Some(home(environment)?.join("config.toml"))
}

/// Whether its user has logged in with a subscription. Only the form of the login is read.
fn is_subscriber(environment: &Lookup<'_>) -> bool {
    if environment("OPENAI_API_KEY").is_some() {
        return false;
    }
    let login = home(environment).and_then(|home| fs::read(home.join("auth.json")).ok());
    let login = login.and_then(|login| serde_json::from_slice::<serde_json::Value>(&login).ok());
    login.is_some_and(|login| login["OPENAI_API_KEY"].is_null() && login["tokens"].is_object())
}

fn home(environment: &Lookup<'_>) -> Option<PathBuf> {
    let named = environment("CODEX_HOME").map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(environment("HOME")?).join(".codex")))
}
