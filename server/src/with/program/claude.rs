//! Claude Code.

use std::{ffi::OsString, fs};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{HEADER, Lookup, Site, TOKEN, Told};
use crate::with::upstream::{Upstream, Vendor::Anthropic};

/// The variable with the address that it calls.
pub(super) const ADDRESS: &str = "ANTHROPIC_BASE_URL";

/// The variable with further headers, one on each line.
pub(super) const HEADERS: &str = "ANTHROPIC_CUSTOM_HEADERS";

/// Returns where its calls go.
pub(super) fn upstreams(environment: &Lookup<'_>) -> Vec<Upstream> {
    let named = named(&settings(environment), environment);
    let named = named.map(|address| Upstream::named(Anthropic, &address, ""));
    vec![named.unwrap_or_else(|| Upstream::usual(Anthropic))]
}

/// Its status line shows what is waited for, unless its user has an own one.
pub(super) fn told(site: &Site<'_>, words: &[OsString]) -> Result<Told> {
    let (mut told, known) = (Told::default(), settings(site.environment));
    // With an address that is not the vendor's, it leaves the search of tools to whoever asks for it.
    if (site.environment)("ENABLE_TOOL_SEARCH").is_none() && named(&known, site.environment).is_none() {
        told.variables.push(("ENABLE_TOOL_SEARCH".to_owned(), "true".to_owned()));
    }
    if let (true, Some(token)) = (site.has_token, (site.environment)(TOKEN)) {
        let known = (site.environment)(HEADERS).map(|known| known + "\n").unwrap_or_default();
        told.variables.push((HEADERS.to_owned(), format!("{known}{HEADER}: {token}")));
    }
    let is_given = words.iter().any(|word| word.to_string_lossy().starts_with("--settings"));
    let is_printed = words.iter().any(|word| word == "-p" || word == "--print");
    let mut own = json!({});
    if !is_given && !is_printed && known.iter().all(|known| known["statusLine"].is_null()) {
        let everturn = std::env::current_exe()?;
        let command = format!("{} status --line", crate::host::quoted(&everturn.display().to_string()));
        own["statusLine"] = json!({ "type": "command", "command": command, "refreshInterval": 1 });
    }
    if address(&known).is_some() {
        ensure!(
            !is_given,
            "Claude Code's settings.json sets {ADDRESS}, which only --settings outweighs, and that is given: leave it out, or set the \
             variable in the environment instead"
        );
        own["env"] = json!({ ADDRESS: site.url });
    }
    if own != json!({}) {
        told.arguments = vec!["--settings".into(), own.to_string().into()];
    }
    Ok(told)
}

/// Returns its user's settings, the strongest first: of the project for this user, of the project, and of the user.
fn settings(environment: &Lookup<'_>) -> Vec<Value> {
    let home = || Some(format!("{}/.claude", environment("HOME")?));
    let user = environment("CLAUDE_CONFIG_DIR").or_else(home).map(|directory| directory + "/settings.json");
    let project = [".claude/settings.local.json", ".claude/settings.json"].map(str::to_owned);
    let files = project.into_iter().chain(user);
    files.filter_map(|file| serde_json::from_str(&fs::read_to_string(file).ok()?).ok()).collect()
}

/// Returns the address that its user has named.
fn named(settings: &[Value], environment: &Lookup<'_>) -> Option<String> {
    address(settings).or_else(|| environment(ADDRESS))
}

/// Returns the address that they name, which it prefers to that of its environment.
fn address(settings: &[Value]) -> Option<String> {
    let named = settings.iter().find_map(|settings| settings["env"][ADDRESS].as_str());
    named.filter(|address| !address.is_empty()).map(str::to_owned)
}
