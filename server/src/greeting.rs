//! The message that the server prints at startup.

use std::{fmt::Write as _, net::SocketAddr};

use everturn_orchestrator::Orchestrator;
use everturn_terminal::{source_state, visible::visible};

use crate::{
    config::{Config, Route},
    permission, policy,
    providers::Providers,
    traces::Exporting,
};

/// Maximum number of models listed.
const MODELS: usize = 6;

/// What the storage has.
pub(crate) struct Kept {
    /// Where conversations are, if that is a database.
    pub(crate) database: Option<String>,
    /// The number of turns that continue.
    pub(crate) resumed: usize,
}

/// Returns the message: URLs, models, usage.
pub(crate) fn of(
    config: &Config,
    providers: &Providers,
    address: SocketAddr,
    orchestrator: &Orchestrator,
    program: &str,
    Kept { database, resumed }: Kept,
    exporting: Option<&Exporting>,
) -> String {
    let models = &orchestrator.models();
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let near = match address.ip().is_unspecified() {
        true => format!("{scheme}://127.0.0.1:{}", address.port()),
        false => format!("{scheme}://{address}"),
    };
    let asks = config.token.is_some() || config.known_callers().is_ok_and(|known| !known.is_empty());
    let token = if asks { "  (token required)" } else { "" };
    let mut text = format!("Everturn {} on {scheme}://{address}{token}\n\n", env!("CARGO_PKG_VERSION"));
    let mut say = |what: &str, text_of_it: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {what:<8}{text_of_it}");
    };
    let is_demo = providers.all().is_empty();
    say("models", &names(is_demo, models));
    for Route { name, targets, policy, .. } in &config.routes {
        say(
            "route",
            &format!("route/{name}: {}  ({})", targets.join(", then "), policy.name().unwrap_or_default()),
        );
    }
    for source in &orchestrator.tools().sources {
        say("tools", &visible(&format!("{}: {}", source.name, source_state(source))));
    }
    say("page", &format!("open {near} in a browser"));
    let key = if asks { "EVERTURN_TOKEN=... " } else { "" };
    say("chat", &format!("{key}{program} chat --server {near} \"hello\""));
    say("openai", &format!("{near}/v1 is the base URL for OpenAI clients"));
    if let Some(data) = config.data.as_ref().map(|data| data.display().to_string()).or(database) {
        let unsealed = match resumed {
            0 => String::new(),
            1 => "  (1 turn resumed)".to_owned(),
            many => format!("  ({many} turns resumed)"),
        };
        say("data", &format!("{data}{unsealed}"));
    }
    if let Some(cluster) = &config.cluster {
        let taken = if resumed > 0 { format!("  ({resumed} turns taken over)") } else { String::new() };
        say("cluster", &format!("{}{taken}", cluster.shown));
    }
    if let Some(file) = &config.file {
        say("config", &file.display().to_string());
    }
    if let Some(exporting) = exporting {
        say("traces", &exporting.described());
    }
    config.off.iter().for_each(|line| say("off", line));
    let warnings = config.warnings.iter().cloned().chain(permission::warnings(config));
    warnings.chain(policy::warnings(orchestrator)).for_each(|line| say("warning", &line));
    say("stop", "Ctrl-C");
    if is_demo {
        text.push_str(
            "\nNo provider is configured: the built-in model shows how a turn survives failures.\n\
             To talk to a real one, paste a key on the page, or run: everturn provider add\n\
             To use a coding agent through Everturn, run: everturn with claude\n\
             OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, and a configuration file, work too (see --help).\n",
        );
    }
    text.push('\n');
    text
}

fn names(is_demo: bool, models: &[String]) -> String {
    let shown = models.iter().take(MODELS).map(String::as_str).collect::<Vec<_>>().join(", ");
    match models.len() {
        _ if is_demo => format!("{shown}  (fails a few times, then answers)"),
        0 => "none yet: the providers' lists cannot be read".to_owned(),
        1..=MODELS => shown,
        all => format!("{shown} and {} more", all - MODELS),
    }
}
