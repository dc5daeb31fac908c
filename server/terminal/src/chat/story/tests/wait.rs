use everturn_wire::ConversationStatus;

use super::*;

/// The event that ends a wait.
fn asking(attempt: u32) -> EventBody {
    let retry = RetryState {
        phase: RetryPhase::Asking,
        attempt,
        delay_ms: 5000,
        next_at: None,
        max_attempts: Some(3),
        category: None,
        message: None,
        target: None,
        code: None,
        shared: None,
        because: None,
    };
    EventBody::Status { status: ConversationStatus::Active, retry: Some(Box::new(retry)) }
}

/// What a person can do after these events: cancel a retry, ask again at once.
fn offered(bodies: impl IntoIterator<Item = EventBody>) -> (bool, bool) {
    let mut story = story();
    tell_to(&mut story, bodies);
    (story.is_retrying(), story.may_ask_now())
}

fn silent() -> EventBody {
    let step_id = StepId::new(&"t".into(), 0);
    EventBody::ProviderSilent { step_id, silent_ms: 40_000, gives_up_at: None, alive: false }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_ends_early_is_over_at_once_and_can_be_cancelled_still() {
    for (events, expected) in [
        (vec![], (false, false)),
        (vec![retry(0)], (true, true)),
        (vec![retry(0), asking(0)], (true, false)),
        (vec![retry(0), asking(0), text("Hello")], (false, false)),
        (vec![retry(0), asking(0), retry(1)], (true, true)),
        (vec![retry(0), asking(0), retry_ended(RetryOutcome::Cancelled)], (false, false)),
    ] {
        assert_eq!(offered(events.clone()), expected, "{events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_provider_is_asked_again_while_nothing_was_shown() {
    for (events, expected) in [
        (vec![silent()], (false, true)),
        (vec![text("Hel"), silent()], (false, false)),
        (vec![retry(0), asking(0), silent()], (true, true)),
        (vec![silent(), text("Hello")], (false, false)),
    ] {
        assert_eq!(offered(events.clone()), expected, "{events:?}");
    }
    let (_, err, _) = tell([silent(), text("Hel"), silent()]);
    assert_eq!(err, "No answer for 40 s\nNothing new for 40 s\n");
}

#[tokio::test(start_paused = true)]
async fn an_event_that_arrives_late_counts_down_what_is_left() {
    for (server_ms, next_at, expected) in [
        (100_000, Some(105_000), "5s"),
        (100_000, Some(102_000), "2s"),
        (100_000, Some(900_000), "5s"),
        (500_000, Some(502_000), "2s"),
        (100_000, None, "5s"),
    ] {
        let late = match retry(0) {
            EventBody::ProviderRetry { attempt, delay_ms, message, code, max_attempts, .. } => {
                EventBody::ProviderRetry {
                    attempt,
                    delay_ms,
                    message,
                    code,
                    next_at,
                    max_attempts,
                    category: None,
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
            other => other,
        };
        let mut story = Story::of(Beginning::Message("hi".to_owned()), Clock::new(server_ms, || 100_000));
        let (_, err, _) = tell_to(&mut story, [late]);
        assert!(err.ends_with(&format!("Retrying (1/3) in {expected}...\n")), "{next_at:?}: {err}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_limit_of_the_caller_cannot_be_skipped_and_is_no_retry() {
    let mut limited = retry(0);
    let told = "this server allows its caller 2 calls at a time, and these are running";
    if let EventBody::ProviderRetry { because, message, .. } = &mut limited {
        (*because, *message) = (Some(everturn_wire::Because::CallerLimit), told.to_owned());
    }
    let mut story = story();
    let (_, err, _) = tell_to(&mut story, [limited]);
    assert_eq!((story.is_retrying(), story.may_ask_now()), (true, false));
    assert!(err.contains("2 calls at a time"), "{err}");
    assert!(
        err.ends_with("Waiting for a limit of this token, at most 5s...\n") && !err.contains("because"),
        "{err}"
    );
}
