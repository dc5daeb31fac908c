//! Golden files of saved turns: anything ever saved must remain readable.
//!
//! A file of a released format never changes. A format that gains optional fields gets a new folder, such as `v1.1`
//! after `v1`. `UPDATE_GOLDEN=1 cargo test -p everturn-kernel golden` writes the files of the latest formats.

use std::{fs, path::PathBuf};

use everturn_kernel::{
    Approval, Arguments, Assessment, Budget, Check, Checked, CheckedCall, Compaction, Effects, FINAL_REPORT,
    FinishReason, Hold, Input, NoRetry, Op, Prompt, ReportRule, RestoreError, ReviewAnswer, Schedule,
    Settings, Silence, Snapshot, StreamEvent, Target, ToolAnswer, ToolCall, Turn,
};
use everturn_pacing::Cycling;
use everturn_wire::{Because, Category, Decider, Decision, Failure, QueuedMessage, TurnId, Usage, Verdict};
use serde_json::{Value, json};

use everturn_testkit::{Delays, START, beat::echo};

const OP: Op = Op { step: 0, attempt: 0 };

fn settings(eager_tools: bool) -> Settings {
    Settings {
        max_steps: Some(9),
        max_parallel_tools: 1,
        eager_tools,
        idempotent_tools: vec!["read".into()],
        max_recoveries: 3,
        budget: Budget { max_wait_ms: Some(100_000), deadline: Some(START.plus(3_600_000)) },
        ..Settings::default()
    }
}

/// Creates a turn and handles these inputs, one per millisecond.
fn told(eager_tools: bool, inputs: Vec<Input>) -> Turn {
    tell(settings(eager_tools), &Delays::patient(), inputs)
}

/// Creates a turn over three targets and handles these inputs.
fn routed(inputs: Vec<Input>) -> Turn {
    let targets = ["a", "b", "c"].map(|model| Target::new("work", model)).to_vec();
    let cycling = Cycling { max_attempts: 9, ..Cycling::default() };
    tell(Settings { targets, ..settings(false) }, &cycling, inputs)
}

fn tell(settings: Settings, schedule: &dyn Schedule, inputs: Vec<Input>) -> Turn {
    let (id, prompt, mut fx) =
        (TurnId::from("t-1"), Prompt { text: "Hi".into(), ..Prompt::default() }, Effects::new());
    let mut turn = Turn::begin(id, settings, prompt, START, &mut fx);
    for (ms, input) in (1..).zip(inputs) {
        turn.handle(START.plus(ms), input, schedule, &mut fx);
    }
    turn
}

/// Creates a turn that repeats another one.
fn again() -> Turn {
    Turn::begin_again(TurnId::from("t-2"), settings(false), TurnId::from("t-1"), START, &mut Effects::new())
}

fn says(event: StreamEvent) -> Input {
    Input::Provider(OP, event)
}

fn asks(id: &str, arguments: Arguments) -> Input {
    says(StreamEvent::ToolCall(ToolCall { id: id.into(), name: "read".into(), arguments, echo: None }))
}

fn speech() -> Vec<Input> {
    let usage = Usage {
        input_tokens: 7,
        output_tokens: 3,
        cache_read_tokens: Some(5),
        cache_write_tokens: Some(1),
        reasoning_tokens: None,
    };
    vec![
        says(StreamEvent::Reasoning("hm".into())),
        says(StreamEvent::Text("Let me see.".into())),
        asks("a", Arguments::Parsed(json!({"lines": [1, 2]}))),
        asks("b", Arguments::Malformed { raw: "{".into(), reason: "it ends early".into() }),
        asks("c", Arguments::Parsed(json!(null))),
        says(StreamEvent::Usage(usage)),
        Input::Steer(QueuedMessage { message_id: "m".into(), text: "quickly".into() }),
    ]
}

/// Returns reasoning, hidden reasoning and a call with echoes.
fn echoed_speech() -> Vec<Input> {
    let arguments = Arguments::Parsed(json!({}));
    let call = ToolCall { id: "a".into(), name: "read".into(), arguments, echo: Some(echo("call")) };
    vec![
        says(StreamEvent::Reasoning("hm".into())),
        says(StreamEvent::Echo(echo("signed"))),
        says(StreamEvent::Echo(echo("hidden"))),
        says(StreamEvent::ToolCall(call)),
    ]
}

fn limited() -> Failure {
    Failure {
        hint_ms: Some(20_000),
        code: Some("429".into()),
        provider_code: Some("rate_limit_error".into()),
        advice: Some("Wait.".into()),
        ..Failure::new(Category::RateLimited, true, "HTTP 429: slow down")
    }
}

/// Returns a turn in each phase. Each field is set in at least one of them.
fn turns() -> Vec<(&'static str, Turn)> {
    let done = Input::ToolDone { step: 0, call_id: "a".into(), answer: ToolAnswer::ok("text") };
    let finished = says(StreamEvent::Finished(FinishReason::ToolCalls));
    let failed = says(StreamEvent::Failed(limited()));
    let silence = Silence { silent_ms: 20_000, left_ms: Some(280_000), alive: true };
    let refused = Failure { retryable: false, ..limited() };
    let (failure, because) = (limited(), Because::Offline);
    let hold = Hold { failure, wait_ms: 5_000, shared: true, because, in_budget: false, open_ended: false };
    vec![
        ("streaming", told(false, speech())),
        ("streaming-echoed", told(false, echoed_speech())),
        ("streaming-eager", told(true, [speech(), vec![done.clone()]].concat())),
        ("streaming-recovered", told(false, [speech(), vec![Input::Recover]].concat())),
        ("streaming-retried", told(false, vec![failed.clone(), Input::RetryNow])),
        ("streaming-silent", told(false, vec![says(StreamEvent::Silent(silence))])),
        ("streaming-asked-again", told(false, vec![says(StreamEvent::Silent(silence)), Input::RetryNow])),
        ("retry-of", again()),
        ("backoff", told(false, vec![failed])),
        ("held-backoff", told(false, vec![says(StreamEvent::Held(Box::new(hold)))])),
        ("tools", told(false, [speech(), vec![finished.clone(), done]].concat())),
        (
            "sealed",
            told(
                false,
                vec![
                    says(StreamEvent::Text("Hello".into())),
                    says(StreamEvent::Finished(FinishReason::Other("end_turn".into()))),
                ],
            ),
        ),
        ("sealed-failed", told(false, vec![says(StreamEvent::Failed(refused))])),
    ]
    .into_iter()
    .chain(routed_turns())
    .chain(checked_turns())
    .chain(summarizing_turns())
    .chain(reporting_turns())
    .chain(called_turns())
    .collect()
}

/// Returns turns over a route, one per phase, with a target excluded, a completed cycle and a new one begun.
fn routed_turns() -> Vec<(&'static str, Turn)> {
    let fails = |attempt, failure| {
        let op = Op { step: 0, attempt };
        [Input::Provider(op, StreamEvent::Failed(failure)), Input::RetryNow]
    };
    let speaks = |event| Input::Provider(Op { step: 0, attempt: 4 }, event);
    let refused = Failure::new(Category::Auth, false, "HTTP 401: who are you?");
    let failures =
        [fails(0, refused), fails(1, limited()), fails(2, limited()), fails(3, limited())].concat();
    let waits = failures[..failures.len() - 1].to_vec();
    let arguments = Arguments::Parsed(json!({}));
    let call = ToolCall { id: "a".into(), name: "read".into(), arguments, echo: None };
    let asks =
        vec![speaks(StreamEvent::ToolCall(call)), speaks(StreamEvent::Finished(FinishReason::ToolCalls))];
    let answers =
        vec![speaks(StreamEvent::Text("Hello".into())), speaks(StreamEvent::Finished(FinishReason::Stop))];
    vec![
        ("routed-chosen", routed([waits.clone(), vec![Input::GoTo(1)]].concat())),
        ("routed-backoff", routed(waits)),
        ("routed-streaming", routed(failures.clone())),
        ("routed-tools", routed([failures.clone(), asks].concat())),
        ("routed-sealed", routed([failures, answers].concat())),
    ]
}

/// Returns a turn whose calls are checked: one waits for a person, one for the second attempt of its review, one was
/// denied, and one runs because its tool was granted before.
fn checked_turns() -> Vec<(&'static str, Turn)> {
    let asks = |id: &str, checked: Checked| {
        let arguments = Arguments::Parsed(json!({ "path": id }));
        let call = ToolCall { id: id.into(), name: "write".into(), arguments, echo: None };
        says(StreamEvent::Checked(Box::new(CheckedCall { call, checked })))
    };
    let approval = Approval { reason: Some("it writes".into()), within_ms: Some(60_000) };
    let review = Check::Review { within_ms: 90_000, otherwise: Some(approval.clone()) };
    let denied = Check::Review { within_ms: 90_000, otherwise: None };
    let asked = vec![
        asks("a", Check::Person(approval).into()),
        asks("b", review.into()),
        asks("c", denied.into()),
        asks("d", Check::Refused("no".into()).into()),
        asks("e", Checked { check: None, decision: Some(Decision::new(Decider::Grant, Verdict::Allowed)) }),
    ];
    let reviewed = |id: &str, answer| Input::Reviewed {
        step: 0,
        call_id: id.into(),
        attempt: 0,
        answer: Box::new(answer),
    };
    let denial = Assessment { rationale: Some("nobody asked for it".into()), ..Assessment::default() };
    let inputs = vec![
        says(StreamEvent::Finished(FinishReason::ToolCalls)),
        reviewed("b", ReviewAnswer::Unreadable("no JSON".into())),
        reviewed("c", ReviewAnswer::Assessed(denial)),
    ];
    // Two reviews run at once.
    let settings = Settings { max_parallel_tools: 2, ..settings(false) };
    let told = |inputs| tell(settings.clone(), &Delays::patient(), inputs);
    vec![("checked-streaming", told(asked.clone())), ("checked-tools", told([asked, inputs].concat()))]
}

/// Returns a turn over a route whose history a separate target summarizes, after a wait.
fn summarizing_turns() -> Vec<(&'static str, Turn)> {
    let fails = |attempt, failure| Input::Provider(Op { step: 0, attempt }, StreamEvent::Failed(failure));
    let compaction = Some(Compaction { targets: vec![Target::new("home", "small")] });
    let targets = ["a", "b"].map(|model| Target::new("work", model)).to_vec();
    let settings = Settings { compaction, targets, ..settings(false) };
    let too_long = Failure::new(Category::ContextOverflow, false, "too long");
    let waits = vec![fails(0, limited()), Input::GoTo(1), fails(1, too_long), fails(2, limited())];
    let told = |inputs| tell(settings.clone(), &Delays::patient(), inputs);
    let asks = [waits.clone(), vec![Input::RetryNow]].concat();
    let again = [asks.clone(), vec![fails(3, limited())]].concat();
    vec![
        ("summarizing-backoff", told(waits)),
        ("summarizing-streaming", told(asks)),
        ("retried-summary", told(again)),
    ]
}

/// Returns a turn that must report, after one failed reply and with a report kept beside a failed call.
fn reporting_turns() -> Vec<(&'static str, Turn)> {
    let says = |step, event| Input::Provider(Op { step, attempt: 0 }, event);
    let calls = |step, id: &str, name: &str, check| {
        let arguments = Arguments::Parsed(json!({ "status": "done" }));
        let call = ToolCall { id: id.into(), name: name.into(), arguments, echo: None };
        says(step, StreamEvent::Checked(Box::new(CheckedCall { call, checked: Check::into(check) })))
    };
    let began = vec![
        says(0, StreamEvent::Text("I am done.".into())),
        says(0, StreamEvent::Finished(FinishReason::Stop)),
        calls(1, "r", FINAL_REPORT, Check::Report(None)),
        calls(1, "q", FINAL_REPORT, Check::Report(Some("no status".into()))),
        calls(1, "a", "write", Check::Refused("no".into())),
    ];
    let kept = vec![says(1, StreamEvent::Finished(FinishReason::ToolCalls))];
    let again = vec![
        calls(2, "r", FINAL_REPORT, Check::Report(None)),
        says(2, StreamEvent::Finished(FinishReason::ToolCalls)),
    ];
    let settings = Settings { final_report: Some(ReportRule::default()), ..settings(false) };
    let told = |inputs| tell(settings.clone(), &Delays::patient(), inputs);
    vec![
        ("reporting-streaming", told(began.clone())),
        ("reporting-kept", told([began.clone(), kept.clone()].concat())),
        ("reporting-sealed", told([began, kept, again].concat())),
    ]
}

/// Returns a turn with a call for its caller that waits for a call that runs here.
fn called_turns() -> Vec<(&'static str, Turn)> {
    let arguments = Arguments::Parsed(json!({ "city": "Oslo" }));
    let call = ToolCall { id: "w".into(), name: "weather".into(), arguments, echo: None };
    let checked = CheckedCall { call, checked: Check::Caller.into() };
    let asked = vec![asks("a", Arguments::Parsed(json!({}))), says(StreamEvent::Checked(Box::new(checked)))];
    let finished = vec![says(StreamEvent::Finished(FinishReason::ToolCalls))];
    vec![
        ("caller-streaming", told(false, asked.clone())),
        ("caller-tools", told(false, [asked, finished].concat())),
    ]
}

/// The latest formats: of turns with one target, of turns over a route, of turns with checked calls, of turns that
/// make a summary, must report or have calls for their caller, of turns with a wait that the budget is not charged for, and of
/// turns that have asked again for a summary.
const TODAY: [&str; 7] = ["v1.1", "v2.1", "v3.1", "v4", "v4.1", "v1.3", "v4.2"];

/// Returns the format in which a turn is saved today.
fn today(name: &str) -> &'static str {
    match name.split('-').next() {
        Some("routed") => TODAY[1],
        Some("checked") => TODAY[2],
        Some("summarizing" | "caller") => TODAY[3],
        Some("reporting") => TODAY[4],
        Some("held") => TODAY[5],
        Some("retried") => TODAY[6],
        _ => TODAY[0],
    }
}

fn file(format: &str, name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{format}/{name}.json"))
}

fn read(format: &str, name: &str) -> String {
    let file = file(format, name);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Returns the formats that have a file of this name.
fn formats(name: &str) -> impl Iterator<Item = &'static str> {
    let older = ["v1", "v1.2", "v2", "v3", "v4"].into_iter();
    let older = older.filter(move |format| *format != today(name) && file(format, name).exists());
    older.chain([today(name)])
}

#[test]
fn the_latest_format_has_not_changed() {
    for (name, turn) in turns() {
        let text = serde_json::to_string_pretty(&turn.snapshot()).expect("a snapshot is JSON") + "\n";
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(file(today(name), name), &text).expect("the golden file is written");
        }
        assert_eq!(text, read(today(name), name), "{name}");
    }
}

#[test]
fn old_turns_are_read_and_saved_again_the_same() {
    for (name, turn) in turns() {
        for format in formats(name) {
            let snapshot: Snapshot = serde_json::from_str(&read(format, name)).expect(name);
            let restored = Turn::restore(snapshot).expect(name);
            assert!(restored == turn || format != today(name), "{name}: {restored:?}");
            let again = serde_json::to_value(restored.snapshot()).expect(name);
            assert_eq!(
                again,
                serde_json::from_str::<Value>(&read(format, name)).expect(name),
                "{format} {name}"
            );
        }
    }
}

/// Written by hand: only the required fields, and an unknown one.
#[test]
fn a_minimal_record_is_read() {
    let snapshot: Snapshot = serde_json::from_str(&read("v1", "bare")).expect("it is read");
    let turn = Turn::restore(snapshot).expect("it is restored");
    assert_eq!((turn.revision(), turn.started_at()), (4, START));
    assert_eq!((turn.usage(), turn.context_size(), turn.queue().len(), turn.steps()), (None, None, 0, 0));
    let default = serde_json::to_value(turn.snapshot()).expect("JSON")["settings"].clone();
    assert_eq!(default, serde_json::to_value(Settings::default()).expect("JSON"));
}

#[test]
fn every_old_turn_continues() {
    let old = turns().into_iter().flat_map(|(name, _)| formats(name).map(move |format| (format, name)));
    for (format, name) in old {
        let snapshot: Snapshot = serde_json::from_str(&read(format, name)).expect(name);
        let (mut turn, mut fx) = (Turn::restore(snapshot).expect(name), Effects::new());
        turn.handle(START.plus(60_000), Input::Recover, &NoRetry, &mut fx);
        turn.handle(START.plus(60_001), Input::Abort, &NoRetry, &mut fx);
        assert!(turn.outcome().is_some(), "{name}");
    }
}

#[test]
fn a_turn_of_a_later_format_is_refused_with_what_to_do() {
    let mut json: Value = serde_json::from_str(&read("v1", "backoff")).expect("it is JSON");
    json["version"] = json!(5);
    for state in ["backoff", "a-state-of-tomorrow"] {
        json["phase"]["state"] = json!(state);
        let snapshot: Snapshot = serde_json::from_value(json.clone()).expect("it is read");
        let error = Turn::restore(snapshot).expect_err("it is refused");
        assert_eq!(error, RestoreError::TooNew { found: 5, known: 4 });
        assert_eq!(
            error.to_string(),
            "the turn was saved in format 5 by a newer version of Everturn; this version reads formats up to 4: upgrade Everturn"
        );
    }
    json["version"] = json!(1);
    let snapshot: Snapshot = serde_json::from_value(json).expect("it is read");
    assert_eq!(Turn::restore(snapshot), Err(RestoreError::UnknownPhase));
}

/// Indexes into the targets must be valid. A record with an invalid one is refused instead of causing a panic later.
#[test]
fn a_record_with_invalid_target_indexes_is_refused() {
    for (place, index) in [("/target", 3), ("/phase/failures/0/target", 3), ("/phase/out/0", 7)] {
        let mut json: Value = serde_json::from_str(&read("v2", "routed-backoff")).expect("it is JSON");
        *json.pointer_mut(place).expect(place) = json!(index);
        let snapshot: Snapshot = serde_json::from_value(json).expect("it is read");
        assert_eq!(Turn::restore(snapshot), Err(RestoreError::UnknownPhase), "{place}");
    }
}
