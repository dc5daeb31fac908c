//! `everturn calls` and `everturn status`: the calls that pass through running servers.

mod order;
mod servers;

use std::{
    io::{self, IsTerminal as _, Write},
    mem,
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Error, Result, anyhow, bail};
use everturn_wire::{CallInfo, CallPhase};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use unicode_width::UnicodeWidthStr as _;

use crate::{
    args::Calls,
    printer::{self, Ink, Printer},
    running, wording,
};
use servers::Told;

pub use servers::{Listed, Servers};

const GAP: &str = "  ";
const HEAD: [&str; 4] = ["ID", "PROGRAM", "MODEL", "ASKED"];

/// How often the calls are asked for again.
const REFRESH: Duration = Duration::from_secs(1);

/// Maximum length of what a call was told, in characters.
const REASON: usize = 100;

/// How long a server that nobody named may take to answer: it is on this machine.
const PATIENCE: Duration = Duration::from_secs(3);

/// The same for a status line: whoever shows it asks again soon.
const SOON: Duration = Duration::from_millis(400);

/// Moves the cursor to the top, and clears what is below it.
const TOP: &str = "\u{1b}[H\u{1b}[J";

/// Prints the calls of servers, again and again if that is wanted, or gives an order to one of them.
///
/// # Errors
/// When there is no server that reports its calls, or an order does not mean exactly one call.
pub async fn run(args: &Calls, servers: &Servers) -> Result<ExitCode> {
    if args.watch && (args.order.is_some() || !io::stdout().is_terminal()) {
        bail!("--watch only lists calls, and needs a terminal: leave it out");
    }
    if let Some(order) = &args.order {
        return order::give(args, servers, order).await;
    }
    loop {
        let (told, problem) = servers.ask(PATIENCE).await?;
        if args.watch {
            write!(io::stdout(), "{TOP}")?;
        } else if told.is_empty() {
            return Err(problem.unwrap_or_else(none));
        }
        let body = if args.json { body(&told)? } else { Vec::new() };
        let ended = running::write(args.json, &body, |printer| {
            table(&all(&told), now(), printer)?;
            pages(&told, printer)
        })?;
        if let Some(problem) = problem {
            // Without standard error, nobody can be told.
            let _ = writeln!(io::stderr(), "{problem:#}");
        }
        if !args.watch {
            return Ok(ended);
        }
        sleep(REFRESH).await;
    }
}

/// Prints one line about the calls that wait, or nothing; also if there is no server.
///
/// # Errors
/// When standard output cannot be written.
pub async fn line(servers: &Servers) -> Result<ExitCode> {
    if let Ok(Ok((told, _))) = timeout(2 * SOON, servers.ask(SOON)).await
        && let Some(line) = summary(&all(&told), now())
    {
        return printer::unless_closed(Ok(writeln!(io::stdout(), "{line}").map(|()| ExitCode::SUCCESS)?));
    }
    Ok(ExitCode::SUCCESS)
}

fn none() -> Error {
    anyhow!("no server runs on this machine, and no `everturn with`: start one, or name one with --server")
}

/// All calls, the oldest first.
fn all(told: &[Told]) -> Vec<CallInfo> {
    let mut all: Vec<_> = told.iter().flat_map(|told| told.calls.iter().cloned()).collect();
    all.sort_by_key(|call| call.started_at);
    all
}

/// The calls as the servers told them, with what this program does not know.
fn body(told: &[Told]) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    for told in told {
        let mut body: Value = serde_json::from_slice(&told.body)?;
        all.extend(body["calls"].as_array_mut().map(mem::take).unwrap_or_default());
    }
    Ok(serde_json::to_vec(&json!({ "calls": all }))?)
}

/// Prints where servers inside `everturn with` show their calls, too.
fn pages(told: &[Told], printer: &mut Printer<impl Write>) -> Result<ExitCode> {
    for told in told.iter().filter(|told| told.is_listed) {
        let line = format!("Page of an `everturn with`: {}", told.address.call(""));
        printer.line(Ink::Faint, &line)?;
    }
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn table(calls: &[CallInfo], now: u64, printer: &mut Printer<impl Write>) -> Result<()> {
    if calls.is_empty() {
        printer.line(Ink::Faint, "No calls.")?;
    } else {
        let programs: Vec<String> = calls.iter().map(program).collect();
        let rows = programs
            .iter()
            .zip(calls)
            .map(|(program, call)| [order::shown(&call.id), program, &*call.model, &*call.target]);
        let rows: Vec<[&str; 4]> = rows.collect();
        let widest = |column: usize| {
            rows.iter().map(|row| row[column].width()).max().unwrap_or(0).max(HEAD[column].len())
        };
        let widths = [0, 1, 2, 3].map(widest);
        let cells = |row: &[&str; 4]| -> String {
            row.iter().zip(widths).map(|(text, width)| printer::pad(text, width) + GAP).collect()
        };
        printer.line(Ink::Faint, &format!("{}STATE", cells(&HEAD)))?;
        for (call, row) in calls.iter().zip(&rows) {
            printer.write(Ink::Plain, &cells(row))?;
            let ink = if call.phase == CallPhase::Waiting { Ink::Warning } else { Ink::Good };
            printer.line(ink, &(state(call, now) + &reason(call) + left_alone(call)))?;
        }
    }
    Ok(())
}

/// The program, and for the administrator whose it is.
fn program(call: &CallInfo) -> String {
    let program = call.program.as_deref().unwrap_or("?");
    call.caller.as_ref().map_or_else(|| program.to_owned(), |caller| format!("{program} ({caller})"))
}

/// What a call is doing, and why.
fn state(call: &CallInfo, now: u64) -> String {
    match call.phase {
        CallPhase::Waiting if call.shared == Some(true) => {
            format!("waits at most {}{}", left(call, now), why(call))
        }
        CallPhase::Waiting => format!("waits {}{}", left(call, now), why(call)),
        CallPhase::Asking if call.retries > 0 => format!("asks again{}", why(call)),
        CallPhase::Asking => "asks".to_owned(),
        CallPhase::Answering => "is answered".to_owned(),
        CallPhase::Ended => "is over".to_owned(),
        CallPhase::Kept => "answered; nobody has taken the answer yet".to_owned(),
        _ => "unknown".to_owned(),
    }
}

fn left(call: &CallInfo, now: u64) -> String {
    let until = call.next_at.unwrap_or(now);
    wording::span(until.saturating_sub(now).div_ceil(1000) * 1000)
}

/// Why it waits, and for which retry.
fn why(call: &CallInfo) -> String {
    let category = call.category.map(wording::category);
    let tried = (call.retries > 0).then(|| format!("{} retry", wording::ordinal(call.retries.into())));
    let words: Vec<String> = category.into_iter().chain(tried).collect();
    if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) }
}

/// That the program which made a call has gone. Of an answer that is kept, its state says so.
fn left_alone(call: &CallInfo) -> &'static str {
    if call.listeners == 0 && call.phase != CallPhase::Kept { "; its program is gone" } else { "" }
}

/// What a call that waits was told, in parentheses: also which limit of its caller is used up.
fn reason(call: &CallInfo) -> String {
    let told = call.because.as_ref().filter(|_| call.phase == CallPhase::Waiting);
    told.map_or_else(String::new, |told| format!(" ({})", wording::one_line(&wording::brief(told), REASON)))
}

/// One line about the call that waits longest; `None` if none waits.
fn summary(calls: &[CallInfo], now: u64) -> Option<String> {
    let waiting: Vec<&CallInfo> = calls.iter().filter(|call| call.phase == CallPhase::Waiting).collect();
    let longest = waiting.iter().max_by_key(|call| call.next_at)?;
    let more = match waiting.len() {
        1 => String::new(),
        all => format!(" (and {} more)", all - 1),
    };
    // It names the model as the request does.
    let target = wording::one_line(&longest.target, REASON);
    Some(format!("everturn: {target} {}{more}", state(longest, now)))
}

#[cfg(test)]
mod tests {
    use everturn_wire::Category;

    use super::*;

    pub(super) fn call(phase: CallPhase) -> CallInfo {
        CallInfo {
            id: "call-1".into(),
            caller: None,
            program: Some("claude-cli/2".into()),
            session: None,
            model: "sonnet".into(),
            target: "anthropic/sonnet".into(),
            phase,
            started_at: 0,
            next_at: None,
            retries: 0,
            waited_ms: 0,
            because: None,
            category: None,
            shared: None,
            listeners: 1,
        }
    }

    fn waiting(next_at: u64) -> CallInfo {
        let category = Some(Category::Overloaded);
        CallInfo { next_at: Some(next_at), retries: 3, category, ..call(CallPhase::Waiting) }
    }

    #[test]
    fn the_line_of_a_status_has_no_escapes_of_a_callers_model() {
        let call = CallInfo { target: "p/x\u{1b}]0;no\u{7}\ny".into(), ..waiting(60_000) };
        let line = summary(&[call], 0).unwrap();
        assert!(line.starts_with("everturn: p/x") && !line.contains(char::is_control), "{line:?}");
    }

    #[test]
    fn a_table_says_what_each_call_does() {
        let calls = [
            waiting(66_500),
            call(CallPhase::Asking),
            CallInfo { program: None, ..call(CallPhase::Answering) },
            CallInfo { listeners: 0, ..call(CallPhase::Asking) },
            CallInfo { listeners: 0, ..call(CallPhase::Kept) },
            CallInfo { caller: Some("ann".into()), ..call(CallPhase::Asking) },
            CallInfo {
                because: Some("2 calls at once\nare used up".into()),
                shared: Some(true),
                ..waiting(10_000)
            },
        ];
        let mut out = Vec::new();
        let mut printer = Printer::plain(&mut out, None);
        table(&calls, 1_000, &mut printer).unwrap();
        printer.flush().unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "ID      PROGRAM             MODEL   ASKED             STATE\n\
             call-1  claude-cli/2        sonnet  anthropic/sonnet  waits 1 min 6 s: overloaded, 3rd retry\n\
             call-1  claude-cli/2        sonnet  anthropic/sonnet  asks\n\
             call-1  ?                   sonnet  anthropic/sonnet  is answered\n\
             call-1  claude-cli/2        sonnet  anthropic/sonnet  asks; its program is gone\n\
             call-1  claude-cli/2        sonnet  anthropic/sonnet  answered; nobody has taken the answer yet\n\
             call-1  claude-cli/2 (ann)  sonnet  anthropic/sonnet  asks\n\
             call-1  claude-cli/2        sonnet  anthropic/sonnet  waits at most 9 s: overloaded, 3rd retry (2 calls at once are used up)\n",
        );
        let mut out = Vec::new();
        let mut printer = Printer::plain(&mut out, None);
        table(&[], 0, &mut printer).unwrap();
        printer.flush().unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "No calls.\n");
    }

    #[test]
    fn a_line_is_about_the_longest_wait() {
        assert_eq!(summary(&[call(CallPhase::Asking)], 0), None);
        let line = summary(&[waiting(5_000), waiting(9_000)], 0).unwrap();
        assert_eq!(line, "everturn: anthropic/sonnet waits 9 s: overloaded, 3rd retry (and 1 more)");
    }
}
