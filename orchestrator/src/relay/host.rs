//! The kernel driver's host for one call.

use std::{
    convert::Infallible,
    future::poll_fn,
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use async_trait::async_trait;
use everturn_kernel::{
    Effect, Effects, Hold, Host, Input, Millis, Op, Schedule as _, StreamEvent, Target, ToolAnswer, ToolCall,
    Turn, Want,
};
use everturn_pacing::LongLimits;
use everturn_wire::{AgentEvent, Because, CallPhase, CallerName, Category, EventBody, Failure, TraceContext};
use futures_core::{future::BoxFuture, stream::BoxStream};
use futures_util::{StreamExt as _, future, stream};
use http::{HeaderMap, HeaderValue};
use tokio::sync::mpsc;

use super::{
    ModelPlace, RelayCall,
    body::Stored,
    call::{Call, Order},
    choice::{Chosen, Leg},
    kept::Kept,
    rename::renamed,
    tee::Tee,
    within::Within,
};
use crate::{
    health,
    memory::Metered,
    observer::{Observers, ProviderCall, TurnEnd},
    pacing::{AdmittedCall, Asker, Pace, Paced, size},
    session::Ports,
    shutdown::Stage,
    telemetry,
    upstream::{Outgoing, Passed},
    usage::Figures,
};

/// Average number of bytes of a body per token.
const BYTES_PER_TOKEN: u64 = 4;

/// Maximum size of a refusal that is kept during a wait, in bytes.
pub(super) const MOST_REFUSAL: usize = 64 << 10;

pub(super) struct CallHost {
    pub(super) ports: Arc<Ports>,
    pub(super) call: Arc<Call>,
    pub(super) asked: RelayCall,
    /// The room that its body takes.
    pub(super) stored: Stored,
    pub(super) chosen: Chosen,
    pub(super) inbox: mpsc::Receiver<Order>,
    /// Whether to leave the turn as it is.
    pub(super) is_leaving: bool,
    pub(super) kept: Arc<Kept>,
    /// Whether the wait of this call is kept for the next process.
    pub(super) is_kept: bool,
    /// The target that was asked last; `None` before the first, and while a request is held.
    pub(super) called: Option<Target>,
    pub(super) observers: Observers,
    /// That of its request.
    pub(super) trace: Option<TraceContext>,
}

impl CallHost {
    fn leg(&self, turn: &Turn) -> &Leg {
        let named = turn.target().map(|target| &target.name);
        let found = self.chosen.legs.iter().find(|leg| Some(&leg.target.name) == named);
        found.unwrap_or(&self.chosen.legs[0])
    }

    /// Describes an attempt for the observers.
    fn attempt(&self, turn: &Turn, op: Op, leg: &Leg) -> ProviderCall {
        let named = self.asked.model.as_ref().map(|model| &model.name);
        ProviderCall {
            conversation_id: self.call.id.clone(),
            turn_id: turn.id().clone(),
            op,
            model: leg.target.name.clone(),
            model_name: leg.renamed.as_ref().or(named).cloned().unwrap_or_default(),
            provider: leg.upstream.about(),
            trace: self.trace.clone(),
            begun_at: self.now(),
        }
    }

    /// Tells the observers of an event.
    fn report(&self, turn: &Turn, event: EventBody) {
        let (conversation_id, turn_id) = (self.call.id.clone(), Some(turn.id().clone()));
        self.observers.event(&AgentEvent { body: event, conversation_id, turn_id });
    }

    /// Tells the observers that this process does no more for the call, so that they keep nothing of it.
    pub(super) fn report_end(&self, turn: &Turn) {
        self.observers.ended(&TurnEnd {
            conversation_id: &self.call.id,
            turn,
            model: &self.chosen.model,
            trace: self.trace.as_ref(),
            at: self.now(),
        });
    }

    fn ask(&mut self, turn: &Turn, op: Op) -> BoxStream<'static, StreamEvent> {
        self.call.tape.withdraw();
        if !self.call.tape.is_listened_to() {
            return self.when_listened_to(turn);
        }
        let leg = self.leg(turn).clone();
        let name = leg.target.name.clone();
        let pace = self.pace(turn, &leg);
        let known = pace.rejection.as_ref().and_then(|_| self.ports.health.refusal(&leg.target));
        if let Some((status, headers, body)) = known {
            self.call.tape.head(status, headers);
            self.call.tape.piece(body);
        }
        let pace = pace.enter();
        let (call, sent) = (self.call.clone(), self.sent(&leg));
        let (clock, deadline) = (self.ports.clock.clone(), turn.settings().budget.deadline);
        let (usage, caller) = (self.ports.usage.clone(), self.asked.caller.clone());
        self.called = (!matches!(pace, Paced::Held(_))).then(|| leg.target.clone());
        let on_route = turn.target().map(|target| (self.ports.health.clone(), target.clone()));
        let attempt = self.observers.is_any().then(|| self.attempt(turn, op, &leg));
        let observers = self.observers.clone();
        let start = move |admitted: AdmittedCall| {
            telemetry::provider_called(&name);
            let asked = Figures { requests: 1, ..Figures::default() };
            usage.add(caller.as_ref().map(CallerName::as_str), &leg.target, clock.now(), &asked);
            let account = call.tape.account.clone();
            let facts = Metered::new(Tee::new(sent(), call), account);
            let facts = match deadline {
                Some(deadline) => Within::new(facts, clock.clone(), deadline).boxed(),
                None => facts.boxed(),
            };
            let facts = match attempt {
                Some(attempt) => {
                    observers.passes(&attempt);
                    let clock = clock.clone();
                    observers.watch(facts, attempt, move || clock.now()).boxed()
                }
                None => facts,
            };
            match on_route {
                Some((health, target)) => admitted
                    .watch(health::watched(facts, target, health, move || clock.now()).boxed())
                    .boxed(),
                None => admitted.watch(facts).boxed(),
            }
        };
        match pace {
            Paced::Now(call) => start(call),
            Paced::Soon(pace) => pace.soon(start),
            Paced::Held(event) => stream::once(future::ready(event)).boxed(),
        }
    }

    /// Puts the call off until somebody listens: nobody would take the answer.
    fn when_listened_to(&self, turn: &Turn) -> BoxStream<'static, StreamEvent> {
        let tape = self.call.tape.clone();
        let last = turn.retry();
        let message = last.as_ref().and_then(|retry| retry.message.clone());
        let failure = Failure::new(
            last.and_then(|retry| retry.category).unwrap_or(Category::Unknown),
            true,
            message.unwrap_or_else(|| "nobody listened".to_owned()),
        );
        let listened = async move {
            poll_fn(|cx| tape.poll_listened(cx)).await;
            let because = Because::Line;
            StreamEvent::Held(Box::new(Hold {
                failure,
                wait_ms: 0,
                shared: true,
                because,
                in_budget: false,
                open_ended: false,
            }))
        };
        stream::once(listened).boxed()
    }

    fn shares_limits(&self) -> bool {
        !self.chosen.policy.ignores_holds() && self.ports.retry.switch(None, &Arc::default()).is_on()
    }

    fn pace(&self, turn: &Turn, leg: &Leg) -> Pace {
        let (ports, now) = (&self.ports, self.ports.clock.now());
        let target = leg.target.name.clone();
        let input = self.stored.len as u64 / BYTES_PER_TOKEN;
        let tokens = Figures {
            input,
            cache_read: ports.pacing.usual_cached(&target, input),
            output: ports.pacing.usual_output(&target).min(self.asked.max_output.unwrap_or(u64::MAX)),
            ..Figures::default()
        };
        let price = ports.usage.price(&leg.target);
        let size = size(&tokens, price.as_ref());
        let (id, since) = (self.call.id.clone(), turn.wants_since(now));
        let priority = self.asked.priority.max(self.chosen.priority);
        let caller = self.asked.caller.clone();
        // A call that does not wait for a quota gets the provider's own refusal.
        let longest = match self.chosen.policy.long_limits {
            LongLimits::GiveUp => LongLimits::LONG_MS - 1,
            _ => u64::MAX,
        };
        // A key may be accepted for some paths only.
        let is_of_model = self.asked.request.dialect.is_some();
        let learns = is_of_model && turn.target().is_none();
        Pace {
            pacing: ports.pacing.clone(),
            clock: ports.clock.clone(),
            model: target,
            asker: Asker {
                turn: turn.id().clone(),
                caller,
                conversation: Some(id),
                since,
                priority,
                size,
                price,
            },
            // A key that the caller sends is the provider's to judge.
            rejection: match turn.is_asked_by_person() || leg.upstream.is_of_caller() || !is_of_model {
                true => None,
                false => ports.health.rejection(now, &leg.target),
            },
            insists: turn.is_asked_by_person() || !self.shares_limits(),
            waits_for_caller: self.ports.retry.switch(None, &Arc::default()).is_on(),
            parks_for_caller: self.asked.budget.is_none()
                && self.chosen.policy.long_limits != LongLimits::GiveUp,
            affordable_ms: turn.affordable_ms(now).min(longest),
            health: learns.then(|| (ports.health.clone(), leg.target.clone())),
            waits_for_network: self.shares_limits() && self.chosen.legs.len() < 2,
        }
    }

    /// Returns what sends the request to a target: the caller's, with the target's name of the model.
    fn sent(&self, leg: &Leg) -> impl FnOnce() -> BoxStream<'static, Passed> + Send + use<> {
        let mut request = Outgoing { whole: self.chosen.whole, ..self.asked.request.clone() };
        let body = mem::take(&mut request.body);
        let place = self.asked.model.as_ref().map(|model| model.place.clone());
        let (upstream, named) = (leg.upstream.clone(), place.zip(leg.renamed.clone()));
        self.stored.send(body, move |body| {
            request.body = body;
            match named {
                Some((ModelPlace::Path(at), name)) => request.path.replace_range(at, &name),
                Some((ModelPlace::Body(places), name)) => {
                    request.body = renamed(&request.body, &places, &name);
                }
                None => {}
            }
            upstream.send(request)
        })
    }

    /// Keeps a wait for the next process, before it begins; forgets it once the call is over. A call that never waits
    /// writes nothing.
    async fn keep(&mut self, turn: &Turn) {
        let kept = match turn.want() {
            Want::Wake(_, until) => Some((until, turn.snapshot())),
            Want::Nothing if self.is_kept => None,
            _ => return,
        };
        self.is_kept = kept.is_some();
        self.kept.keep(self.ports.state.as_ref(), &self.call.key, kept, self.now()).await;
    }

    /// Updates what people see.
    fn show(&self, turn: &Turn) {
        let retry = turn.retry();
        let mut state = self.call.lock();
        let before = (state.phase, state.next_at, state.retries);
        state.target.clone_from(&self.leg(turn).target.name);
        state.retries = turn.retries();
        state.waited_ms = turn.waited_ms();
        (state.phase, state.next_at) = match turn.want() {
            Want::Wake(_, at) => (CallPhase::Waiting, Some(at.0)),
            _ => (CallPhase::Asking, None),
        };
        state.because = retry.as_ref().and_then(|retry| retry.message.clone());
        state.shared = retry.as_ref().and_then(|retry| retry.shared);
        state.category = retry.and_then(|retry| retry.category);
        let is_changed = before != (state.phase, state.next_at, state.retries);
        drop(state);
        if is_changed {
            self.call.tell();
        }
    }

    /// Adds what an event says that the call used.
    fn count(&self, event: &EventBody, was_kept: bool, used: &mut Figures) {
        let was_called = self.called.is_some();
        match event {
            EventBody::ProviderRetry { shared: None, .. } => used.refusals += u64::from(was_called),
            // One that was waiting had its last refusal counted before.
            EventBody::Error(_) => used.refusals += u64::from(was_called && !was_kept),
            EventBody::Usage { usage, .. } => used.add(&Figures::from(usage)),
            _ => {}
        }
    }

    fn log(&self, turn: &Turn, event: &EventBody) {
        let EventBody::ProviderRetry { attempt, delay_ms, message, category, .. } = event else { return };
        let (call, target) = (&self.call.id, &self.leg(turn).target.name);
        let category = category.map(Category::as_str);
        tracing::info!(%call, target, attempt, delay_ms, category, error = message, "a call waits");
    }
}

/// Copies the values of headers, so that they no longer keep the buffer of 8 KiB or more that they were received in.
fn copy_values(headers: &mut HeaderMap) {
    for value in headers.values_mut() {
        if let Ok(mut copy) = HeaderValue::from_bytes(value.as_bytes()) {
            copy.set_sensitive(value.is_sensitive());
            *value = copy;
        }
    }
}

#[async_trait]
impl Host for CallHost {
    type Error = Infallible;

    fn now(&self) -> Millis {
        self.ports.clock.now()
    }

    async fn commit(&mut self, turn: &Turn, effects: &mut Effects) -> Result<(), Infallible> {
        let (mut used, was_kept) = (Figures::default(), self.is_kept);
        // First, so that no wait that was told of is lost in a crash.
        self.keep(turn).await;
        for effect in effects.drain() {
            if let Effect::Tell(event) = effect {
                self.log(turn, &event);
                self.count(&event, was_kept, &mut used);
                if let Some(count) = telemetry::Count::of(&event) {
                    count.add();
                }
                if self.observers.is_any() {
                    self.report(turn, event);
                }
            }
        }
        if matches!(turn.want(), Want::Wake(..)) {
            self.call.tape.withdraw_beyond(MOST_REFUSAL);
            copy_values(&mut self.asked.request.headers);
            self.stored.put_away(&mut self.asked.request.body).await;
        }
        used.add(&Figures::of_ended(turn));
        let target = self.called.as_ref().unwrap_or(&self.leg(turn).target);
        self.ports.usage.add(self.asked.caller.as_ref().map(CallerName::as_str), target, self.now(), &used);
        self.show(turn);
        if matches!(turn.want(), Want::Nothing) {
            self.ports.pacing.forget(&self.leg(turn).target.name, turn.id(), self.now());
        }
        Ok(())
    }

    fn tell(&mut self, _: &Turn, effects: &mut Effects) {
        drop(effects.drain());
    }

    fn stream(&mut self, turn: &Turn, op: Op) -> BoxStream<'static, StreamEvent> {
        self.ask(turn, op)
    }

    fn run_tool(&mut self, _: &Turn, _: u32, _: &ToolCall) -> BoxFuture<'static, ToolAnswer> {
        Box::pin(future::ready(ToolAnswer::error("a call that is passed through has no tools")))
    }

    /// Whether the call ends without an answer: nobody listens, or the process ends and it waits or may not take longer.
    fn leaves(&mut self, want: Want) -> bool {
        match self.ports.shutdown.stage() {
            Stage::Open => mem::take(&mut self.is_leaving) && self.call.tape.close(),
            Stage::Draining => matches!(want, Want::Wake(..)),
            Stage::Leaving | Stage::Abandoned => want != Want::Nothing,
        }
    }

    fn poll_inbox(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        let Poll::Ready(Some(order)) = self.inbox.poll_recv(cx) else { return Poll::Pending };
        Poll::Ready(match order {
            Order::RetryNow => Input::RetryNow,
            // A repeated request has joined since.
            Order::Stop if !self.call.tape.close() => Input::Save,
            Order::GiveUp | Order::Stop => Input::Abort,
            Order::Release => Input::Release,
            Order::Leave => {
                self.is_leaving = true;
                Input::Save
            }
        })
    }
}
