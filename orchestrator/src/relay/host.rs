//! The kernel driver's host for one call.

use std::{
    convert::Infallible,
    future::poll_fn,
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use async_trait::async_trait;
use bytes::Bytes;
use everturn_kernel::{
    Effect, Effects, Hold, Host, Input, Millis, Op, StreamEvent, ToolAnswer, ToolCall, Turn, Want,
};
use everturn_wire::{CallPhase, Category, EventBody, Failure};
use futures_core::{future::BoxFuture, stream::BoxStream};
use futures_util::{StreamExt as _, future, stream};
use tokio::sync::mpsc;

use super::{
    AskedModel, ModelPlace, RelayCall,
    at_once::LONG_MS,
    call::{Call, Order},
    choice::{Chosen, Leg},
    kept::Kept,
    tee::Tee,
    within::Within,
};
use crate::{
    gate::Pass, health, memory::Metered, session::Ports, shutdown::Stage, telemetry, upstream::Outgoing,
};

/// Maximum size of a refusal that is kept during a wait, in bytes.
const MOST_REFUSAL: usize = 64 << 10;

pub(super) struct CallHost {
    pub(super) ports: Arc<Ports>,
    pub(super) call: Arc<Call>,
    pub(super) asked: RelayCall,
    pub(super) chosen: Chosen,
    pub(super) inbox: mpsc::Receiver<Order>,
    /// Whether to leave the turn as it is.
    pub(super) is_leaving: bool,
    pub(super) kept: Arc<Kept>,
    /// Whether the wait of this call is kept for the next process.
    pub(super) is_kept: bool,
}

impl CallHost {
    fn leg(&self, turn: &Turn) -> &Leg {
        let named = turn.target().map(|target| &target.name);
        let found = self.chosen.legs.iter().find(|leg| Some(&leg.target.name) == named);
        found.unwrap_or(&self.chosen.legs[0])
    }

    fn ask(&mut self, turn: &Turn) -> BoxStream<'static, StreamEvent> {
        self.call.tape.withdraw();
        if !self.call.tape.is_listened_to() {
            return self.when_listened_to(turn);
        }
        let leg = self.leg(turn).clone();
        let name = leg.target.name.clone();
        if let Some(hold) = self.enter(turn, &name) {
            telemetry::call_held(&name);
            return stream::once(future::ready(StreamEvent::Held(hold))).boxed();
        }
        telemetry::provider_called(&name);
        let pass = self.pass(turn, &leg);
        let tape = self.call.tape.clone();
        let account = tape.account.clone();
        let facts = Metered::new(Tee::new(leg.upstream.send(self.outgoing(&leg)), tape), account);
        let clock = self.ports.clock.clone();
        let facts = match turn.settings().budget.deadline {
            Some(deadline) => Within::new(facts, clock.clone(), deadline).boxed(),
            None => facts.boxed(),
        };
        match turn.target() {
            Some(target) => {
                let health = self.ports.health.clone();
                pass.watch(health::watched(facts, target.clone(), health, move || clock.now()).boxed())
                    .boxed()
            }
            None => pass.watch(facts).boxed(),
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
            StreamEvent::Held(Box::new(Hold { failure, wait_ms: 0, shared: true, in_budget: false }))
        };
        stream::once(listened).boxed()
    }

    fn enter(&self, turn: &Turn, target: &str) -> Option<Box<Hold>> {
        if turn.is_asked_by_person() || !self.shares_limits() {
            return None;
        }
        let now = self.ports.clock.now();
        let hold = self.ports.gates.enter(target, &self.call.id, turn.id(), now)?;
        if self.chosen.fails_on_quota && hold.wait_ms >= LONG_MS {
            return None;
        }
        // A call that cannot afford the wait is made, and gets the provider's own error.
        (!hold.in_budget || turn.affords(now, hold.wait_ms)).then_some(hold)
    }

    fn shares_limits(&self) -> bool {
        !self.chosen.schedule.ignores_holds() && self.ports.retry.switch(None, &Arc::default()).is_on()
    }

    fn pass(&self, turn: &Turn, leg: &Leg) -> Pass {
        let ports = &self.ports;
        Pass {
            gates: self.shares_limits().then(|| ports.gates.clone()),
            clock: ports.clock.clone(),
            timers: ports.timers.clone(),
            target: leg.target.name.clone(),
            turn: turn.id().clone(),
            asked_at: ports.clock.now(),
            health: turn.target().is_none().then(|| (ports.health.clone(), leg.target.clone())),
            waits_for_network: self.chosen.legs.len() < 2,
            quota: None,
        }
    }

    /// Tells others about a limit that this call waits for, or that it no longer does.
    fn share_limit(&self, turn: &Turn, now: Millis) {
        let target = &self.leg(turn).target.name;
        match turn.want() {
            Want::Nothing => self.ports.gates.ended(target, turn.id(), now),
            Want::Wake(_, until) if self.shares_limits() => {
                let Some(retry) = turn.retry() else { return };
                if retry.category == Some(Category::RateLimited) && retry.shared.is_none() {
                    let message = retry.message.unwrap_or_default();
                    let failure =
                        Failure { code: retry.code, ..Failure::new(Category::RateLimited, true, message) };
                    self.ports.gates.limited(target, turn.id(), failure, until, now);
                }
            }
            _ => {}
        }
    }

    /// Returns the request for a target: the caller's, with the target's name of the model.
    fn outgoing(&self, leg: &Leg) -> Outgoing {
        let mut request = Outgoing { whole: self.chosen.whole, ..self.asked.request.clone() };
        if let (Some(AskedModel { place, .. }), Some(name)) = (&self.asked.model, &leg.renamed) {
            match place {
                ModelPlace::Path(at) => request.path.replace_range(at.clone(), name),
                ModelPlace::Body(places) => request.body = renamed(&request.body, places, name),
            }
        }
        request
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
        state.target.clone_from(&self.leg(turn).target.name);
        state.retries = turn.retries();
        state.waited_ms = turn.waited_ms();
        (state.phase, state.next_at) = match turn.want() {
            Want::Wake(_, at) => (CallPhase::Waiting, Some(at.0)),
            _ => (CallPhase::Asking, None),
        };
        state.because = retry.as_ref().and_then(|retry| retry.message.clone());
        state.category = retry.and_then(|retry| retry.category);
    }

    fn log(&self, turn: &Turn, event: &EventBody) {
        let EventBody::ProviderRetry { attempt, delay_ms, message, category, .. } = event else { return };
        let (call, target) = (&self.call.id, &self.leg(turn).target.name);
        let category = category.map(Category::as_str);
        tracing::info!(%call, target, attempt, delay_ms, category, error = message, "a call waits");
    }
}

/// Replaces the strings at these places of a JSON text.
fn renamed(body: &Bytes, places: &[std::ops::Range<usize>], name: &str) -> Bytes {
    let name = serde_json::Value::from(name).to_string();
    let mut renamed = Vec::with_capacity(body.len() + places.len() * name.len());
    let mut from = 0;
    for place in places {
        renamed.extend_from_slice(&body[from..place.start]);
        renamed.extend_from_slice(name.as_bytes());
        from = place.end;
    }
    renamed.extend_from_slice(&body[from..]);
    renamed.into()
}

#[async_trait]
impl Host for CallHost {
    type Error = Infallible;

    fn now(&self) -> Millis {
        self.ports.clock.now()
    }

    async fn commit(&mut self, turn: &Turn, effects: &mut Effects) -> Result<(), Infallible> {
        for effect in effects.drain() {
            if let Effect::Tell(event) = effect {
                self.log(turn, &event);
                if let Some(count) = telemetry::Count::of(&event) {
                    count.add();
                }
            }
        }
        if matches!(turn.want(), Want::Wake(..)) {
            self.call.tape.withdraw_beyond(MOST_REFUSAL);
        }
        self.keep(turn).await;
        self.show(turn);
        self.share_limit(turn, self.now());
        Ok(())
    }

    fn tell(&mut self, _: &Turn, effects: &mut Effects) {
        drop(effects.drain());
    }

    fn stream(&mut self, turn: &Turn, _: Op) -> BoxStream<'static, StreamEvent> {
        self.ask(turn)
    }

    fn run_tool(&mut self, _: u32, _: &ToolCall) -> BoxFuture<'static, ToolAnswer> {
        Box::pin(future::ready(ToolAnswer::error("a call that is passed through has no tools")))
    }

    /// Whether the call ends without an answer: nobody listens, or the process ends and it waits or may not take longer.
    fn leaves(&mut self, want: Want) -> bool {
        match self.ports.shutdown.stage() {
            Stage::Open => mem::take(&mut self.is_leaving) && !self.call.tape.is_listened_to(),
            Stage::Draining => matches!(want, Want::Wake(..)),
            Stage::Leaving | Stage::Abandoned => want != Want::Nothing,
        }
    }

    fn poll_inbox(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        let Poll::Ready(Some(order)) = self.inbox.poll_recv(cx) else { return Poll::Pending };
        Poll::Ready(match order {
            Order::RetryNow => Input::RetryNow,
            Order::GiveUp | Order::Stop => Input::Abort,
            Order::Release => Input::Release,
            Order::Leave => {
                self.is_leaving = true;
                Input::Save
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_replaced_in_place() {
        let body = Bytes::from_static(br#"{ "a":1,"model" : "x" ,"b":[1, 2],"model":"y"}"#);
        let places = [18..21, 42..45];
        assert_eq!((&body[18..21], &body[42..45]), (&b"\"x\""[..], &b"\"y\""[..]));
        let expected = r#"{ "a":1,"model" : "a\"b" ,"b":[1, 2],"model":"a\"b"}"#;
        assert_eq!(renamed(&body, &places, "a\"b"), expected);
    }
}
