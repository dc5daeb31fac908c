//! Questions of running tools: one at a time, answered once, and never kept.

use std::{future::pending, sync::Arc, time::Duration};

use async_trait::async_trait;
use everturn_orchestrator::{
    Ask, Error, Invocation, Reply, Tool,
    kernel::{ToolAnswer, ToolSpec},
};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{
    Chunk, ConversationStatus, OutputStream, Question, QuestionAction, QuestionAnswer, QuestionField,
    QuestionKind, QuestionOutcome, Value,
};
use futures_util::{FutureExt as _, future::join};
use serde_json::json;
use tokio::{
    sync::{Notify, mpsc},
    time::timeout,
};

use crate::support::{World, answer, ask, builder, lines, text};

/// Asks two things at once: for a PIN, and for a page to be opened.
pub(crate) struct Curious;

#[async_trait]
impl Tool for Curious {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "curious".to_owned(), description: String::new(), parameters: Value::Null }
    }

    async fn run(&self, call: Invocation) -> ToolAnswer {
        let pin = json!({ "name": "pin", "kind": "text", "required": true, "minimum": 4 });
        let pin: QuestionField = serde_json::from_value(pin).unwrap();
        let page = Ask::Url("https://bank.example/".to_owned());
        let answers = join(
            call.people.ask("bank", "Your PIN?", Ask::Form(vec![pin])),
            call.people.ask("bank", "Go there", page),
        );
        let (pin, page) = answers.await;
        let is_known = matches!(&pin, Reply::Accepted(values) if values["pin"] == "4711");
        ToolAnswer::ok(format!("the PIN is known: {is_known}; the page: {page:?}"))
    }
}

pub(crate) fn reply(question: &Question, action: QuestionAction, content: Option<Value>) -> QuestionAnswer {
    QuestionAnswer {
        question_id: question.question_id.clone(),
        action,
        content,
        name: Some("Ada".to_owned()),
        via: Some("page".to_owned()),
    }
}

impl World {
    /// The only open question.
    pub(crate) async fn question(&self) -> Question {
        let questions = self.orchestrator.status(&self.id).await.unwrap().questions.unwrap();
        assert_eq!(questions.len(), 1, "one at a time");
        questions[0].clone()
    }
}

#[tokio::test(start_paused = true)]
async fn questions_are_asked_one_at_a_time_and_their_answers_are_kept_nowhere() {
    let provider = Scripted::new([ask("curious", &["c"]), answer("thanks")]);
    let world = World::of(builder(provider).tool(Curious));
    let mut watcher = world.say("hi").await;
    watcher.until("question-asked Your PIN?").await;
    assert_eq!(world.status().await, ConversationStatus::Queued);
    let question = world.question().await;
    let give = async |question: &Question, action, content| {
        world.orchestrator.answer_question(&world.id, reply(question, action, content)).await
    };
    let accept = QuestionAction::Accept;
    for (wrong, why) in [(json!({ "pin": "47" }), "at least 4 characters"), (json!({}), "pin is required")] {
        let refused = give(&question, accept, Some(wrong)).await;
        assert!(matches!(&refused, Err(Error::BadAnswer { why: told }) if told.contains(why)), "{refused:?}");
    }
    let long = || Some("x".repeat(201));
    let right = reply(&question, accept, Some(json!({ "pin": "4711" })));
    for wrong in
        [QuestionAnswer { name: long(), ..right.clone() }, QuestionAnswer { via: long(), ..right.clone() }]
    {
        let refused = world.orchestrator.answer_question(&world.id, wrong).await;
        assert!(
            matches!(&refused, Err(Error::BadAnswer { why }) if why.contains("200 bytes")),
            "{refused:?}"
        );
    }
    assert!(give(&question, accept, Some(json!({ "pin": "4711" }))).await.unwrap());
    assert!(!give(&question, accept, Some(json!({ "pin": "4711" }))).await.unwrap(), "once");
    watcher.until("question-asked Go there").await;
    let question = world.question().await;
    assert!(give(&question, QuestionAction::Decline, None).await.unwrap());
    let told = watcher.turn().await;
    let result = "tool-result c the PIN is known: true; the page: Declined".to_owned();
    assert!(told.contains(&result), "{told:?}");
    assert_eq!(world.orchestrator.status(&world.id).await.unwrap().questions, None);
    let chunks = world.chunks().await;
    let kept = chunks.iter().find_map(|stored| match &*stored.chunk {
        Chunk::ToolResult { questions, .. } => Some(questions.clone()),
        _ => None,
    });
    let kept: Vec<_> = kept.unwrap().into_iter().map(|of| (of.kind, of.outcome, of.name, of.via)).collect();
    let (ada, page) = (Some("Ada".to_owned()), Some("page".to_owned()));
    let form = (QuestionKind::Form, QuestionOutcome::Accepted, ada.clone(), page.clone());
    assert_eq!(
        kept,
        [form, (QuestionKind::Url, QuestionOutcome::Declined, ada, page)],
        "kept with the result"
    );
    let all = lines(&world.watch(Some(Default::default())).await.frames().await);
    let journal = format!("{all:?}{:?}", world.chunks().await);
    assert!(journal.contains("question-settled") && !journal.contains("4711"), "{journal}");
}

/// Withdraws its question while its output fills the turn's inbox, and then waits.
struct Fickle(Arc<Notify>);

#[async_trait]
impl Tool for Fickle {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "fickle".to_owned(), description: String::new(), parameters: Value::Null }
    }

    async fn run(&self, call: Invocation) -> ToolAnswer {
        let asked = call.people.ask("bank", "Your PIN?", Ask::Login);
        let floods = async {
            self.0.notified().await;
            // Without waiting: the turn does not get to read in between.
            while call.output.write(OutputStream::Stdout, "x").now_or_never().is_some() {}
        };
        tokio::select! {
            _ = asked => {}
            () = floods => {}
        }
        pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_withdrawn_while_the_output_is_full_is_settled_at_once() {
    let withdraw = Arc::<Notify>::default();
    let provider = Scripted::new([ask("fickle", &["c"]), answer("thanks")]);
    let world = World::of(builder(provider).tool(Fickle(withdraw.clone())));
    let mut watcher = world.say("hi").await;
    watcher.until("question-asked").await;
    withdraw.notify_one();
    watcher.until("question-settled").await;
    assert_eq!(world.orchestrator.status(&world.id).await.unwrap().questions, None);
    assert_eq!(world.status().await, ConversationStatus::Active);
}

/// Leaves a task behind that asks when it is told to.
struct Haunted {
    asks: Arc<Notify>,
    replies: mpsc::UnboundedSender<Reply>,
}

#[async_trait]
impl Tool for Haunted {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "haunted".to_owned(), description: String::new(), parameters: Value::Null }
    }

    async fn run(&self, call: Invocation) -> ToolAnswer {
        let (asks, replies) = (self.asks.clone(), self.replies.clone());
        tokio::spawn(async move {
            // Once while the call runs, and then whenever it is told to.
            loop {
                replies.send(call.people.ask("ghost", "Who is there?", Ask::Login).await).unwrap();
                asks.notified().await;
            }
        });
        self.asks.notified().await;
        ToolAnswer::ok("gone")
    }
}

#[tokio::test(start_paused = true)]
async fn what_outlives_its_call_asks_in_vain() {
    let asks = Arc::<Notify>::default();
    let (replies, mut given) = mpsc::unbounded_channel();
    let provider = Scripted::new([ask("haunted", &["c"]), vec![text("well"), Cue::Hang]]);
    let world = World::of(builder(provider).tool(Haunted { asks: asks.clone(), replies }));
    let mut given =
        async || timeout(Duration::from_secs(60), given.recv()).await.expect("is answered").unwrap();
    let unasked = async || world.orchestrator.status(&world.id).await.unwrap().questions.is_none();
    let mut watcher = world.say("hi").await;
    watcher.until("question-asked").await;
    // The call ends before its question is answered.
    asks.notify_one();
    watcher.until("text-delta well").await;
    assert_eq!(given().await, Reply::Cancelled);
    assert!(unasked().await);
    // Its turn goes on.
    asks.notify_one();
    assert_eq!(given().await, Reply::Cancelled);
    assert!(world.stop().await);
    let told = watcher.turn().await;
    assert!(!told.iter().any(|line| line.starts_with("question-asked")), "{told:?}");
    // Its turn is over.
    asks.notify_one();
    assert_eq!(given().await, Reply::Cancelled);
    assert!(unasked().await);
}

/// Asks this many questions.
struct Nosy(usize);

#[async_trait]
impl Tool for Nosy {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "nosy".to_owned(), description: String::new(), parameters: Value::Null }
    }

    async fn run(&self, call: Invocation) -> ToolAnswer {
        for number in 0..self.0 {
            call.people.ask("bank", &format!("Question {number}?"), Ask::Form(Vec::new())).await;
        }
        ToolAnswer::ok("enough")
    }
}

#[tokio::test(start_paused = true)]
async fn of_many_questions_of_a_call_the_last_twenty_are_kept() {
    let provider = Scripted::new([ask("nosy", &["c"]), answer("thanks")]);
    let world = World::of(builder(provider).tool(Nosy(22)));
    let mut watcher = world.say("hi").await;
    for number in 0..22 {
        watcher.until(&format!("question-asked Question {number}?")).await;
        let mut answer = reply(&world.question().await, QuestionAction::Decline, None);
        answer.name = Some(number.to_string());
        assert!(world.orchestrator.answer_question(&world.id, answer).await.unwrap());
    }
    watcher.turn().await;
    let chunks = world.chunks().await;
    let names = chunks.iter().find_map(|stored| match &*stored.chunk {
        Chunk::ToolResult { questions, .. } => {
            Some(questions.iter().map(|of| of.name.clone().unwrap()).collect::<Vec<_>>())
        }
        _ => None,
    });
    assert_eq!(names.unwrap(), (2..22).map(|number| number.to_string()).collect::<Vec<_>>());
}
