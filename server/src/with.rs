//! `everturn with PROGRAM`: runs a program whose calls of a model's API pass through a server that waits failures out.
//!
//! The program is told by environment variables and arguments; no file of its user is changed. It keeps the terminal, its
//! own credential and its exit code.

mod child;
mod file;
mod own;
mod program;
mod upstream;

use std::{env, ffi::OsString, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context as _, Result, bail};
use axum::http::{Uri, uri::Scheme};
use everturn_terminal::Listed;
use tokio::{net::TcpStream, time::timeout};

use crate::{
    cli,
    config::{Config, Environment},
    private::Private,
    storage::Storage,
};
use child::Child;
use program::{Program, Site, TOKEN};

/// The variable by which a program's own commands find the server, such as a status line.
const SERVER: &str = "EVERTURN_SERVER";

/// How long a running server may take to accept a connection.
const SOON: Duration = Duration::from_secs(10);

/// Runs the program to its end.
pub(crate) async fn run(args: &cli::With, environment: &Environment<'_>) -> Result<ExitCode> {
    let Some((name, words)) = args.command.split_first() else { bail!("name the program to run") };
    let program = Program::of(name);
    let lookup = |variable: &str| environment.get(variable);
    let (url, private, own) = match args.server.clone().or_else(|| environment.get(SERVER)) {
        Some(url) => {
            let url = checked(&url)?;
            reach(&url).await?;
            (url, None, Vec::new())
        }
        None => {
            let own = (program.own)(&lookup, &env::current_dir().unwrap_or_default());
            let config = upstream::config(&program.upstreams(&lookup), &own);
            let config = Config::of_text(&config).context("cannot point the program at its provider")?;
            let private = Private::start(config, Storage::Memory, None).await?;
            (private.url.clone(), Some(private), own)
        }
    };
    let has_token = private.is_none() && environment.get(TOKEN).is_some();
    if has_token && !program.sends_token {
        let name = name.display();
        own::say(&format!(
            "{name} is not told {TOKEN}: if the server has the providers' keys, give it to {name} as its key"
        ));
    }
    // Without it, other terminals do not see what waits.
    let listed =
        private.as_ref().and_then(|private| Listed::new(&directory(environment)?, private.port).ok());
    let site = Site { url: &url, environment: &lookup, own: &own, has_token };
    let told = program.told(&site, words)?;
    let mut variables = told.variables;
    variables.push((SERVER.to_owned(), url.clone()));
    variables.extend(beside_proxies(&lookup));
    let arguments: Vec<OsString> = told.arguments.into_iter().chain(words.iter().cloned()).collect();
    let ended = Child::run(name, &arguments, &variables, told.file.as_ref()).await;
    drop(listed);
    if let Some(private) = private {
        private.close().await;
    }
    ended
}

/// Returns the directory that says where the servers inside this program are; `None` without a home directory.
pub(crate) fn directory(environment: &Environment<'_>) -> Option<PathBuf> {
    Some(environment.data_path()?.parent()?.join("with"))
}

/// Checks that somebody listens there: the program would try for minutes before it says so.
async fn reach(url: &str) -> Result<()> {
    let place = || {
        format!(
            "cannot reach the server at {url}: start one with `everturn serve`, or leave --server and EVERTURN_SERVER out"
        )
    };
    let address: Uri = url.parse().with_context(place)?;
    let host = address.host().with_context(place)?.trim_matches(['[', ']']);
    let usual = if address.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let connect = TcpStream::connect((host, address.port_u16().unwrap_or(usual)));
    timeout(SOON, connect).await.with_context(place)?.with_context(place)?;
    Ok(())
}

/// Returns the address of a server without a slash at its end.
fn checked(url: &str) -> Result<String> {
    if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
        bail!("--server must be the address of a running server, e.g. http://127.0.0.1:4777");
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// Keeps calls of this machine away from the proxy that the environment names, if any.
fn beside_proxies(environment: &dyn Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    const LOCAL: &str = "127.0.0.1,localhost";
    let names = ["NO_PROXY", "no_proxy"];
    let has_proxy = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
        .iter()
        .any(|name| environment(name).is_some());
    if !has_proxy {
        return Vec::new();
    }
    let known = names.iter().find_map(|name| environment(name));
    let hosts = known.map_or_else(|| LOCAL.to_owned(), |known| format!("{known},{LOCAL}"));
    names.iter().map(|name| ((*name).to_owned(), hosts.clone())).collect()
}
