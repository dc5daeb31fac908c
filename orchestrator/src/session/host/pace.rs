//! When a turn's call is made, and the call itself.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc};

use everturn_kernel::{Arguments, Request, Schedule as _, StreamEvent, Target, ToolCall, Turn, Want};
use everturn_wire::{Category, Failure, Value};
use futures_core::stream::BoxStream;
use futures_util::{StreamExt as _, future, stream};

use super::TurnHost;
use crate::{
    ProviderCall,
    clock::Clock,
    health::{self, SharedHealth},
    memory::{Account, Metered},
    model::Model,
    observer::Observers,
    pacing::{AdmittedCall, Asker, Pace, size},
    panic::panic_text,
    session::{
        image,
        summary::{self, Cut},
    },
    telemetry,
    usage::{Figures, UsageBook},
};

impl TurnHost<'_> {
    pub(super) fn pace(&self, turn: &Turn, model: &Model) -> Pace {
        let (now, for_reviews) = (self.shared.clock.now(), self.shared.for_reviews);
        // A turn without retries is not held either.
        let shares_limits = !self.settings.policy.ignores_holds() && self.is_retried();
        let price = self.shared.usage.price(&model.target);
        Pace {
            pacing: self.shared.pacing.clone(),
            clock: self.shared.clock.clone(),
            model: model.id.clone(),
            asker: Asker {
                turn: self.turn_id.clone(),
                caller: self.conversation.id.caller_name(),
                // A review waits instead of its turn.
                conversation: (!for_reviews).then(|| self.conversation.id.clone()),
                since: turn.wants_since(now),
                priority: self.settings.definition.priority.max(self.settings.model.priority()),
                size: size(&self.tokens(&model.id), price.as_ref()),
                price,
            },
            // A person who asks for a call knows what has changed.
            rejection: match turn.is_asked_by_person() {
                true => None,
                false => self.shared.health.rejection(now, &model.target),
            },
            insists: turn.is_asked_by_person() || !shares_limits,
            waits_for_caller: self.is_retried(),
            parks_for_caller: true,
            affordable_ms: turn.affordable_ms(now),
            // On a route, `health::watched` reports more than this.
            health: turn.target().is_none().then(|| (self.shared.health.clone(), model.target.clone())),
            // With several targets, another one may be reachable.
            waits_for_network: shares_limits && turn.settings().targets.len() < 2 && !for_reviews,
        }
    }

    fn is_retried(&self) -> bool {
        let message = self.settings.definition.configured.auto_retry;
        self.shared.retry.switch(message, &self.conversation.retry).is_on()
    }

    /// Estimates the tokens of a call: what was measured last, and what was added since.
    fn tokens(&self, model: &str) -> Figures {
        let max_output = self.settings.definition.configured.max_output_tokens.map_or(u64::MAX, u64::from);
        let output = self.shared.pacing.usual_output(model).min(max_output);
        let state = self.conversation.state();
        let (tokens, after) = state.live.measured.map_or((0, 0), |known| (known.tokens, known.seq));
        let added = state.record.chunks.iter().rev().take_while(|stored| stored.seq > after);
        let added = summary::tokens(added.map(|stored| &*stored.chunk));
        Figures { input: tokens.saturating_add(added), output, ..Figures::default() }
    }

    /// Gives up the turn's place in line once it is sealed.
    pub(super) fn leave_line(&self, turn: &Turn) {
        if matches!(turn.want(), Want::Nothing) {
            let target = turn.target().map_or(self.settings.model.id(), |target| &target.name);
            self.shared.pacing.forget(target, &self.turn_id, self.shared.clock.now());
        }
    }
}

/// A call, ready to be made.
pub(super) struct Start {
    pub(super) model: Arc<Model>,
    pub(super) request: Request,
    /// For the observers; `None` = there are none.
    pub(super) call: Option<ProviderCall>,
    pub(super) observers: Observers,
    pub(super) account: Account,
    /// The health that learns how a target of a route does.
    pub(super) on_route: Option<(Arc<SharedHealth>, Target)>,
    /// For a summary: what it replaces.
    pub(super) summary: Option<Cut>,
    /// Whether its caller gets calls of tools as the model wrote them.
    pub(super) is_bare: bool,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) usage: Arc<UsageBook>,
    /// Whose conversation it is; `None` = the administrator's.
    pub(super) caller: Option<String>,
}

impl Start {
    /// Makes the call and returns its events.
    pub(super) fn call(self, admitted: AdmittedCall) -> BoxStream<'static, StreamEvent> {
        let Self {
            model,
            request,
            call,
            observers,
            account,
            on_route,
            summary,
            is_bare,
            clock,
            usage,
            caller,
        } = self;
        telemetry::provider_called(&model.id);
        let asked = Figures { requests: 1, ..Figures::default() };
        usage.add(caller.as_deref(), &model.target, clock.now(), &asked);
        let call = call.map(|call| ProviderCall { begun_at: clock.now(), ..call });
        if let Some(call) = &call {
            observers.begins(call, &request);
        }
        let attached = image::are_in(&request.messages);
        let started = std::panic::catch_unwind(AssertUnwindSafe(|| model.provider.stream(request)));
        let started = started
            .unwrap_or_else(|panic| stream::once(future::ready(broke(&model.id, panic.as_ref()))).boxed());
        let events = AssertUnwindSafe(started).catch_unwind();
        let events = events.map(move |event| match event {
            Ok(StreamEvent::ToolCall(call)) if is_bare => StreamEvent::ToolCall(as_made(call)),
            Ok(StreamEvent::Failed(failure)) => StreamEvent::Failed(image::explained(failure, attached)),
            Ok(event) => event,
            Err(panic) => broke(&model.id, panic.as_ref()),
        });
        let events = Metered::new(events, account);
        // Each layer adds a cost per delta; the usual call has only one.
        if call.is_none() && on_route.is_none() && summary.is_none() {
            return admitted.watch(events).boxed();
        }
        let now = move || clock.now();
        let events = match call {
            Some(call) => observers.watch(events, call, now.clone()).boxed(),
            None => events.boxed(),
        };
        let events = match on_route {
            Some((health, target)) => health::watched(events, target, health, now).boxed(),
            None => events,
        };
        let events = admitted.watch(events);
        match summary {
            Some(cut) => summary::collected(events, cut),
            None => events.boxed(),
        }
    }
}

/// Returns a call whose arguments count as what the model wrote, so that its caller gets them even if they are not JSON.
fn as_made(mut call: ToolCall) -> ToolCall {
    if let Arguments::Malformed { raw, .. } = call.arguments {
        call.arguments = Arguments::Parsed(Value::String(raw));
    }
    call
}

/// Returns the failure for a panic of the provider. The kernel bounds its retries.
fn broke(model: &str, panic: &(dyn Any + Send)) -> StreamEvent {
    let text = format!("the provider of {model} panicked: {}", panic_text(panic));
    StreamEvent::Failed(Failure::new(Category::Internal, true, text))
}
