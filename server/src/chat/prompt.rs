//! Lines that a person types, edited by the terminal.

use std::{
    io::{self, BufRead as _, Write as _},
    thread,
};

use tokio::sync::oneshot;

/// Asks for a line; none at the end of the input.
///
/// It is read on a thread of its own, which the end of the program does not wait for.
pub(super) async fn line() -> io::Result<Option<String>> {
    let (done, answer) = oneshot::channel();
    thread::Builder::new().name("prompt".to_owned()).spawn(move || {
        // Nobody may be waiting any more.
        let _ = done.send(ask());
    })?;
    answer.await.unwrap_or(Ok(None))
}

fn ask() -> io::Result<Option<String>> {
    let mut out = io::stdout();
    out.write_all(b"> ")?;
    out.flush()?;
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line)?;
    Ok((read > 0).then_some(line))
}
