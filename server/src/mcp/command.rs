//! `everturn mcp`: logs in at MCP servers, and out.

use std::{io::stdin, net::Ipv4Addr, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail};
use axum::{
    Router,
    extract::State,
    http::{StatusCode, Uri},
    response::Response,
    routing::get,
};
use everturn_mcp::{Connection, Login, LoginError, ServerConfig, log_out};
use everturn_terminal::printer::{self, Ink, Printer};
use everturn_transport_http::serve;
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::logins::{CALLBACK, is_of, page};
use crate::{
    capacity::Capacity,
    cli::{Mcp, McpAction},
    config::{Config, Environment, LoginFile},
};

/// How long a login may take.
const TIME: Duration = Duration::from_secs(15 * 60);

/// How long the browser may take to get its last page.
const GOODBYE: Duration = Duration::from_secs(1);

const GAP: &str = "  ";

/// Runs the command.
pub(crate) async fn run(args: Mcp, environment: &Environment<'_>) -> Result<ExitCode> {
    let (file, servers, off) = Config::mcp(&args.flags(), environment)?;
    match args.action {
        McpAction::List => list(&servers, &off),
        McpAction::Login { name } => login(named(&name, &servers, &off)?, &file).await,
        McpAction::Logout { name } => {
            let had_one = log_out(named(&name, &servers, &off)?)?;
            let mut out = Printer::of_stdout();
            let said = if had_one { "Logged out: its token is removed." } else { "There was no login." };
            out.line(Ink::Plain, said)?;
            out.flush()?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn named<'s>(name: &str, servers: &'s [ServerConfig], off: &[String]) -> Result<&'s ServerConfig> {
    if let Some(server) = servers.iter().find(|server| server.name == name) {
        return Ok(server);
    }
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    match names.is_empty() && off.is_empty() {
        true => bail!("there is no MCP server: name one in the configuration, with its `url`, under [[mcp]]"),
        false => {
            bail!("there is no MCP server {name:?}; known: {}", [names.join(", "), off.join("; ")].join(" "))
        }
    }
}

fn list(servers: &[ServerConfig], off: &[String]) -> Result<ExitCode> {
    let mut out = Printer::of_stdout();
    let widest = servers.iter().map(|server| server.name.len()).max().unwrap_or_default();
    for server in servers {
        let state = match &server.connection {
            Connection::Command(_) => "a program".to_owned(),
            Connection::Http(endpoint) => match server.logins.read(&server.name, &endpoint.url) {
                Ok(Some(_)) => "logged in".to_owned(),
                Ok(None) => "no login".to_owned(),
                Err(why) => why,
            },
        };
        out.line(Ink::Plain, &format!("{}{GAP}{state}", printer::pad(&server.name, widest)))?;
    }
    for line in off {
        out.line(Ink::Warning, &format!("Off: {line}"))?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

async fn login(server: &ServerConfig, file: &LoginFile) -> Result<ExitCode> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("cannot listen on this machine")?;
    let own = format!("http://{}", listener.local_addr()?);
    let login = Login::begin(server, &format!("{own}{CALLBACK}")).await?;
    let mut out = Printer::of_stdout();
    out.line(Ink::Plain, &format!("Log in at {} in a browser:", server.name))?;
    out.line(Ink::Plain, &format!("\n{}\n", login.url()))?;
    out.line(Ink::Faint, "If it ends on a page that it cannot show, paste that page's address here.")?;
    out.flush()?;
    let (ended, mut ends) = mpsc::channel(1);
    let answer = Arc::new(Answer { own, state: login.state().to_owned(), ended: ended.clone() });
    let app = Router::new().route(CALLBACK, get(arrived)).with_state(answer);
    let (close, closed) = oneshot::channel::<()>();
    let limits = Capacity::of_process().connections;
    let serving = tokio::spawn(serve(listener, app, limits, async { drop(closed.await) }));
    // Standard input cannot be read without a thread, which the process does not wait for.
    std::thread::spawn(move || {
        for line in stdin().lines().map_while(Result::ok) {
            let line = line.trim().to_owned();
            if !line.is_empty() && ended.blocking_send((line, None)).is_err() {
                return;
            }
        }
    });
    let Ok(Some((place, browser))) = timeout(TIME, ends.recv()).await else {
        bail!("nobody logged in within {} minutes: begin again", TIME.as_secs() / 60);
    };
    let done = login.finish(&place).await;
    if let Some(browser) = browser {
        // The browser may have gone.
        let _ = browser.send(done.as_ref().err().map(ToString::to_string));
    }
    drop(close);
    // The browser gets its page before the process ends.
    let _ = timeout(GOODBYE, serving).await;
    match done {
        Ok(()) => {
            let kept = file.path().display();
            out.line(
                Ink::Good,
                &format!("Logged in. The token is kept in {kept}, which only you can read."),
            )?;
            out.line(Ink::Plain, "Servers that use it connect now; they need no restart.")?;
            out.flush()?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            out.line(Ink::Bad, &format!("Not logged in: {error}"))?;
            out.flush()?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Where the login ends, and how the browser is told of that.
struct Answer {
    own: String,
    state: String,
    ended: mpsc::Sender<End>,
}

/// The address on which a browser ended; and where to tell it why not, if it is here.
type End = (String, Option<oneshot::Sender<Option<String>>>);

async fn arrived(State(answer): State<Arc<Answer>>, uri: Uri) -> Response {
    let failed = |why: &str| page(StatusCode::BAD_REQUEST, "Not logged in", why);
    if !is_of(&uri, &answer.state) {
        return failed(&LoginError::Elsewhere.to_string());
    }
    let (tell, told) = oneshot::channel();
    if answer.ended.send((format!("{}{uri}", answer.own), Some(tell))).await.is_err() {
        return failed("the command that began this login has ended");
    }
    match told.await {
        Ok(None) => page(StatusCode::OK, "Logged in", "You can close this page, and return to the terminal."),
        Ok(Some(why)) => failed(&why),
        Err(_) => failed("the command that began this login has ended"),
    }
}
