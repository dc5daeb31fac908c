//! Three real nodes with a conversation, of which one fails, and a person with a command at the last one.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use everturn_kernel::{
    Arguments, FinishReason, Millis, Provider, Request, StreamEvent, ToolAnswer, ToolCall, ToolSpec, Turn,
};
use everturn_model::{turns::Script, world::Command};
use everturn_orchestrator::{
    Clock, Commit, Error, Invocation, MemoryState, Orchestrator, Policy, StartTurn, Tool,
};
use everturn_sim::{
    WallClock,
    cluster::{Carriage, Cut, Noise, SharedLog, Way},
};
use everturn_wire::{
    ApprovalAnswer, ApprovalScope, Category, ConversationId, Failure, StepId, Value, Verdict,
};
use futures_util::{
    StreamExt as _,
    future::join,
    stream::{self, BoxStream},
};
use tokio::time::{sleep, timeout};

use crate::record::{Record, Seen};

/// The nodes.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// How long after the last fault everything has settled.
const SETTLED: Duration = Duration::from_secs(300);

/// What a turn does, and what the person does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    ToolTwice,
    Stop,
    Message,
    Approval,
    Wait,
    /// A stop that arrives late or twice; another turn begins meanwhile.
    LateStop,
    /// The same of a *retry now*; another wait begins meanwhile.
    LateRetryNow,
    /// An answer that arrives twice while the log is slow.
    LateApproval,
}

/// What was run, and what was seen.
#[derive(Clone)]
pub(crate) struct Ran {
    pub(crate) script: Script,
    pub(crate) trace: Vec<(u64, Seen)>,
}

impl Kind {
    pub(crate) const ALL: [Self; 9] = [
        Self::Tool,
        Self::ToolTwice,
        Self::Stop,
        Self::Message,
        Self::Approval,
        Self::Wait,
        Self::LateStop,
        Self::LateRetryNow,
        Self::LateApproval,
    ];

    fn script(self) -> Script {
        Script {
            calls: [
                !matches!(
                    self,
                    Self::Stop | Self::Message | Self::Wait | Self::LateStop | Self::LateRetryNow
                ),
                false,
            ],
            asks: matches!(self, Self::Approval | Self::LateApproval),
            is_idempotent: self == Self::ToolTwice,
            is_held: false,
            refusals: if matches!(self, Self::Wait | Self::LateRetryNow) { 2 } else { 0 },
        }
    }

    fn command(self) -> Option<Command> {
        match self {
            Self::Tool | Self::ToolTwice => None,
            Self::Stop | Self::LateStop => Some(Command::Stop),
            Self::Message => Some(Command::Enqueue),
            Self::Approval | Self::LateApproval => Some(Command::Allow),
            Self::Wait | Self::LateRetryNow => Some(Command::RetryNow),
        }
    }
}

/// Runs nodes of this kind; the seed decides what happens when.
pub(crate) fn run(kind: Kind, seed: u64) -> Ran {
    ran(kind, seed, async |nodes| {
        nodes.begin().await;
        let random = fastrand::Rng::with_seed(seed);
        match kind {
            Kind::LateStop | Kind::LateRetryNow | Kind::LateApproval => {
                nodes.meet_late_commands(random).await;
            }
            _ => nodes.meet(random).await,
        }
    })
}

/// A stop of a turn that a node has begun, before it learns that.
pub(crate) fn early_stop() -> Ran {
    ran(Kind::Message, 0, async |nodes| {
        nodes.begin().await;
        nodes.send(Command::Enqueue).await;
        nodes.log.part(NAMES[0], Cut { log: Way::In, ..Cut::default() });
        // The message begins the next turn.
        sleep(Duration::from_secs(1)).await;
        let heal = async {
            sleep(Duration::from_millis(500)).await;
            nodes.log.heal(NAMES[0]);
        };
        join(nodes.send(Command::Stop), heal).await;
    })
}

fn ran(kind: Kind, seed: u64, act: impl AsyncFnOnce(&Nodes)) -> Ran {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let nodes = Nodes::new(kind, seed);
        act(&nodes).await;
        sleep(SETTLED).await;
        let trace = nodes.record.pages().with_waits();
        Ran { script: kind.script(), trace }
    })
}

struct Nodes {
    kind: Kind,
    id: ConversationId,
    log: SharedLog,
    record: Record,
    nodes: Vec<Orchestrator>,
}

impl Nodes {
    fn new(kind: Kind, seed: u64) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(WallClock::new(Millis(1_000_000_000)));
        let log = SharedLog::noisy(clock.clone(), Noise::default(), seed);
        let (record, state) = (Record::new(clock.clone()), Arc::new(MemoryState::default()));
        let witness = record.clone();
        log.witness(move |node, _, commit, fate| {
            let node = NAMES.iter().position(|name| *name == node.0.as_str()).expect("it is one of them");
            witness.appended(node, commit, fate);
        });
        let node = |(node, name): (usize, &&str)| {
            let (journal, cluster) = log.node(name);
            let (record, script) = (record.clone(), kind.script());
            Orchestrator::builder()
                .model("key", "model", Arc::new(Line { record: record.clone(), script: script.clone() }))
                .tool(Charge { node, record, script })
                .journal(journal)
                .state(state.clone())
                .clock(clock.clone())
                .cluster(cluster)
                .build()
        };
        let nodes = NAMES.iter().enumerate().map(node).collect();
        Self { kind, id: ConversationId::from("c"), log, record, nodes }
    }

    /// Starts the turn at the first node.
    async fn begin(&self) {
        for node in &self.nodes {
            node.resume().await.unwrap();
        }
        self.nodes[0].start(StartTurn::new("hi").conversation(self.id.clone())).await.unwrap();
    }

    /// What happens, at random.
    async fn meet(&self, mut random: fastrand::Rng) {
        let at = |most: u64, random: &mut fastrand::Rng| Duration::from_millis(random.u64(0..most));
        let (command_at, fault_at) = (at(4_000, &mut random), at(3_000, &mut random));
        let fault = random.u8(0..6);
        let absence = Duration::from_millis(random.choice([400, 1_200, 5_000, 12_000, 40_000]).unwrap());
        let person = async {
            sleep(command_at).await;
            if let Some(command) = self.kind.command() {
                self.send(command).await;
            }
        };
        let trouble = async {
            match fault {
                0 => {}
                1 => {
                    sleep(fault_at).await;
                    self.nodes[0].abandon();
                    self.log.kill(NAMES[0]);
                    self.record.note(Seen::Killed(0));
                }
                2 => {
                    sleep(fault_at).await;
                    self.log.cut_off(NAMES[0]);
                    self.record.note(Seen::CutOff(0));
                    sleep(absence).await;
                    self.log.connect(NAMES[0]);
                }
                3 => {
                    let frozen = self.log.freeze_after(NAMES[0], starts_calls);
                    if timeout(Duration::from_secs(5), frozen).await.is_ok_and(|frozen| frozen.is_ok()) {
                        self.record.note(Seen::CutOff(0));
                        sleep(absence).await;
                        self.log.connect(NAMES[0]);
                    }
                }
                4 => {
                    sleep(fault_at).await;
                    self.log.part(NAMES[0], Cut { bus: Way::Out, ..Cut::default() });
                    self.record.note(Seen::Unheard(0));
                    sleep(absence).await;
                    self.log.heal(NAMES[0]);
                }
                _ => {
                    let chance = 1.0;
                    let mut noise = Noise::default();
                    *match random.u8(0..3) {
                        0 => &mut noise.unknown,
                        1 => &mut noise.unsent,
                        _ => &mut noise.delayed,
                    } = chance;
                    sleep(fault_at).await;
                    self.log.disturb(noise);
                    sleep(Duration::from_millis(500)).await;
                    self.log.calm();
                }
            }
        };
        join(person, trouble).await;
    }

    /// Commands arrive late or twice, near the end of what they are meant for.
    async fn meet_late_commands(&self, mut random: fastrand::Rng) {
        let Some(command) = self.kind.command() else { return };
        let commands = Carriage { doubled: 0.5, late: 0.7, ..Carriage::default() };
        self.log.disturb(Noise { commands, ..Noise::default() });
        self.record.note(Seen::Late);
        let (command_at, next_at) = match command {
            // The first turn takes 0.8 s.
            Command::Stop => (random.u64(0..800), Some(random.u64(850..3_500))),
            // The first wait ends after 60.4 s.
            Command::RetryNow => (random.u64(56_500..60_400), None),
            _ => (random.u64(900..2_000), None),
        };
        // Or they and the answer to whether its node is alive do not arrive for a while, or appends.
        let cut = match command {
            Command::Allow => Cut { log: Way::Out, ..Cut::default() },
            _ => random
                .choice([
                    Cut::default(),
                    Cut { log: Way::Out, ..Cut::default() },
                    Cut { bus: Way::In, ..Cut::default() },
                ])
                .unwrap_or_default(),
        };
        let cut_for = random.u64(300..6_000);
        let person = async {
            sleep(Duration::from_millis(command_at)).await;
            self.log.part(NAMES[0], cut);
            let heal = async {
                sleep(Duration::from_millis(cut_for)).await;
                self.log.heal(NAMES[0]);
            };
            join(self.send(command), heal).await;
        };
        let next = async {
            let Some(next_at) = next_at else { return };
            sleep(Duration::from_millis(next_at)).await;
            self.record.note(Seen::Begun);
            let begun = self.nodes[0].start(StartTurn::new("again").conversation(self.id.clone())).await;
            assert!(matches!(begun, Ok(_) | Err(Error::Busy { .. })), "the first turn may not be over");
        };
        join(person, next).await;
    }

    /// Sends the command of the person at the last node.
    async fn send(&self, command: Command) {
        let node = &self.nodes[2];
        self.record.note(Seen::Asked(command));
        let told: Result<bool, Error> = match command {
            Command::Stop => node.stop(&self.id).await,
            Command::Enqueue => {
                node.enqueue(&self.id, "m".to_owned(), Some("m".to_owned())).await.map(|_| true)
            }
            Command::RetryNow => node.retry_now(&self.id).await,
            Command::Allow => {
                let turn_id = self.record.pages().turns[0].as_str().into();
                let answer = ApprovalAnswer {
                    step_id: StepId::new(&turn_id, 0),
                    turn_id,
                    tool_call_id: "call".to_owned(),
                    verdict: Verdict::Allowed,
                    scope: Some(ApprovalScope::Conversation),
                    reason: None,
                    name: None,
                    via: None,
                };
                node.answer_approval(&self.id, answer).await
            }
        };
        self.record.note(Seen::Told(told.ok()));
    }
}

/// Whether calls of tools start after this append.
fn starts_calls(commit: &Commit) -> bool {
    let turn = commit.turn.as_ref().map(|record| Turn::restore(record.snapshot.clone()).expect("valid"));
    turn.is_some_and(|turn| turn.running_calls().next().is_some())
}

/// A provider that follows the model's script.
struct Line {
    record: Record,
    script: Script,
}

impl Provider for Line {
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        let (number, retries) = {
            let pages = self.record.pages();
            (pages.turns.len(), pages.turn.as_ref().map_or(0, everturn_kernel::Turn::retries))
        };
        let answer = if number == 1 && retries < self.script.refusals {
            let failure = Failure::new(Category::Overloaded, true, "wait");
            vec![StreamEvent::Failed(Failure { hint_ms: Some(60_000), ..failure })]
        } else if request.op.step > 0 || !self.script.calls[usize::from(number > 1)] {
            vec![StreamEvent::Text("text".to_owned()), StreamEvent::Finished(FinishReason::Stop)]
        } else {
            let arguments = Arguments::Parsed(Value::Null);
            let call = ToolCall { id: "call".to_owned(), name: "tool".to_owned(), arguments, echo: None };
            vec![StreamEvent::ToolCall(call), StreamEvent::Finished(FinishReason::ToolCalls)]
        };
        // Each takes a while, so that something may happen before it.
        let answer = stream::iter(answer).then(async |event| {
            sleep(Duration::from_millis(400)).await;
            event
        });
        answer.boxed()
    }
}

/// The tool. It takes a second.
struct Charge {
    node: usize,
    record: Record,
    script: Script,
}

#[async_trait]
impl Tool for Charge {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "tool".to_owned(), description: String::new(), parameters: Value::Null }
    }

    fn is_idempotent(&self) -> bool {
        self.script.is_idempotent
    }

    fn policy(&self) -> Policy {
        if self.script.asks { Policy::Ask } else { Policy::Allow }
    }

    async fn run(&self, call: Invocation) -> ToolAnswer {
        self.record.started(self.node, call.turn_id.as_str());
        sleep(Duration::from_secs(1)).await;
        ToolAnswer::ok("done")
    }
}
