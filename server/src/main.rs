//! Everturn: the server, its page and its terminal client.

#[cfg(not(all(feature = "mcp", feature = "nats", feature = "otlp", feature = "postgres")))]
mod absent;
mod assembly;
mod audit;
mod body;
mod callers;
mod capacity;
mod cli;
mod config;
mod dice;
mod explain;
mod greeting;
mod host;
mod logging;
mod manual;
mod mcp;
mod page;
mod permission;
mod policy;
mod private;
mod provider;
mod providers;
mod relay;
mod retention;
mod router;
mod serve;
mod storage;
mod titles;
mod tls;
mod token;
mod traces;
mod watch;
mod with;

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::Result;
use clap::Parser as _;
use everturn_terminal::{Interrupt, Servers};
use futures_util::future::LocalBoxFuture;

use cli::{Cli, Command};
use config::{Environment, required_report};
use private::Private;

/// Gives memory back to the system after a burst, which glibc's allocator does not if small blocks lie between.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let command = Cli::parse().command();
    boxed(command).await.unwrap_or_else(|error| {
        // If standard error is closed, only the exit code remains.
        let _ = writeln!(io::stderr(), "everturn: {error:#}");
        ExitCode::FAILURE
    })
}

/// Boxed, so that the code of all commands is compiled once and not into each way in which the runtime can poll it.
fn boxed(command: Command) -> LocalBoxFuture<'static, Result<ExitCode>> {
    Box::pin(run(command))
}

async fn run(command: Command) -> Result<ExitCode> {
    let environment = Environment::of_process();
    match command {
        Command::Serve(args) => {
            // What a turn waits for is never a secret of the log.
            logging::start(&environment, "warn,everturn_orchestrator::turn_log=info")?;
            serve::run(&args).await
        }
        Command::Chat(args) => {
            // Log lines would disturb an answer, which reports failures itself.
            logging::start(&environment, "off")?;
            let mut private = None;
            let find = async || host::find(&args, &environment, &mut private).await;
            let ended = everturn_terminal::chat(&args.words, find).await;
            close(private).await;
            ended
        }
        Command::Run(args) => {
            logging::start(&environment, "off")?;
            let report = args.report.as_deref().map(required_report).transpose()?;
            let chat = &args.chat;
            let mut private = None;
            let find = async || host::find(chat, &environment, &mut private).await;
            let ended = everturn_terminal::run_once(&chat.words, report, find).await;
            close(private).await;
            ended
        }
        Command::With(args) => {
            // The terminal is the program's.
            logging::start(&environment, "off")?;
            with::run(&args, &environment).await
        }
        Command::Explain(args) => explain::run(&args, &environment),
        Command::Targets(args) => {
            everturn_terminal::targets(&args, host::token(args.token.as_ref(), &environment).as_ref()).await
        }
        Command::Provider(args) => {
            logging::start(&environment, "off")?;
            provider::run(args, &environment).await
        }
        Command::Mcp(args) => {
            logging::start(&environment, "off")?;
            mcp::run(args, &environment).await
        }
        Command::Token(args) => token::run(args, &environment),
        Command::Audit(args) => audit::list(&args, &environment),
        Command::Usage(args) => {
            let token = host::token(args.running.token.as_ref(), &environment);
            everturn_terminal::usage(&args, token.as_ref()).await
        }
        Command::Calls(args) => {
            let servers = servers(args.server.as_ref(), args.token.as_ref(), &environment);
            everturn_terminal::calls(&args, &servers).await
        }
        Command::Status(args) => {
            let servers = servers(args.server.as_ref(), args.token.as_ref(), &environment);
            everturn_terminal::status_line(&servers).await
        }
        Command::Tools(args) => {
            everturn_terminal::tools(&args, host::token(args.token.as_ref(), &environment).as_ref()).await
        }
        Command::Health(args) => {
            let args = args.running(&environment)?;
            everturn_terminal::health(&args, host::token(args.token.as_ref(), &environment).as_ref()).await
        }
        Command::WatchPrograms => {
            // Requests to end a service go to all its processes; this one ends with the server.
            let _ignored = Interrupt::listen()?;
            everturn_mcp::watch_over(io::stdin().lock());
            Ok(ExitCode::SUCCESS)
        }
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { directory } => manual::pages(&directory),
        Command::Conversations(args) => {
            let find = async || storage::source(&args.flags(), &environment, args.action.deletes()).await;
            let token = host::token(args.token.as_ref(), &environment);
            let server = args.server.as_deref().map(|server| (server, token.as_ref()));
            everturn_terminal::conversations(&args.action, server, find).await
        }
    }
}

/// Returns the servers that are asked for their calls.
fn servers(named: Option<&String>, token: Option<&String>, environment: &Environment<'_>) -> Servers {
    let (token, listed) = (host::token(token, environment), with::directory(environment));
    Servers { named: named.cloned(), token, listed }
}

/// Ends the server inside this process, if there is one.
async fn close(private: Option<Private>) {
    if let Some(private) = private {
        private.close().await;
    }
}
