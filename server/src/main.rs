//! Everturn: the server, its page and its terminal client.

mod assembly;
mod calendar;
mod capacity;
mod chat;
mod cli;
mod config;
mod conversations;
mod decision;
mod dice;
mod explain;
mod failure_summary;
mod greeting;
mod interrupt;
mod logging;
mod mcp;
mod page;
mod permission;
mod printer;
mod remote;
mod retention;
mod router;
mod running;
mod serve;
mod targets;
mod tools;
mod visible;
mod wording;

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::Result;
use clap::Parser as _;

use cli::{Cli, Command};
use config::Environment;

#[tokio::main]
async fn main() -> ExitCode {
    let command = Cli::parse().command();
    run(command).await.unwrap_or_else(|error| {
        // With nobody to tell it to, the exit code has to do.
        let _ = writeln!(io::stderr(), "everturn: {error:#}");
        ExitCode::FAILURE
    })
}

async fn run(command: Command) -> Result<ExitCode> {
    let environment = Environment::of_process();
    match command {
        Command::Serve(args) => {
            logging::start(&environment, "warn")?;
            serve::run(&args).await
        }
        Command::Chat(args) => {
            // A log line in the middle of an answer helps nobody; the answer itself says what fails.
            logging::start(&environment, "off")?;
            chat::run(&args).await
        }
        Command::Run(args) => {
            logging::start(&environment, "off")?;
            chat::run_once(&args).await
        }
        Command::Explain(args) => explain::run(&args, &environment),
        Command::Targets(args) => targets::run(&args, &environment).await,
        Command::Tools(args) => tools::run(&args, &environment).await,
        Command::Conversations(args) => conversations::run(&args, &environment).await,
    }
}
