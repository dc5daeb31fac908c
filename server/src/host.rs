//! The server that the terminal client uses.

use anyhow::Result;
use everturn_console::Hidden;
use everturn_terminal::Host;

use crate::{
    cli,
    config::{Config, Environment},
    serve,
};

/// Returns the given server, else a private one inside this process.
pub(crate) async fn find(args: &cli::Chat, environment: &Environment<'_>) -> Result<Host> {
    let words = &args.words;
    if let Some(server) = &words.server {
        return Host::named(server, token(words.token.as_ref(), environment));
    }
    let config = Config::resolve(&args.flags(), environment)?;
    let mut off = config.off.clone();
    let private = serve::private(config).await?;
    off.extend(private.off);
    let notes = off.iter().map(|line| format!("Off: {line}")).collect();
    let name = words.model.clone().unwrap_or(private.default_model);
    Host::private(&private.url, private.token, name, notes)
}

/// Returns the access token of the command line, else of the environment.
pub(crate) fn token(given: Option<&String>, environment: &Environment<'_>) -> Option<Hidden> {
    let token = given.cloned().or_else(|| environment.get("EVERTURN_TOKEN"));
    token.as_deref().and_then(Hidden::new)
}
