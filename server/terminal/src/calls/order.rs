//! `everturn calls retry` and `everturn calls give-up`.

use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow, bail};
use everturn_wire::{CallInfo, CallOrdered, CallPhase};

use super::{PATIENCE, Servers, all, none, servers::Told};
use crate::{
    args::{CallOrder, Calls},
    printer::Ink,
    remote::{Remote, encoded},
    running,
};

/// How much of an id is shown: its end, as ids of calls of the same minute begin alike.
const SHOWN: usize = 6;

/// Gives an order to a call.
pub(super) async fn give(args: &Calls, servers: &Servers, order: &CallOrder) -> Result<ExitCode> {
    let (asked, path, done) = match order {
        CallOrder::Retry { id } => (id, "retry-now", "is tried again"),
        CallOrder::GiveUp { id } => (id, "give-up", "is given up"),
    };
    let (told, problem) = servers.ask(PATIENCE).await?;
    if told.is_empty() || (problem.is_some() && asked.is_none()) {
        return Err(problem.unwrap_or_else(none));
    }
    let calls = all(&told);
    let call = one(&calls, asked.as_deref())?;
    let has_it = |told: &&Told| told.calls.iter().any(|known| known.id == call.id);
    let server = told.iter().find(has_it).context("no server has the call")?;
    let answer = Remote::new(&server.address, servers.token.as_ref().filter(|_| !server.is_listed))?
        .post(&format!("/calls/{}/{path}", encoded(&call.id)))
        .await?;
    let answer = answer.ok_or_else(|| anyhow!("the call {} is over", shown(&call.id)))?;
    answer.read::<CallOrdered>()?;
    running::write(args.json, &answer.body, |printer| {
        let line = format!("{} of {} {done}.", shown(&call.id), call.program.as_deref().unwrap_or("?"));
        printer.line(Ink::Plain, &line)?;
        printer.flush()?;
        Ok(ExitCode::SUCCESS)
    })
}

/// The end of an id.
pub(super) fn shown(id: &str) -> &str {
    id.char_indices().nth_back(SHOWN - 1).map_or(id, |(at, _)| &id[at..])
}

/// The call whose id ends with what was asked for, or else the only one that waits.
fn one<'a>(calls: &'a [CallInfo], asked: Option<&str>) -> Result<&'a CallInfo> {
    let is_meant = |call: &&CallInfo| match asked {
        Some(end) => !end.is_empty() && call.id.ends_with(end),
        None => call.phase == CallPhase::Waiting,
    };
    let meant: Vec<&CallInfo> = calls.iter().filter(is_meant).collect();
    match (meant.as_slice(), asked) {
        ([one], _) => Ok(one),
        ([], Some(end)) => bail!("no call's id ends with {end:?}: `everturn calls` lists them"),
        ([], None) => bail!("no call waits"),
        (_, Some(end)) => bail!("the ids of {} calls end with {end:?}: give more of it", meant.len()),
        (_, None) => bail!("{} calls wait: say which, by the ID that `everturn calls` shows", meant.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::call, *};

    #[test]
    fn a_call_is_meant_by_the_end_of_its_id_or_as_the_only_one_that_waits() {
        let named = |id: &str, phase| CallInfo { id: id.to_owned(), ..call(phase) };
        let calls = [
            named("call-1a2b3c", CallPhase::Waiting),
            named("call-9d2b3c", CallPhase::Answering),
            named("call-7", CallPhase::Kept),
        ];
        let id = |asked| one(&calls, asked).map(|call| call.id.clone()).map_err(|error| error.to_string());
        assert_eq!(id(Some(shown("call-1a2b3c"))), Ok("call-1a2b3c".to_owned()));
        assert_eq!(id(None), Ok("call-1a2b3c".to_owned()));
        assert!(id(Some("2b3c")).unwrap_err().contains("2 calls"));
        assert!(id(Some("x")).unwrap_err().contains("`everturn calls` lists them"));
        assert!(id(Some("")).is_err());
        assert_eq!(one(&calls[1..], None).unwrap_err().to_string(), "no call waits");
        let twice = [calls[0].clone(), calls[0].clone()];
        assert!(one(&twice, None).unwrap_err().to_string().contains("say which"));
    }
}
