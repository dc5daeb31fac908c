//! A question to a model beside all conversations: a review of a tool call, a title.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll},
};

use async_trait::async_trait;
use everturn_kernel::{
    Effect, Effects, FinishReason, Host, Input, Millis, Op, Request, Settings, StreamEvent, Target,
    ToolAnswer, ToolCall, Turn, Want, run_turn,
};
use everturn_pacing::{Exponential, RetryPolicy};
use everturn_wire::{CallerName, Category, DoneReason, EventBody, Failure, Message, Priority};
use futures_core::{Stream, future::BoxFuture, stream::BoxStream};
use futures_util::{FutureExt as _, StreamExt as _, future, stream};
use tokio::task::yield_now;

use super::{
    Ports,
    model_call::{ModelCall, gone},
    summary,
};
use crate::{
    Error,
    error::Fault,
    model::{Choice, Model},
    new_id,
    observer::Observers,
    pacing::{Asker, Pace, Paced, size},
    reviewer::Switches,
    telemetry::Count,
    usage::Figures,
};

/// A question to a model beside all conversations, without tools. It is one turn that is neither saved nor counted as one. It is not
/// repeated and does not wait, but moves along its route.
pub(crate) struct SideCall<'p> {
    pub(crate) ports: &'p Arc<Ports>,
    /// The id of the model or route.
    pub(crate) model: &'p str,
    pub(crate) messages: Vec<Message>,
    /// Whose call it is; `None` = the administrator's.
    pub(crate) caller: Option<CallerName>,
    pub(crate) priority: Priority,
    /// Maximum length of the answer, in bytes. A longer one ends there, with an ellipsis.
    pub(crate) most: usize,
    /// Told when it moves to another target.
    pub(crate) switches: Option<Switches>,
}

/// Why there is no answer.
pub(crate) enum Unanswered {
    Failed(Failure),
    /// No call was made: it would have had to wait for as long as the hint says.
    Held(Failure),
}

impl SideCall<'_> {
    /// Returns the text of the answer.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) async fn ask(self) -> Result<String, Unanswered> {
        let ports = self.ports;
        let choice = ports.models.now().choose(Some(self.model), None);
        let choice = choice.map_err(|error| Unanswered::Failed(not_asked(&error)))?;
        let once = RetryPolicy::from(Exponential { max_retries: 0, ..Exponential::default() });
        let (targets, policy) = match choice.as_route() {
            Some(route) => (route.targets.clone(), once.on_route()),
            None => (Vec::new(), once),
        };
        let (retry, now, mut effects) = (ports.timed(policy), ports.clock.now(), Effects::new());
        let settings = Settings { targets, max_steps: Some(1), ..Settings::default() };
        let mut turn = Turn::begin_over(new_id::turn(), settings, Vec::new(), None, now, &mut effects);
        turn.choose_first_target(now, &retry, &mut effects);
        let mut host =
            SideHost { asked: self, choice, called: None, progress: Arc::default(), text: String::new() };
        let Ok(_) = run_turn(&mut turn, &mut effects, &mut host, Some(&retry)).await;
        let outcome = turn.outcome();
        let Some(failure) = outcome.and_then(|outcome| outcome.failure.clone()) else {
            let calls_tool = outcome.is_some_and(|outcome| outcome.reason == DoneReason::MaxSteps);
            if calls_tool && host.text.is_empty() {
                let text = "it called a tool instead of answering";
                return Err(Unanswered::Failed(Failure::new(Category::InvalidResponse, true, text)));
            }
            return Ok(host.text);
        };
        Err(match host.progress.load(Ordering::Relaxed) {
            0 if failure.hint_ms.is_some() => Unanswered::Held(failure),
            // It would be the same if it were asked again.
            COMPLETE if failure.category == Category::InvalidResponse => {
                Unanswered::Failed(Failure { category: Category::Unknown, ..failure })
            }
            _ => Unanswered::Failed(failure),
        })
    }
}

/// The failure of a question that cannot be asked; another attempt would not help.
fn not_asked(error: &Error) -> Failure {
    let category = match error.fault() {
        Fault::Caller => Category::InvalidRequest,
        _ => Category::Internal,
    };
    Failure::new(category, false, error.to_string())
}

/// Ends an answer that has more bytes of text than this. What there is may be valid by itself; with the ellipsis it is not.
fn within(most: usize, events: impl Stream<Item = StreamEvent>) -> impl Stream<Item = StreamEvent> {
    let bounded = events.scan(0, move |length, event| {
        let is_over = *length > most;
        if let StreamEvent::Text(text) = &event {
            *length += text.len();
        }
        let events = match event {
            _ if *length <= most => vec![event],
            _ => vec![StreamEvent::Text("…".to_owned()), StreamEvent::Finished(FinishReason::Length)],
        };
        future::ready((!is_over).then(|| stream::iter(events)))
    });
    bounded.flatten()
}

/// How far the calls have come: one was made; the last one ended well. Tells an answer without a text from one that broke off.
const MADE: u8 = 1;
const COMPLETE: u8 = 2;

/// The kernel driver's host for one question.
struct SideHost<'p> {
    asked: SideCall<'p>,
    choice: Choice,
    /// The target of the last call; `None` if it was not made.
    called: Option<Target>,
    progress: Arc<AtomicU8>,
    text: String,
}

impl SideHost<'_> {
    fn hear(&mut self, event: EventBody, used: &mut Figures) {
        match event {
            EventBody::TextDelta { delta } => self.text.push_str(&delta),
            EventBody::TargetSwitched { from, to, reason, .. } => {
                if let Some(switches) = &self.asked.switches {
                    switches.tell(from, to, reason);
                }
            }
            EventBody::Usage { usage, .. } => {
                if let Some(target) = &self.called {
                    Count::Tokens(target.name.clone(), usage).add();
                }
                used.add(&Figures::from(&usage));
            }
            EventBody::ProviderRetry { shared: None, .. } | EventBody::Error(_) => {
                used.refusals += u64::from(self.called.is_some());
            }
            _ => {}
        }
    }

    fn pace(&self, turn: &Turn, model: &Model) -> Pace {
        let SideCall { ports, messages, caller, priority, .. } = &self.asked;
        let (now, price) = (ports.clock.now(), ports.usage.price(&model.target));
        let tokens = Figures {
            input: summary::tokens(messages.iter().flat_map(Message::iter)),
            output: ports.pacing.usual_output(&model.id),
            ..Figures::default()
        };
        Pace {
            pacing: ports.pacing.clone(),
            clock: ports.clock.clone(),
            model: model.id.clone(),
            asker: Asker {
                turn: turn.id().clone(),
                caller: caller.clone(),
                // Whoever asks waits instead.
                conversation: None,
                since: turn.wants_since(now),
                priority: (*priority).max(self.choice.priority()),
                size: size(&tokens, price.as_ref()),
                price,
            },
            rejection: ports.health.rejection(now, &model.target),
            insists: false,
            waits_for_caller: false,
            parks_for_caller: false,
            affordable_ms: 0,
            // On a route, `health::watched` reports more than this.
            health: turn.target().is_none().then(|| (ports.health.clone(), model.target.clone())),
            waits_for_network: false,
        }
    }
}

#[async_trait]
impl Host for SideHost<'_> {
    type Error = Infallible;

    fn now(&self) -> Millis {
        self.asked.ports.clock.now()
    }

    async fn commit(&mut self, turn: &Turn, effects: &mut Effects) -> Result<(), Infallible> {
        let mut used = Figures::default();
        for effect in effects.drain() {
            if let Effect::Tell(event) = effect {
                let moves = matches!(event, EventBody::TargetSwitched { .. });
                self.hear(event, &mut used);
                if moves {
                    // So that the turn whose call is reviewed hears of it before the answer.
                    yield_now().await;
                }
            }
        }
        let SideCall { ports, caller, .. } = &self.asked;
        if let Some(target) = &self.called {
            ports.usage.add(caller.as_ref().map(CallerName::as_str), target, self.now(), &used);
            if matches!(turn.want(), Want::Nothing) {
                ports.pacing.forget(&target.name, turn.id(), self.now());
            }
        }
        Ok(())
    }

    fn tell(&mut self, _: &Turn, effects: &mut Effects) {
        for effect in effects.drain() {
            if let Effect::Tell(event) = effect {
                self.hear(event, &mut Figures::default());
            }
        }
    }

    fn stream(&mut self, turn: &Turn, op: Op) -> BoxStream<'static, StreamEvent> {
        let SideCall { ports, messages, caller, .. } = &self.asked;
        self.called = None;
        let model = match ports.models.now().asked(&self.choice, turn.target()) {
            Ok(model) => model,
            Err(failure) => return gone(ports, turn, failure),
        };
        let pace = self.pace(turn, &model).enter();
        let call = ModelCall {
            model: model.clone(),
            request: Request::new(op, &model.name, messages.clone()),
            call: None,
            observers: Observers::new(None),
            account: ports.memory.open(),
            on_route: turn.target().map(|target| (ports.health.clone(), target.clone())),
            is_bare: false,
            clock: ports.clock.clone(),
            usage: ports.usage.clone(),
            caller: caller.as_ref().map(|caller| caller.as_str().to_owned()),
        };
        let (progress, most) = (self.progress.clone(), self.asked.most);
        let make = move |admitted| {
            progress.store(MADE, Ordering::Relaxed);
            let note = move |event: &StreamEvent| {
                if matches!(event, StreamEvent::Finished(_)) {
                    progress.store(COMPLETE, Ordering::Relaxed);
                }
            };
            within(most, call.make(admitted).inspect(note)).boxed()
        };
        self.called = (!matches!(pace, Paced::Held(_))).then(|| model.target.clone());
        match pace {
            Paced::Now(admitted) => make(admitted),
            Paced::Soon(pace) => pace.soon(make),
            Paced::Held(event) => stream::once(future::ready(event)).boxed(),
        }
    }

    fn run_tool(&mut self, _: &Turn, _: u32, _: &ToolCall) -> BoxFuture<'static, ToolAnswer> {
        // It was offered none.
        future::ready(ToolAnswer::error("there are no tools")).boxed()
    }

    fn poll_inbox(&mut self, _: &mut Context<'_>) -> Poll<Input> {
        Poll::Pending
    }
}
