mod compaction;
mod report;
mod wait;

use everturn_wire::{ConversationStatus, QueuedMessage, StepId, TargetRole};
use serde_json::json;

use super::{super::view::Plain, *};

/// The output for a person, and how the turn ended.
fn tell(bodies: impl IntoIterator<Item = EventBody>) -> (String, String, Option<Ending>) {
    tell_to(&mut story(), bodies)
}

fn story() -> Story {
    Story::of(Beginning::Message("hi".to_owned()), Clock::default())
}

fn tell_to(
    story: &mut Story,
    bodies: impl IntoIterator<Item = EventBody>,
) -> (String, String, Option<Ending>) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut view = Plain::new(&mut out, &mut err, false, false);
    let begin = EventBody::UserMessage { text: "hi".to_owned() };
    let ending = std::iter::once(begin).chain(bodies).find_map(|body| {
        let event = AgentEvent { body, conversation_id: "c".into(), turn_id: Some("t".into()) };
        story.take(event, &mut view).unwrap()
    });
    (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap(), ending)
}

fn retry(attempt: u32) -> EventBody {
    EventBody::ProviderRetry {
        attempt,
        delay_ms: 5000,
        message: r#"HTTP 529: {"error":{"message":"Overloaded"}}"#.to_owned(),
        code: Some("529".to_owned()),
        next_at: None,
        category: None,
        max_attempts: Some(3),
        budget_left_ms: None,
        target: None,
        hinted: None,
        clamped: None,
        shared: None,
        because: None,
        failed_target: None,
        latency_ms: None,
    }
}

fn retry_ended(outcome: RetryOutcome) -> EventBody {
    EventBody::RetryEnded { attempts: 3, outcome, message: None, target: None }
}

fn error(message: &str) -> EventBody {
    EventBody::error(message)
}

fn text(delta: &str) -> EventBody {
    EventBody::TextDelta { delta: delta.to_owned() }
}

fn done(reason: DoneReason) -> [EventBody; 2] {
    let done = EventBody::Done {
        reason,
        duration_ms: Some(15_300),
        usage: None,
        context_size: None,
        first_token_ms: None,
        model: None,
        calls: Vec::new(),
    };
    [done, EventBody::TurnSealed]
}

#[tokio::test(start_paused = true)]
async fn a_switch_of_targets_is_told() {
    let (from, to, role) = ("a/m".to_owned(), "b/m".to_owned(), TargetRole::Main);
    let reason = "a/m is overloaded".to_owned();
    let back = EventBody::TargetRestored { to: from.clone(), role };
    let switched = EventBody::TargetSwitched { from, to, role, reason };
    let (_, err, _) = tell([switched, back, text("Hello")].into_iter().chain(done(DoneReason::Stop)));
    assert!(err.starts_with("Switched to b/m: a/m is overloaded\nBack to a/m\n"), "{err}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_survives_says_so() {
    let events = [retry(0), retry(1), retry_ended(RetryOutcome::Recovered), text("Hello")];
    let (out, err, ending) = tell(events.into_iter().chain(done(DoneReason::Stop)));
    assert_eq!(out, "Hello\n");
    let expected = "HTTP 529: Overloaded\nRetrying (1/3) in 5s...\nRetrying (2/3) in 5s...\n\
                    Answered after 2 retries, in 15s.\n";
    assert_eq!((err.as_str(), ending), (expected, Some(Ending::Answered)));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_gives_up_names_its_attempts_and_the_last_failure() {
    let mut gone = error("HTTP 500: gone");
    if let EventBody::Error(report) = &mut gone {
        (report.retries, report.waited_ms) = (Some(2), Some(15_000));
        report.outcome = Some(RetryOutcome::Exhausted);
        report.advice = Some("Try again later.".to_owned());
    }
    let gone = [retry(0), retry(1), retry_ended(RetryOutcome::Exhausted), gone];
    let (out, err, ending) = tell(gone.into_iter().chain(done(DoneReason::Error)));
    assert_eq!(out, "");
    let expected = "\nRetry failed after 2 attempts: HTTP 500: gone\nGave up after 2 retries over 15 s.\nTry again later.\n";
    assert!(err.ends_with(expected), "{err}");
    assert_eq!(ending, Some(Ending::Failed));
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_no_retry_helps_is_only_itself() {
    let refused = [retry(0), retry_ended(RetryOutcome::NotRetryable), error("HTTP 401: no such key")];
    let (_, err, ending) = tell(refused.into_iter().chain(done(DoneReason::Error)));
    assert!(err.ends_with("5s...\nHTTP 401: no such key\n"), "{err}");
    assert_eq!(ending, Some(Ending::Failed));
}

#[tokio::test(start_paused = true)]
async fn an_end_by_hand_is_told_apart() {
    let cancelled = [retry(0), retry_ended(RetryOutcome::Cancelled)];
    let idle = || EventBody::Status { status: ConversationStatus::Idle, retry: None };
    let (_, err, ending) = tell(cancelled.into_iter().chain(done(DoneReason::Aborted)).chain([idle()]));
    assert!(err.ends_with("Retry cancelled.\n"), "{err}");
    assert_eq!(ending, Some(Ending::Cancelled));
    let mut story = Story { interrupted: true, is_ended_here: true, ..story() };
    let (_, err, ending) = tell_to(&mut story, done(DoneReason::Aborted));
    assert_eq!((err.as_str(), ending), ("Stopped.\n", Some(Ending::Interrupted)));
    assert_eq!(tell(done(DoneReason::Aborted)).2, None, "a turn may take its place");
    let stopped = done(DoneReason::Aborted).into_iter().chain([idle()]);
    assert_eq!(tell(stopped).2, Some(Ending::Cancelled));
    let retry_of = Some("t".into());
    let moved = EventBody::TurnStart { retry_of, message_seq: None, supersedes: None };
    let (_, err, ending) = tell(done(DoneReason::Aborted).into_iter().chain([moved]));
    assert_eq!((err.as_str(), ending), ("Moved to another model.\n", None));
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_one_line() {
    let step_id = StepId::new(&"t".into(), 0);
    let call = EventBody::ToolCall {
        step_id: step_id.clone(),
        tool_call_id: "1".to_owned(),
        tool_name: "roll".to_owned(),
        input: json!({ "count": 2 }),
        again: None,
    };
    let complete = EventBody::StepComplete {
        step_id: step_id.clone(),
        ttft_ms: None,
        decode_ms: None,
        gen_total_ms: None,
        reported: None,
    };
    let result = EventBody::ToolResult {
        step_id,
        tool_call_id: "1".to_owned(),
        tool_name: "roll".to_owned(),
        content: "4,\n2".to_owned(),
        is_error: false,
        duration_ms: None,
        decisions: Vec::new(),
        questions: Vec::new(),
        again: None,
    };
    let (out, err, _) = tell([text("Let me"), call, complete, result, text("done")]);
    assert_eq!((out.as_str(), err.as_str()), ("Let me", "roll {\"count\":2} -> 4, 2\n"));
}

#[tokio::test(start_paused = true)]
async fn other_turns_of_the_conversation_are_not_shown() {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut view = Plain::new(&mut out, &mut err, false, false);
    let mut story = story();
    let mut take = |turn: &str, body| {
        let event = AgentEvent { body, conversation_id: "c".into(), turn_id: Some(turn.into()) };
        story.take(event, &mut view).unwrap()
    };
    take("other", EventBody::UserMessage { text: "hello".to_owned() });
    take("other", text("no"));
    assert_eq!(take("other", EventBody::TurnSealed), None);
    take("ours", EventBody::UserMessage { text: "hi".to_owned() });
    take("ours", text("yes"));
    assert_eq!(take("ours", EventBody::TurnSealed), Some(Ending::Answered));
    assert_eq!(out, b"yes\n");
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_all_time_does_no_harm() {
    let endless = match retry(0) {
        EventBody::ProviderRetry { message, .. } => EventBody::ProviderRetry {
            attempt: u32::MAX,
            delay_ms: u64::MAX,
            message,
            code: None,
            next_at: None,
            category: None,
            max_attempts: None,
            budget_left_ms: None,
            target: None,
            hinted: None,
            clamped: None,
            shared: None,
            because: None,
            failed_target: None,
            latency_ms: None,
        },
        other => other,
    };
    let (_, err, _) = tell([endless]);
    assert!(err.contains("Retrying (4294967296)"), "{err}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_gives_up_counts_the_step_that_failed() {
    let mut report = everturn_wire::ErrorReport::new("HTTP 500: gone");
    (report.retries, report.outcome) = (Some(1), Some(RetryOutcome::Exhausted));
    for error in [EventBody::Error(report), error("HTTP 500: gone")] {
        let step_before = [retry(0), retry(1), retry_ended(RetryOutcome::Recovered), text("Let me see.")];
        let events = step_before.into_iter().chain([retry(0), retry_ended(RetryOutcome::Exhausted), error]);
        let (_, err, _) = tell(events.chain(done(DoneReason::Error)));
        assert!(err.contains("\nRetry failed after 1 attempt: HTTP 500: gone\n"), "{err}");
        assert!(!err.contains("3 "), "{err}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_at_its_most_steps_says_so() {
    let step = |n| EventBody::StepComplete {
        step_id: StepId::new(&"t".into(), n),
        ttft_ms: None,
        decode_ms: None,
        gen_total_ms: None,
        reported: None,
    };
    let (_, err, ending) = tell([step(0), step(1)].into_iter().chain(done(DoneReason::MaxSteps)));
    let expected = "Stopped after 2 steps, the most that the server allows a turn (`max_steps` in its configuration). \
                    Send a message to continue.\n";
    assert_eq!((err.as_str(), ending), (expected, Some(Ending::Answered)));
}

#[tokio::test(start_paused = true)]
async fn queued_messages_are_taken_in_or_left_over() {
    let mut story = story();
    let queued = |text: &str| {
        let (id, text) = (format!("id of {text}"), text.to_owned());
        Queued { id, text, is_there: false, may_be_lost: false, is_unwanted: false }
    };
    story.queued.extend(["one", "two"].map(queued));
    tell_to(&mut story, [EventBody::Steering { text: "one".to_owned() }]);
    assert_eq!(story.queued, [queued("two")]);
    story.queued[0].is_unwanted = true;
    let (_, err, _) = tell_to(&mut story, [EventBody::Steering { text: "two".to_owned() }]);
    assert_eq!(err, "Too late, already sent: two\n> two\n");
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_as_the_connection_broke_is_looked_for() {
    let mut again = Story::of(Beginning::Again, Clock::default());
    assert!(!again.is_awaited(), "its events are to come");
    let mut view = Plain::new(Vec::new(), Vec::new(), false, false);
    again.resume(&mut view).unwrap();
    assert!(again.is_awaited());
    let mut running = story();
    tell_to(&mut running, []);
    for id in ["there", "lost"] {
        let (id, text) = (id.to_owned(), String::new());
        running.queued.push_back(Queued {
            id,
            text,
            is_there: false,
            may_be_lost: false,
            is_unwanted: false,
        });
    }
    running.resume(&mut view).unwrap();
    let queue = vec![QueuedMessage { message_id: "there".to_owned(), text: String::new() }];
    tell_to(&mut running, [EventBody::QueueChanged { queue }]);
    assert_eq!(running.queued.iter().map(|queued| queued.may_be_lost).collect::<Vec<_>>(), [false, true]);
    assert!(!running.is_awaited());
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_runs_already_is_told_from_its_start() {
    let mut story = Story::of(Beginning::Running, Clock::default());
    let (out, err, ending) = tell_to(&mut story, [text("Hello")].into_iter().chain(done(DoneReason::Stop)));
    assert_eq!((out.as_str(), err.as_str(), ending), ("Hello\n", "> hi\n", Some(Ending::Answered)));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_tried_again_begins_without_a_message() {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut view = Plain::new(&mut out, &mut err, true, false);
    let mut story = Story::of(Beginning::Again, Clock::default());
    for (turn, body) in [
        ("other", EventBody::TurnStart { retry_of: None, message_seq: None, supersedes: None }),
        ("other", text("no")),
        (
            "again",
            EventBody::TurnStart { retry_of: Some("first".into()), message_seq: None, supersedes: None },
        ),
        ("again", text("yes")),
    ] {
        let event = AgentEvent { body, conversation_id: "c".into(), turn_id: Some(turn.into()) };
        assert_eq!(story.take(event, &mut view).unwrap(), None);
    }
    assert_eq!((out.as_slice(), story.id), (&b"yes"[..], Some("again".into())));
}

#[tokio::test(start_paused = true)]
async fn how_a_review_ended_is_told() {
    let step_id = || StepId::new(&"t".into(), 0);
    let bodies = [
        ("a", Verdict::Allowed, Some("low"), None),
        ("b", Verdict::Denied, Some("high"), Some("It deletes\nall.")),
        ("c", Verdict::TimedOut, None, None),
        ("d", Verdict::Failed, None, None),
    ];
    let bodies = bodies.into_iter().flat_map(|(id, verdict, risk_level, rationale)| {
        let tool_call_id = id.to_owned();
        let started = EventBody::ReviewStarted {
            step_id: step_id(),
            tool_call_id: tool_call_id.clone(),
            tool_name: format!("rm_{id}"),
        };
        let completed = EventBody::ReviewCompleted {
            step_id: step_id(),
            tool_call_id,
            verdict,
            attempt_count: 1,
            duration_ms: None,
            risk_level: risk_level.map(str::to_owned),
            user_authorization: None,
            rationale: rationale.map(str::to_owned),
        };
        [started, completed]
    });
    let (_, err, _) = tell(bodies.chain([text("Hello")]).chain(done(DoneReason::Stop)));
    let expected = [
        "rm_a allowed by review (low risk)",
        "rm_b denied by review (high risk): It deletes all.",
        "rm_c was not reviewed in time",
        "rm_d could not be reviewed",
    ];
    assert_eq!(err.lines().take(4).collect::<Vec<_>>(), expected);
}
