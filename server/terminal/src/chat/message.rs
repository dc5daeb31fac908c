//! Messages that are not typed interactively.

use std::{
    io::{self, IsTerminal as _, Read, Write as _},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use everturn_orchestrator::MAX_MESSAGE;

use crate::args;

/// How long standard input may stay open before it is said that the message waits for its end.
const PATIENCE: Duration = Duration::from_secs(3);

/// The message of the command line, followed by piped input; `None` if it is to be typed.
///
/// # Errors
/// When there is no message and nobody to ask (`is_live`: output goes to a person), or it is too long.
pub(super) fn of(args: &args::Chat, is_live: bool) -> Result<Option<String>> {
    let stdin = io::stdin();
    let message = args.message();
    if !args.is_piped() && stdin.is_terminal() {
        return match message {
            Some(message) => check(message).map(Some),
            None if is_live => Ok(None),
            None => bail!("nothing to say: write everturn chat \"hello\", or pipe a message in"),
        };
    }
    with_input(message, &mut stdin.lock()).map(Some)
}

/// The message of a script's command, followed by piped input; `None` if an unfinished turn is to go on.
///
/// # Errors
/// When there is no message, or it is too long.
pub(super) fn of_script(args: &args::Chat) -> Result<Option<String>> {
    let (message, stdin) = (args.message(), io::stdin());
    match message {
        None if args.is_piped() => with_input(None, &mut stdin.lock()).map(Some),
        None if args.goes_on() => Ok(None),
        None => bail!(
            "nothing to say: write everturn run \"Summarize the news\", or everturn run - to pipe a message in"
        ),
        Some(message) if stdin.is_terminal() => check(message).map(Some),
        Some(message) => {
            let (ended, waits) = mpsc::channel::<()>();
            thread::spawn(move || {
                if waits.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    // Without standard error, nobody can be told.
                    let _ = writeln!(
                        io::stderr(),
                        "Reading standard input, which is appended to the message; < /dev/null leaves it out."
                    );
                }
            });
            let message = with_input(Some(message), &mut stdin.lock());
            drop(ended);
            message.map(Some)
        }
    }
}

/// Appends the input to a message, separated by an empty line.
fn with_input(message: Option<String>, input: &mut impl Read) -> Result<String> {
    let mut text = String::new();
    let most = u64::try_from(MAX_MESSAGE).unwrap_or(u64::MAX);
    let read = input.take(most + 1).read_to_string(&mut text);
    if text.len() > MAX_MESSAGE {
        bail!("standard input is too long: a message may have 1 MB; pipe in a part of it");
    }
    read.context("standard input is not UTF-8 text")?;
    match (message, text.trim_end()) {
        (None, "") => bail!("nothing to say: standard input is empty"),
        (None, text) => check(text.to_owned()),
        (Some(message), "") => check(message),
        (Some(message), text) => check(format!("{message}\n\n{text}")),
    }
}

fn check(message: String) -> Result<String> {
    if message.len() > MAX_MESSAGE {
        #[expect(clippy::cast_precision_loss, reason = "of a figure with two digits")]
        let megabytes = message.len() as f64 / MAX_MESSAGE as f64;
        bail!("message too long: {megabytes:.1} MB (limit 1 MB)");
    }
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(message: Option<&str>, mut input: &[u8]) -> Result<String> {
        with_input(message.map(str::to_owned), &mut input)
    }

    #[test]
    fn what_is_piped_follows_the_message() {
        for (message, input, expected) in [
            (Some("review this"), "+ a\n- b\n", "review this\n\n+ a\n- b"),
            (Some("hi"), "", "hi"),
            (None, "  indented\n\n", "  indented"),
        ] {
            assert_eq!(said(message, input.as_bytes()).unwrap(), expected);
        }
    }

    #[test]
    fn what_cannot_be_sent_is_told_apart() {
        let long = vec![b'a'; MAX_MESSAGE + 1];
        for (message, input, expected) in [
            (None, &b"\n"[..], "standard input is empty"),
            (None, &long, "standard input is too long"),
            (Some("review"), &long[..MAX_MESSAGE], "message too long: 1.0 MB (limit 1 MB)"),
            (None, b"\xff\xfe", "not UTF-8"),
        ] {
            let problem = said(message, input).unwrap_err().to_string();
            assert!(problem.contains(expected), "{problem}");
        }
        assert_eq!(said(None, &long[..MAX_MESSAGE]).unwrap().len(), MAX_MESSAGE);
    }
}
