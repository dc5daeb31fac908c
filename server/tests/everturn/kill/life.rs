//! One conversation across all processes of its server.

use std::{fs, mem::take, os::unix::process::ExitStatusExt as _};

use everturn_orchestrator::{Cursor, Window};
use everturn_sim::{
    Loopback,
    history::{self, Client, Command, Log, Logged},
};
use everturn_store_sqlite::SqliteArchive;
use everturn_wire::{ConversationId, EventBody, StoredChunk};
use hyper::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    calling, embedder,
    plan::{End, Loss, Plan, Program},
    provider::{self, AGAIN, BEFORE, Call, REPORT, SUMMARY, TEXT, TEXT_AGAIN},
    watcher::{Over, Watcher},
};
use crate::{
    client::{get, post, try_send},
    fault::Injection,
    home::{DEADLINE, Home, Server},
};

/// The user's message.
const MESSAGE: &str = "roll";

/// The observations of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) kills: usize,
    /// The journal calls of each process, each as a letter.
    pub(crate) calls: Vec<String>,
    /// The type of each received event, with the number of journal calls its server had made by then.
    pub(crate) heard: Vec<(String, usize)>,
}

/// Runs the plan, then a final process, which must end like an undisturbed one.
///
/// # Panics
/// If an invariant is violated.
pub(crate) async fn run(plan: &Plan) -> Outcome {
    let mut world = World::new(plan.clone()).await;
    if plan.program == Program::Compacting {
        world.greet().await;
    }
    for end in &plan.ends {
        world.live(Some(*end)).await;
    }
    world.live(None).await;
    let kinds = world.watcher.events.iter().map(|event| event["type"].as_str().unwrap().to_owned());
    world.outcome.heard = kinds.zip(world.watcher.calls.iter().copied()).collect();
    world.outcome
}

struct World {
    plan: Plan,
    provider: Loopback,
    home: Home,
    watcher: Watcher,
    /// Whether the server acknowledged the message.
    acknowledged: bool,
    /// Numbers of requests and chunks before the turn.
    before: (usize, usize),
    outcome: Outcome,
}

impl World {
    async fn new(plan: Plan) -> Self {
        let provider = provider::provider(calls(plan.program)).await;
        let home = Home::with(&format!(
            "[tools]\ndice = true\n[tools.policy]\n\"counting__*\" = \"allow\"\n[retry]\nschedule = \"exponential\"\n\
             base_ms = 50\n[[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\nmodels = [\"model\"]\n",
            provider.base_url()
        ));
        if plan.program == Program::Calling {
            calling::configure(&home);
        }
        let trace = (plan.program == Program::Asking).then(|| embedder::trace(&home));
        let (mut watcher, outcome) = (Watcher::default(), Outcome::default());
        watcher.trace = trace;
        Self { plan, provider, home, watcher, acknowledged: false, before: (0, 0), outcome }
    }

    /// Runs an earlier turn, without kills.
    async fn greet(&mut self) {
        let mut server = self.start(None, &self.home.place("calls-before")).await.expect("it starts");
        let message = json!({ "conversationId": "c1", "message": BEFORE });
        assert_eq!(post(&server, "/chat", &message).await.status, 200);
        assert_eq!(self.watcher.watch(&server, usize::MAX).await, Over::Sealed);
        self.watcher.events.clear();
        let history = get(&server, "/conversations/c1").await.json().await;
        self.before = (self.provider.counts().requests, history["chunks"].as_array().unwrap().len());
        server.terminate().await;
        timeout(DEADLINE, server.child.wait()).await.expect("it ends").unwrap();
    }

    /// Runs one process up to its `end`; the last one has none.
    async fn live(&mut self, end: Option<End>) {
        let log = self.home.place(&format!("calls-{}", self.outcome.calls.len()));
        if let Some(mut server) = self.start(end, &log).await {
            let most = match end {
                Some(End::Events(count)) => count,
                _ => usize::MAX,
            };
            self.watcher.log.clone_from(&log);
            let over = self.converse(&server, most).await;
            if over == Over::Enough {
                server.child.kill().await.unwrap();
            } else if over == Over::Sealed {
                if end.is_none() {
                    self.check(&server).await;
                }
                server.terminate().await;
            }
            let status = timeout(DEADLINE, server.child.wait()).await.expect("it ends").unwrap();
            let was_killed = status.signal() == Some(9);
            assert!(was_killed || status.success() && over == Over::Sealed, "{status} after {over:?}");
            assert!(end.is_some() || !was_killed, "nobody meant to kill the last one");
            self.outcome.kills += usize::from(was_killed);
            if end.is_none() {
                self.check_log();
            }
        } else {
            assert!(matches!(end, Some(End::Call(..))), "it did not start");
            self.outcome.kills += 1;
        }
        self.outcome.calls.push(fs::read_to_string(&log).unwrap_or_default());
        if self.plan.loss == Loss::Power && end.is_some() {
            Injection::cut_power(&self.home, &self.home.place("image"));
        }
    }

    /// Starts the next process; `None` if it ends before it prints its URL.
    async fn start(&self, end: Option<End>, log: &std::path::Path) -> Option<Server> {
        let mut fault = Injection::none().logged(log);
        if let Some(End::Call(moment, number)) = end {
            fault = fault.kill(number, moment);
        }
        if self.plan.loss == Loss::Power {
            fs::create_dir_all(self.home.place("image")).unwrap();
            fault = fault.imaged(&self.home.place("image").canonicalize().unwrap());
        }
        let mut command = match self.plan.program {
            program if program.is_binary() => self.home.command(&["--listen", "127.0.0.1:0"]),
            program => embedder::command(&self.home, &self.provider, program),
        };
        fault.inject(&mut command, &self.home);
        self.home.launch(command).await
    }

    /// Sends the message unless it was received, and watches the turn.
    async fn converse(&mut self, server: &Server, most: usize) -> Over {
        let is_first_life = self.outcome.calls.is_empty();
        let is_there = if is_first_life {
            false
        } else {
            let path = "/conversations/c1";
            let Some(answer) = try_send(server, Method::GET, path, &[], String::new()).await else {
                return Over::Lost;
            };
            let is_there = answer.status == 200;
            let Some(text) = answer.try_text().await else { return Over::Lost };
            is_there && text.contains(MESSAGE)
        };
        assert!(is_there || !self.acknowledged, "what was acknowledged is gone");
        if !is_there {
            let json = [("content-type", "application/json")];
            let message = first_message(self.plan.program).to_string();
            let answer = try_send(server, Method::POST, "/chat", &json, message).await;
            let Some(answer) = answer else { return Over::Lost };
            assert_eq!(answer.status, 200);
            self.acknowledged = true;
        }
        // Sealed in an earlier process, and seen by the watcher.
        if self.watcher.is_sealed() {
            return Over::Sealed;
        }
        self.watcher.watch(server, most).await
    }

    /// Checks what must hold in every run.
    async fn check(&mut self, server: &Server) {
        let (watcher, provider) = (&self.watcher, &self.provider);
        let counts = ["user-message", "done", "turn-sealed"].map(|kind| watcher.count(kind));
        assert_eq!(counts, [1, 1, 1], "{:#?}", watcher.events);
        assert_eq!(watcher.text(), text(self.plan.program), "{:#?}", watcher.events);
        assert!(
            watcher.accounts_for(provider.counts().requests - self.before.0, self.outcome.kills),
            "{} requests, {} kills: {:#?}",
            provider.counts().requests,
            self.outcome.kills,
            watcher.events
        );
        let results: Vec<&str> = calls(self.plan.program)
            .iter()
            .map(|call| match watcher.results(call.id)[..] {
                [result] => result,
                _ => panic!("{:#?}", watcher.events),
            })
            .collect();
        match (self.plan.program, &results[..]) {
            (Program::Calling, &[once, again]) => calling::check(&self.home, self.outcome.kills, once, again),
            _ => self.check_tool(results[0]),
        }
        let history = get(server, "/conversations/c1").await.json().await;
        check_history(&history["chunks"].as_array().unwrap()[self.before.1..], &results, &self.plan);
        let list = get(server, "/conversations").await.json().await;
        assert!(list.to_string().contains("\"c1\""), "{list}");

        // The conversation continues, and every provider accepts the request.
        let second = json!({ "conversationId": "c1", "message": AGAIN });
        assert_eq!(post(server, "/chat", &second).await.status, 200);
        assert_eq!(self.watcher.watch(server, usize::MAX).await, Over::Sealed);
        assert_eq!(self.watcher.text(), format!("{}{TEXT_AGAIN}", text(self.plan.program)));
        let flaws: Vec<_> = self.provider.requests().iter().filter_map(provider::flaw).collect();
        assert!(flaws.is_empty(), "{flaws:#?}");
    }

    /// Checks that the watcher read the log that is in the file in the end, with what was acknowledged.
    fn check_log(&mut self) {
        let (file, id) = (SqliteArchive::open(self.home.journal()).unwrap(), ConversationId::from("c1"));
        let events = file.events(&id, Cursor::default(), usize::MAX).unwrap();
        let events = events.iter().map(|stored| Logged {
            start: stored.start.value(),
            end: stored.end.value(),
            event: serde_json::from_slice(&stored.json).unwrap(),
        });
        let chunks = file.chunks(&id, Window::default()).unwrap();
        let mut log = Log {
            events: events.collect(),
            chunks: chunks.iter().map(|chunk| StoredChunk::clone(chunk)).collect(),
        };
        // The watcher leaves with the seal, before it is told that the conversation is idle.
        let seal = log.events.iter().rposition(|logged| matches!(logged.event.body, EventBody::TurnSealed));
        log.events.truncate(seal.unwrap() + 1);
        let watcher =
            Client { name: "the watcher".to_owned(), seen: take(&mut self.watcher.seen), is_at_end: true };
        let commands = [MESSAGE, AGAIN].map(|text| Command::Said(text.to_owned()));
        assert_eq!(history::check(&log, &[watcher], &commands), Vec::<String>::new());
    }

    /// Checks that a tool ran once, or that its only run is reported as interrupted.
    fn check_tool(&self, result: &str) {
        let was_interrupted = result.contains("interrupted");
        assert!(!was_interrupted || self.outcome.kills > 0, "nothing interrupted it: {result}");
        if self.plan.program == Program::Asking {
            assert_eq!(self.watcher.count("review-started"), 1, "{:#?}", self.watcher.events);
            assert_eq!(self.watcher.count("review-completed"), 1, "{:#?}", self.watcher.events);
            assert_eq!(self.watcher.count("approval-requested"), 1, "{:#?}", self.watcher.events);
            assert_eq!(self.watcher.count("approval-resolved"), 1, "{:#?}", self.watcher.events);
            assert!(self.watcher.answers > 0);
        }
        let compactions = ["compaction-started", "compaction-completed"].map(|kind| self.watcher.count(kind));
        assert_eq!(compactions, [usize::from(self.plan.program == Program::Compacting); 2]);
        let reports = usize::from(self.plan.program == Program::Reporting);
        assert_eq!(self.watcher.count("final-report"), reports, "{:#?}", self.watcher.events);
        if self.plan.program == Program::Handing {
            assert!(result.contains("handed"), "it ran here: {result}");
        }
        if !self.plan.program.is_binary() {
            let trace = fs::read_to_string(embedder::trace(&self.home)).unwrap_or_default();
            let runs = trace.lines().count();
            assert!(runs <= 1, "it ran {runs} times");
            assert!(was_interrupted || (runs == 1 && result == embedder::ANSWER), "{runs}: {result}");
        }
    }
}

/// Returns the tools that the first turn calls.
fn calls(program: Program) -> &'static [Call] {
    match program {
        Program::Calling => &calling::CALLS,
        Program::Reporting => {
            &[Call { id: "call_1", tool: "roll_dice" }, Call { id: "report_1", tool: REPORT }]
        }
        Program::Everturn | Program::Embedder | Program::Asking | Program::Compacting | Program::Handing => {
            &[Call { id: "call_1", tool: "roll_dice" }]
        }
    }
}

/// Returns the text of the first turn. A turn that hands its call over ends without one.
fn text(program: Program) -> &'static str {
    if program == Program::Handing { "Let me roll. " } else { TEXT }
}

/// Returns the message that begins the first turn.
fn first_message(program: Program) -> Value {
    match program {
        Program::Reporting => {
            let schema = json!({ "type": "object", "required": ["status"] });
            json!({ "conversationId": "c1", "message": MESSAGE, "finalReport": { "schema": schema } })
        }
        Program::Handing => json!({
            "conversationId": "c1",
            "messages": [{ "role": "user", "chunks": [{ "type": "text", "text": MESSAGE }] }],
            "tools": [{ "name": "roll_dice", "inputSchema": { "type": "object" } }],
        }),
        _ => json!({ "conversationId": "c1", "message": MESSAGE }),
    }
}

fn check_history(chunks: &[Value], results: &[&str], plan: &Plan) {
    let first = chunks[0]["seq"].as_u64().unwrap();
    assert!(chunks.iter().zip(first..).all(|(stored, seq)| stored["seq"] == seq), "{chunks:#?}");
    let of = |role: &'static str, kind: &'static str, field: &'static str| {
        let matching =
            chunks.iter().filter(move |stored| stored["role"] == role && stored["chunk"]["type"] == kind);
        matching.map(move |stored| stored["chunk"][field].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(of("user", "text", "text"), [MESSAGE], "{chunks:#?}");
    assert_eq!(of("assistant", "text", "text").concat(), text(plan.program), "{chunks:#?}");
    let ids: Vec<_> = calls(plan.program).iter().map(|call| call.id).collect();
    assert_eq!(of("assistant", "tool-call", "toolCallId"), ids, "{chunks:#?}");
    // In the order in which the calls ended.
    let told = of("tool", "tool-result", "toolCallId").into_iter().zip(of("tool", "tool-result", "content"));
    let (mut told, mut due): (Vec<_>, Vec<_>) =
        (told.collect(), ids.into_iter().zip(results.iter().copied()).collect());
    told.sort_unstable();
    due.sort_unstable();
    assert_eq!(told, due, "{chunks:#?}");
    let system = of("system", "system", "text");
    match (plan.program, &system[..]) {
        (Program::Compacting, [summary]) => assert_eq!(*summary, SUMMARY),
        (Program::Reporting, [guidance]) => assert!(guidance.starts_with("TURN-FAILED: "), "{guidance}"),
        (program, other) => {
            let needs_none = !matches!(program, Program::Compacting | Program::Reporting);
            assert!(needs_none && other.is_empty(), "{other:?}");
        }
    }
}
