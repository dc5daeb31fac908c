//! Calls the provider, unless other turns found that it is currently unavailable.

use std::{any::Any, panic::AssertUnwindSafe};

use everturn_kernel::{Arguments, Hold, Millis, Op, Request, StreamEvent, Target, ToolCall, Turn, Want};
use everturn_wire::{Category, Chunk, Failure, Message, Role, Value};
use futures_core::stream::BoxStream;
use futures_util::{StreamExt as _, future, stream};

use super::{TurnHost, compact::Prepared};
use crate::{
    ProviderCall,
    conversation::Called,
    gate::Pass,
    health,
    memory::Metered,
    model::Model,
    panic::panic_text,
    report,
    session::{image, request, summary},
    telemetry,
};

/// Returns a call whose arguments count as what the model wrote, so that its caller gets them even if they are not JSON.
fn as_made(mut call: ToolCall) -> ToolCall {
    if let Arguments::Malformed { raw, .. } = call.arguments {
        call.arguments = Arguments::Parsed(Value::String(raw));
    }
    call
}

impl TurnHost<'_> {
    /// Starts a call and returns its events; a held call yields only [`StreamEvent::Held`].
    pub(super) fn ask(&mut self, turn: &Turn, op: Op) -> BoxStream<'static, StreamEvent> {
        self.asked = Some(op);
        let model = match self.shared.models.now().asked(&self.settings.model, turn.target()) {
            Ok(model) => model,
            Err(gone) => {
                let at = self.shared.clock.now();
                self.called = turn.target().map(|target| Called::new(target, at));
                let failed = stream::once(future::ready(StreamEvent::Failed(gone)));
                return match turn.target().cloned() {
                    Some(target) => self.health_of(failed.boxed(), target),
                    None => failed.boxed(),
                };
            }
        };
        self.model = Some(model.clone());
        let summary = match self.summary_of(turn, &model) {
            Prepared::None => None,
            Prepared::Cut(cut) => Some(cut),
            Prepared::Answered(events) => {
                self.called = None;
                return events;
            }
        };
        if let Some(full) = self.conversation.account.excess(0) {
            self.called = None;
            return stream::once(future::ready(StreamEvent::Failed(full))).boxed();
        }
        let shares_limits = self.shares_limits();
        if let Some(hold) = self.enter(turn, &model, shares_limits) {
            telemetry::call_held(&model.id);
            self.called = None;
            if self.shared.for_reviews {
                let refused = Failure { hint_ms: Some(hold.wait_ms), ..hold.failure };
                return stream::once(future::ready(StreamEvent::Failed(refused))).boxed();
            }
            return stream::once(future::ready(StreamEvent::Held(hold))).boxed();
        }
        telemetry::provider_called(&model.id);
        self.called = Some(Called::new(&model.target, self.shared.clock.now()));
        let call = self.call(turn, op, &model);
        let pass = self.pass(turn, &model, shares_limits);
        let mut request = match &summary {
            Some(cut) => self.summary_request(op, &model, cut),
            None => self.request(turn, op, &model),
        };
        request.trace = match &call {
            Some(call) => self.conversation.observers().trace_of(call),
            None => self.settings.definition.trace.as_deref().cloned(),
        };
        if let Some(call) = &call {
            self.conversation.observers().begins(call, &request);
        }
        let had_images = image::are_in(&request.messages);
        let started = std::panic::catch_unwind(AssertUnwindSafe(|| model.provider.stream(request)));
        let started = started
            .unwrap_or_else(|panic| stream::once(future::ready(broke(&model.id, panic.as_ref()))).boxed());
        let events = AssertUnwindSafe(started).catch_unwind();
        let name = model.clone();
        let is_bare = self.settings.is_bare();
        let events = events.map(move |event| match event {
            Ok(StreamEvent::ToolCall(call)) if is_bare => StreamEvent::ToolCall(as_made(call)),
            Ok(StreamEvent::Failed(failure)) => StreamEvent::Failed(image::explained(failure, had_images)),
            Ok(event) => event,
            Err(panic) => broke(&name.id, panic.as_ref()),
        });
        let events = Metered::new(events, self.conversation.account.clone());
        // Each layer adds a cost per delta; the usual call has only one.
        if call.is_none() && turn.target().is_none() && summary.is_none() {
            return pass.watch(events).boxed();
        }
        let clock = self.shared.clock.clone();
        let events = match call {
            Some(call) => {
                self.conversation.observers().clone().watch(events, call, move || clock.now()).boxed()
            }
            None => events.boxed(),
        };
        let events = match turn.target() {
            Some(target) => self.health_of(events, target.clone()),
            None => events,
        };
        let events = pass.watch(events);
        match summary {
            Some(cut) => summary::collected(events, cut),
            None => events.boxed(),
        }
    }

    fn request(&self, turn: &Turn, op: Op, model: &Model) -> Request {
        // Cloned so that the request is built without the lock; the chunks are shared with the history.
        let chunks = self.conversation.state().record.chunks.clone();
        let definition = &self.settings.definition;
        let configured = &definition.configured;
        let scope = definition.request.as_deref();
        let own_prompt = scope.and_then(|scope| scope.system_prompt.as_deref());
        let is_bare = self.settings.is_bare();
        let system_prompt = own_prompt.or(configured.system_prompt.as_deref().filter(|_| !is_bare));
        let mut sent = request::sent(&chunks, definition.supersedes, Some(&model.target.model));
        if turn.is_cut_down() {
            sent = summary::cut_down(&sent, self.latest().as_deref());
        }
        let mut messages = request::messages(system_prompt, &sent);
        let (mut tools, is_last) = (self.settings.tools.specs(), turn.must_report_now());
        if let Some(required) = definition.final_report.as_deref().filter(|_| turn.must_report()) {
            tools = report::offered(required, &tools, is_last);
        }
        if is_last {
            messages.push(Message::new(Role::User, [Chunk::Text { text: report::LAST_STEP.to_owned() }]));
        }
        let parameters = scope.map(|scope| scope.parameters_of(op.step)).unwrap_or_default();
        Request {
            op,
            model: model.name.clone(),
            messages,
            tools,
            max_output_tokens: parameters.max_output_tokens.or(configured.max_output_tokens),
            parameters,
            reasoning_effort: definition.reasoning_effort.clone(),
            eager_calls: turn.settings().eager_tools,
            trace: None,
        }
    }

    /// Whether the turn shares knowledge about limits with others. A turn without retries is not held either.
    fn shares_limits(&self) -> bool {
        !self.settings.schedule.ignores_holds() && self.is_retried()
    }

    fn is_retried(&self) -> bool {
        let message = self.settings.definition.configured.auto_retry;
        self.shared.retry.switch(message, &self.conversation.retry).is_on()
    }

    fn enter(&self, turn: &Turn, model: &Model, shares_limits: bool) -> Option<Box<Hold>> {
        if turn.is_asked_by_person() || !shares_limits {
            return None;
        }
        let now = self.shared.clock.now();
        let hold = self.shared.gates.enter(&model.id, &self.conversation.id, &self.turn_id, now)?;
        if self.shared.for_reviews {
            return Some(hold);
        }
        // A turn that cannot afford the wait calls the provider and gets its error.
        (!hold.in_budget || turn.affords(now, hold.wait_ms)).then_some(hold)
    }

    fn pass(&self, turn: &Turn, model: &Model, shares_limits: bool) -> Pass {
        Pass {
            gates: shares_limits.then(|| self.shared.gates.clone()),
            clock: self.shared.clock.clone(),
            timers: self.shared.timers.clone(),
            target: model.id.clone(),
            turn: self.turn_id.clone(),
            asked_at: self.shared.clock.now(),
            // On a route, `health_of` reports more than this.
            health: turn.target().is_none().then(|| (self.shared.health.clone(), model.target.clone())),
            // With several targets, another one may be reachable.
            waits_for_network: turn.settings().targets.len() < 2 && !self.shared.for_reviews,
            quota: None,
        }
    }

    /// Tells other turns about a limit that this turn waits for, or that it no longer does.
    pub(super) fn share_limit(&self, turn: &Turn, now: Millis) {
        let until = match turn.want() {
            Want::Wake(_, until) => until,
            Want::Nothing => {
                self.share_limit_of_review(turn, now);
                let target = turn.target().map_or(self.settings.model.id(), |target| &target.name);
                return self.shared.gates.ended(target, &self.turn_id, now);
            }
            Want::Stream(_) | Want::Tools { .. } | Want::Person { .. } => return,
        };
        let Some(model) = self.model.as_ref().filter(|_| self.shares_limits()) else { return };
        let Some(retry) = turn.retry() else { return };
        let is_limit = retry.category == Some(Category::RateLimited) && retry.shared.is_none();
        if is_limit && retry.target.is_none_or(|target| target == model.id) {
            let message = retry.message.unwrap_or_default();
            let failure = Failure { code: retry.code, ..Failure::new(Category::RateLimited, true, message) };
            self.shared.gates.limited(&model.id, &self.turn_id, failure, until, now);
        }
    }

    /// Tells others about a limit that refused a review, whose turn does not wait.
    fn share_limit_of_review(&self, turn: &Turn, now: Millis) {
        let refused = turn.outcome().and_then(|outcome| outcome.failure.as_ref());
        let refused = refused.filter(|_| self.shared.for_reviews && self.called.is_some());
        if let (Some(model), Some(failure)) = (&self.model, refused)
            && let (Category::RateLimited, Some(hint_ms)) = (failure.category, failure.hint_ms)
        {
            let until = now.plus(hint_ms);
            self.shared.gates.limited(&model.id, &self.turn_id, failure.clone(), until, now);
        }
    }

    /// Describes a call for the observers; `None` = there are none.
    fn call(&self, turn: &Turn, op: Op, model: &Model) -> Option<ProviderCall> {
        self.conversation.observers().is_any().then(|| ProviderCall {
            conversation_id: self.conversation.id.clone(),
            turn_id: turn.id().clone(),
            op,
            model: model.id.clone(),
            model_name: model.name.clone(),
            provider: model.provider.about(),
            trace: self.settings.definition.trace.as_deref().cloned(),
            begun_at: self.shared.clock.now(),
        })
    }

    /// Reports the events of a call to the health of its target.
    fn health_of(
        &self,
        events: BoxStream<'static, StreamEvent>,
        target: Target,
    ) -> BoxStream<'static, StreamEvent> {
        let clock = self.shared.clock.clone();
        health::watched(events, target, self.shared.health.clone(), move || clock.now()).boxed()
    }
}

/// Returns the failure for a panic of the provider. The kernel bounds its retries.
fn broke(model: &str, panic: &(dyn Any + Send)) -> StreamEvent {
    let text = format!("the provider of {model} panicked: {}", panic_text(panic));
    StreamEvent::Failed(Failure::new(Category::Internal, true, text))
}
