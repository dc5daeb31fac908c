//! The kernel's turns as small numbers: the model's turns are real ones, and only their transitions are remembered.

use std::{cell::RefCell, collections::HashMap, time::Duration};

use everturn_kernel::{
    Answer, Approval, Arguments, Check, CheckedCall, Effect, Effects, FinishReason, Hold, Input, Millis, Op,
    Prompt, Retry, Schedule, Settings, Snapshot, StreamEvent, ToolAnswer, ToolCall, Turn, Want,
};
use everturn_wire::{
    ApprovalScope, Because, Category, DoneReason, EventBody, Failure, QueuedMessage, TurnId, Value, Verdict,
};

/// A turn.
pub type Id = u16;

const NOW: Millis = Millis(1_000);
const MESSAGE: &str = "m";

/// What the model, the tools and the provider do.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Whether the turns call a tool.
    pub calls: [bool; 2],
    /// Whether the tool needs approval.
    pub asks: bool,
    /// Whether the tool may run twice.
    pub is_idempotent: bool,
    /// The first call is put off because of other turns.
    pub is_held: bool,
    /// How often the provider refuses a turn, each time with a wait.
    pub refusals: u32,
}

/// What a turn is fed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fed {
    /// The provider answers; `granted`: the tool is allowed for the conversation.
    Provider {
        /// Whether it was when the session began.
        granted: bool,
    },
    /// The wait is over.
    Tick,
    /// The reason for putting the call off is gone.
    Release,
    /// The tool is done.
    ToolDone,
    /// A person allows the tool for the whole conversation.
    Allow,
    /// A person sends a message.
    Steer,
    /// A person stops the turn.
    Stop,
    /// A person skips the wait.
    RetryNow,
    /// The turn was taken up from the journal.
    Recover,
    /// Save it again.
    Save,
}

/// What an append says. What it does not mention has not changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Facts {
    /// A turn is sealed.
    pub seals: bool,
    /// It was stopped.
    pub stops: bool,
    /// The call is reported as interrupted by a crash.
    pub interrupts: bool,
    /// A person allowed the tool for the conversation.
    pub allows: bool,
    /// The message is added to the queue.
    pub queues: bool,
    /// The message is said.
    pub says: bool,
    /// A person ended a wait.
    pub hurries: bool,
    /// A wait ended before its time although nobody asked for it.
    pub is_early: bool,
    /// A turn begins.
    pub begins: bool,
}

/// What can be seen of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// What it needs.
    pub needs: Needs,
    /// A call runs that must not run twice.
    pub may_be_starting: bool,
    /// A call should be running.
    pub runs: bool,
    /// A call waits for a person, maybe while the answer goes on.
    pub asks: bool,
    /// Whether *retry now* would have an effect.
    pub takes_retry_now: bool,
    /// The message is in its queue.
    pub has_queue: bool,
}

/// What a turn needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// A provider call.
    Provider,
    /// That time passes.
    Time,
    /// Tools.
    Tools,
    /// A person.
    Person,
    /// Nothing: it is sealed.
    Nothing,
}

/// A transition.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    /// The turn after it.
    pub turn: Id,
    /// What must be saved; `None` if nothing changed.
    pub facts: Option<Facts>,
}

/// All turns met so far.
pub struct Turns {
    script: Script,
    known: RefCell<Vec<(Turn, View)>>,
    ids: RefCell<HashMap<String, Id>>,
    moves: RefCell<HashMap<(Id, Fed), Moved>>,
}

struct EveryMinute;

impl Schedule for EveryMinute {
    fn delay_for(&self, _: &Retry<'_>) -> Option<Duration> {
        Some(Duration::from_secs(60))
    }
}

impl Turns {
    /// Turns of this script.
    pub fn new(script: Script) -> Self {
        Self { script, known: RefCell::default(), ids: RefCell::default(), moves: RefCell::default() }
    }

    /// Begins a turn; `says`: with the message.
    pub fn begin(&self, number: u8, says: bool) -> Moved {
        let settings = Settings {
            idempotent_tools: if self.script.is_idempotent { vec!["tool".into()] } else { Vec::new() },
            max_recoveries: 9,
            ..Settings::default()
        };
        let text = if says { MESSAGE } else { "hi" }.to_owned();
        let mut fx = Effects::new();
        let prompt = Prompt { text, images: Vec::new() };
        let turn = Turn::begin(TurnId::from(number.to_string().as_str()), settings, prompt, NOW, &mut fx);
        Moved { turn: self.know(&turn), facts: Some(Facts { begins: true, says, ..Facts::default() }) }
    }

    /// Returns what can be seen of a turn.
    pub fn view(&self, turn: Id) -> View {
        self.known.borrow()[usize::from(turn)].1
    }

    /// Feeds a turn.
    pub fn feed(&self, turn: Id, fed: Fed) -> Moved {
        if let Some(moved) = self.moves.borrow().get(&(turn, fed)) {
            return *moved;
        }
        let moved = self.compute(turn, fed);
        self.moves.borrow_mut().insert((turn, fed), moved);
        moved
    }

    fn compute(&self, id: Id, fed: Fed) -> Moved {
        let before = self.known.borrow()[usize::from(id)].0.clone();
        let (mut turn, mut fx) = (before.clone(), Effects::new());
        let (mut facts, mut is_saved) = (Facts::default(), false);
        for (now, input) in self.inputs(&turn, fed) {
            turn.handle(now, input, &EveryMinute, &mut fx);
            is_saved = fx.is_binding() || turn.revision() != before.revision();
            for effect in fx.drain() {
                if let Effect::Tell(event) = effect {
                    facts.note(&event, before.queue().len());
                }
            }
            if is_saved {
                // The rest of an answer comes after that.
                break;
            }
        }
        if !is_saved {
            return Moved { turn: id, facts: None };
        }
        let waited = matches!(before.want(), Want::Wake(..)) && matches!(turn.want(), Want::Stream(_));
        facts.hurries = waited && fed == Fed::RetryNow;
        facts.is_early = waited && !matches!(fed, Fed::RetryNow | Fed::Tick | Fed::Release);
        Moved { turn: self.know(&turn), facts: Some(facts) }
    }

    fn inputs(&self, turn: &Turn, fed: Fed) -> Vec<(Millis, Input)> {
        let step = match turn.want() {
            Want::Stream(op) | Want::Wake(op, _) => op.step,
            Want::Tools { step, .. } | Want::Person { step, .. } => step,
            Want::Nothing => 0,
        };
        let input = match fed {
            Fed::Provider { granted } => {
                let Want::Stream(op) = turn.want() else { return Vec::new() };
                let events = self.answer(turn, op, granted).into_iter();
                return events.map(|event| (NOW, Input::Provider(op, event))).collect();
            }
            Fed::Tick => {
                let Want::Wake(op, at) = turn.want() else { return Vec::new() };
                return vec![(at, Input::Tick(op))];
            }
            Fed::Release => Input::Release,
            Fed::ToolDone => Input::ToolDone { step, call_id: "call".into(), answer: ToolAnswer::ok("done") },
            Fed::Allow => Input::Answer(Box::new(Answer {
                step,
                call_id: "call".into(),
                allows: true,
                whole_tool: true,
                reason: None,
                name: None,
                via: None,
            })),
            Fed::Steer => Input::Steer(QueuedMessage { message_id: MESSAGE.into(), text: MESSAGE.into() }),
            Fed::Stop => Input::Abort,
            Fed::RetryNow => Input::RetryNow,
            Fed::Recover => Input::Recover,
            Fed::Save => Input::Save,
        };
        vec![(NOW, input)]
    }

    fn answer(&self, turn: &Turn, op: Op, granted: bool) -> Vec<StreamEvent> {
        let Script { calls, asks, is_held, refusals, .. } = self.script;
        let is_first = turn.id().as_str() == "1";
        let refusal = Failure::new(Category::RateLimited, true, "wait");
        if is_first && is_held && op == Op::default() {
            let hold = Hold {
                failure: refusal,
                wait_ms: 30_000,
                shared: true,
                because: Because::Hint,
                in_budget: true,
                open_ended: false,
            };
            return vec![StreamEvent::Held(Box::new(hold))];
        }
        if is_first && turn.retries() < refusals + u32::from(is_held) {
            return vec![StreamEvent::Failed(refusal)];
        }
        if op.step > 0 || !calls[usize::from(!is_first)] {
            return vec![StreamEvent::Text("text".into()), StreamEvent::Finished(FinishReason::Stop)];
        }
        let call = ToolCall {
            id: "call".into(),
            name: "tool".into(),
            arguments: Arguments::Parsed(Value::Null),
            echo: None,
        };
        if has_called(turn) {
            return vec![StreamEvent::Finished(FinishReason::ToolCalls)];
        }
        let call = match asks && !granted {
            true => {
                let checked = Check::Person(Approval::default()).into();
                StreamEvent::Checked(Box::new(CheckedCall { call, checked }))
            }
            false => StreamEvent::ToolCall(call),
        };
        vec![call, StreamEvent::Finished(FinishReason::ToolCalls)]
    }

    /// Returns the number of a turn, as it is restored from what was saved of it.
    fn know(&self, turn: &Turn) -> Id {
        let Ok(mut saved) = serde_json::to_value(turn.snapshot()) else { return Id::MAX };
        // It only tells whether something changed.
        saved["revision"] = 0.into();
        let mut known = self.known.borrow_mut();
        *self.ids.borrow_mut().entry(saved.to_string()).or_insert_with(|| {
            let restored =
                serde_json::from_value::<Snapshot>(saved).ok().and_then(|it| Turn::restore(it).ok());
            let restored = restored.unwrap_or_else(|| turn.clone());
            let view = View::of(&restored);
            known.push((restored, view));
            Id::try_from(known.len() - 1).unwrap_or(Id::MAX)
        })
    }
}

/// Whether the answer that streams has called the tool.
fn has_called(turn: &Turn) -> bool {
    serde_json::to_value(turn.snapshot()).is_ok_and(|saved| !saved["phase"]["calls"].is_null())
}

impl View {
    /// What can be seen of this turn.
    pub fn of(turn: &Turn) -> Self {
        let may_start_again = |name: &String| turn.settings().idempotent_tools.contains(name);
        Self {
            needs: match turn.want() {
                Want::Stream(_) => Needs::Provider,
                Want::Wake(..) => Needs::Time,
                Want::Tools { .. } => Needs::Tools,
                Want::Person { .. } => Needs::Person,
                Want::Nothing => Needs::Nothing,
            },
            may_be_starting: turn.running_calls().any(|call| !may_start_again(&call.name)),
            runs: turn.running_calls().next().is_some(),
            asks: turn.asked_calls().next().is_some(),
            takes_retry_now: turn.takes_retry_now(),
            has_queue: !turn.queue().is_empty(),
        }
    }
}

impl Facts {
    /// Notes an event; `queued`: the length of the queue before the append.
    pub fn note(&mut self, event: &EventBody, queued: usize) {
        match event {
            EventBody::TurnSealed => self.seals = true,
            EventBody::Done { reason: DoneReason::Aborted, .. } => self.stops = true,
            EventBody::ToolResult { is_error: true, content, .. } => {
                self.interrupts |= content.contains("interrupted by a restart");
            }
            EventBody::ApprovalResolved { verdict: Verdict::Allowed, scope, .. } => {
                self.allows |= *scope == Some(ApprovalScope::Conversation);
            }
            EventBody::QueueChanged { queue } => self.queues |= queue.len() > queued,
            EventBody::Steering { .. } => self.says = true,
            _ => {}
        }
    }
}
