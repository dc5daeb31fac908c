//! Prints answers of a running server, as a table or as JSON.

use std::{
    io::{BufWriter, Stdout, Write},
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;

use crate::{
    Hidden,
    args::Running,
    printer::{self, Ink, Printer},
    remote::{Address, Clock, Remote},
    visible,
};

/// Requests `path` from a server and prints the answer. `what`: what it reports, for an error message.
pub(crate) async fn print<T: DeserializeOwned>(
    args: &Running,
    token: Option<&Hidden>,
    (path, what): (&str, &str),
    table: impl FnOnce(&T, Clock, &mut Printer<BufWriter<Stdout>>) -> Result<ExitCode>,
) -> Result<ExitCode> {
    let address = Address::parse(&args.server)?;
    let answer = Remote::new(&address, token)?.get(path).await?;
    let answer = answer.with_context(|| {
        format!("{} is not an everturn server, or one too old to report {what}", args.server)
    })?;
    let told: T = answer.read()?;
    write(args.json, &answer.body, |printer| table(&told, answer.clock, printer))
}

/// Prints the body of an answer, which is JSON, or what `table` does.
pub(crate) fn write(
    as_json: bool,
    body: &[u8],
    table: impl FnOnce(&mut Printer<BufWriter<Stdout>>) -> Result<ExitCode>,
) -> Result<ExitCode> {
    let mut printer = Printer::of_stdout();
    let written = match as_json {
        true => json(body, &mut printer),
        false => table(&mut printer),
    };
    printer::unless_closed(written)
}

fn json(body: &[u8], printer: &mut Printer<impl Write>) -> Result<ExitCode> {
    printer.line(Ink::Plain, &visible::json(str::from_utf8(body)?))?;
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}
