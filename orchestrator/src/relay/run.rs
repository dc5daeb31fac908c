//! Runs one call to its end.

use std::{panic::AssertUnwindSafe, sync::Arc};

use everturn_kernel::{Effects, Ended, Input, Turn, run_turn};
use everturn_wire::{Category, DoneReason, Failure, TraceContext};
use futures_util::FutureExt as _;
use http::{HeaderMap, HeaderValue};
use tokio::sync::mpsc;

use super::{
    NoAnswer, RelayCall,
    body::Stored,
    call::{Call, Order},
    choice::Chosen,
    host::{CallHost, MOST_REFUSAL},
    kept::Kept,
};
use crate::{
    new_id, observer::Observers, panic::panic_text, session::Ports, telemetry::GaugeGuard,
    timed_retry::TimedRetry,
};

/// What a call's task needs.
pub(super) struct Task {
    pub(super) ports: Arc<Ports>,
    pub(super) call: Arc<Call>,
    pub(super) asked: RelayCall,
    pub(super) stored: Stored,
    pub(super) chosen: Chosen,
    pub(super) inbox: mpsc::Receiver<Order>,
    pub(super) kept: Arc<Kept>,
    pub(super) observers: Observers,
}

/// Runs a call. Returns whether it was answered.
pub(super) async fn run(task: Task) -> bool {
    let Task { ports, call, asked, stored, chosen, inbox, kept, observers } = task;
    let _active = GaugeGuard::active_turn();
    let retry = TimedRetry {
        switch: Some(ports.retry.switch(None, &Arc::default())),
        ..ports.timed(chosen.policy.clone())
    };
    let (mut effects, now) = (Effects::new(), ports.clock.now());
    let (store, key) = (ports.state.clone(), call.key);
    let found = kept.find(store.as_ref(), &key).await;
    let is_kept = found.is_some();
    // One whose time is over would fail before the provider could answer.
    let mut turn = match found.filter(|turn| turn.settings().budget.deadline.is_none_or(|end| now < end)) {
        // Its settings were fixed when it began.
        Some(mut turn) => {
            turn.handle(now, Input::Recover, &retry, &mut effects);
            turn
        }
        None => {
            let settings = chosen.settings.clone();
            let mut turn = Turn::begin_over(new_id::turn(), settings, Vec::new(), None, now, &mut effects);
            turn.choose_first_target(now, &retry, &mut effects);
            turn
        }
    };
    let mut host = CallHost {
        trace: trace(&asked.request.headers),
        observers,
        ports,
        call: call.clone(),
        asked,
        stored,
        chosen,
        inbox,
        is_leaving: false,
        kept: kept.clone(),
        is_kept,
        called: None,
    };
    let driven =
        AssertUnwindSafe(run_turn(&mut turn, &mut effects, &mut host, Some(&retry))).catch_unwind().await;
    // Also of a call that was left, or broke.
    host.report_end(&turn);
    let tape = &call.tape;
    let failure = match driven {
        Ok(Ok(Ended::Left(_))) => {
            if tape.is_shown() {
                tape.cut();
            } else {
                tape.withdraw();
            }
            kept.leave(key);
            tape.end(NoAnswer::Left);
            return false;
        }
        Ok(_) => turn.outcome().and_then(|outcome| match outcome.reason {
            DoneReason::Aborted => Some(Failure::new(Category::Unknown, false, "the call was given up")),
            _ => outcome.failure.clone(),
        }),
        Err(panic) => {
            let text = format!("the call broke: {}", panic_text(panic.as_ref()));
            tracing::error!(call = %call.id, error = text, "a call panicked");
            Some(Failure::new(Category::Internal, false, text))
        }
    };
    let Some(failure) = failure else {
        tape.end(NoAnswer::Left);
        return true;
    };
    // For calls that are refused because of that. A caller's own key is no other's business.
    if failure.category == Category::Auth
        && host.asked.request.dialect.is_some()
        && let Some(target) = &host.called
        && host.chosen.legs.iter().any(|leg| leg.target == *target && !leg.upstream.is_of_caller())
        && let Some(refusal) = tape.refusal(MOST_REFUSAL)
    {
        host.ports.health.keep_refusal(target, refusal);
    }
    if tape.is_shown() {
        tape.cut();
    }
    tracing::info!(call = %call.id, category = failure.category.as_str(), error = failure.message, "a call failed");
    tape.end(NoAnswer::Failed(failure));
    false
}

/// Returns the trace that a request belongs to.
fn trace(headers: &HeaderMap) -> Option<TraceContext> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    TraceContext::read(text("traceparent")?, text("tracestate"))
}
