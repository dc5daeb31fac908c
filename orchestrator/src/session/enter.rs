//! How sessions start and resume turns.

use std::{future::poll_fn, pin::pin, sync::Arc, time::Duration};

use everturn_kernel::Input;
use futures_util::future;

use super::{Ports, TurnTask, missing::missing_here, run};
use crate::{
    cluster::may_be_starting,
    conversation::{Command, Control, Conversation, Parked, Seated},
    error::Error,
};

/// Drives this turn in a new task. The caller holds the seat.
pub(crate) fn begin(ports: &Arc<Ports>, seated: Seated, job: TurnTask) {
    tokio::spawn(run(ports.clone(), seated, Box::new(job)));
}

/// Sends a command to the running turn; resumes a parked one at once. Returns whether there was a turn.
///
/// # Errors
/// When the command was refused.
pub(crate) fn send(
    ports: &Arc<Ports>,
    conversation: &Arc<Conversation>,
    control: Control,
) -> Result<bool, Error> {
    // Without any model the turn can only be stopped.
    let is_stop = matches!(control.input, Input::Abort);
    Ok(match conversation.send(control, is_stop || !ports.models.now().is_empty())? {
        Command::Sent => true,
        Command::NoTurn => false,
        Command::WithTurn(parked, seated) => {
            go_on(ports, *parked, seated);
            true
        }
    })
}

/// Resumes an unsealed turn that nobody drives, if its wait is over.
///
/// # Errors
/// When the turn cannot be read, or the orchestrator is shutting down.
pub(crate) fn go_on_if_due(ports: &Arc<Ports>, conversation: &Arc<Conversation>) -> Result<(), Error> {
    if ports.models.now().is_empty() {
        return Ok(());
    }
    match conversation.claim_due(ports.clock.now())? {
        Some((parked, seated)) => go_on(ports, *parked, seated),
        // It ended with what was not confirmed, or somebody else was faster.
        None => _ = conversation.take_unrun(),
    }
    Ok(())
}

/// Checks that this node can continue a turn that it is about to take over from another node. Returns after how long it may,
/// because calls may still be starting there.
///
/// # Errors
/// When it cannot. Another node may.
pub(crate) fn may_continue(ports: &Ports, conversation: &Conversation) -> Result<Duration, Error> {
    let missing = conversation.read_parked(|parked| missing_here(ports, parked)).flatten();
    if let Some(what) = missing {
        return Err(Error::Lacks { id: conversation.id.clone(), what });
    }
    let is_undecided = conversation.read_parked(|parked| may_be_starting(&parked.turn)) == Some(true);
    let Some(peers) = ports.peers.as_ref().filter(|_| is_undecided) else { return Ok(Duration::ZERO) };
    let version = conversation.state().record.version;
    Ok(peers.undecided.left(&conversation.id, version, ports.clock.now()))
}

fn go_on(ports: &Arc<Ports>, parked: Parked, seated: Seated) {
    let ports = ports.clone();
    tokio::spawn(async move {
        let mut seated = seated;
        let brings_tools = parked.definition.request.as_ref().is_some_and(|scope| scope.tools.is_some());
        let waits = !ports.tools.is_fixed() && !brings_tools;
        if let Some(names) = parked.definition.configured.tools.as_ref().filter(|_| waits) {
            // A command such as stop does not wait for the tools.
            let commanded = poll_fn(|cx| seated.inbox.poll_ready(cx));
            future::select(pin!(ports.tools.settled(names)), commanded).await;
        }
        let model = seated.conversation.state().record.head.model.clone();
        let is_unrun = seated.conversation.take_unrun();
        let job = TurnTask::again(&ports, parked, is_unrun, model.as_deref());
        run(ports, seated, Box::new(job)).await;
    });
}
