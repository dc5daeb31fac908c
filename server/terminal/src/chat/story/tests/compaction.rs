use everturn_wire::{CompactionCause, CompactionOutcome};

use super::*;

fn started(cause: CompactionCause) -> EventBody {
    let message = (cause == CompactionCause::Overflow).then(|| "HTTP 400: 9 tokens are too many".to_owned());
    EventBody::CompactionStarted {
        step_id: StepId::new(&"t".into(), 0),
        cause,
        message,
        code: None,
        failed_target: None,
        failed_at: None,
        latency_ms: None,
    }
}

fn completed(outcome: CompactionOutcome) -> EventBody {
    let is_summary = outcome == CompactionOutcome::Summarized;
    EventBody::CompactionCompleted {
        step_id: StepId::new(&"t".into(), 0),
        outcome,
        summary: is_summary.then(|| "They spoke of the weather.".to_owned()),
        keeps_from: is_summary.then_some(7),
        message: (!is_summary).then(|| "HTTP 401:\nno such key".to_owned()),
    }
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_a_line_when_it_begins_and_one_when_it_is_there() {
    let events = [
        started(CompactionCause::Overflow),
        retry(0),
        retry_ended(RetryOutcome::Recovered),
        completed(CompactionOutcome::Summarized),
        retry(0),
        text("Hello"),
    ];
    let (out, err, ending) = tell(events.into_iter().chain(done(DoneReason::Stop)));
    let expected = "HTTP 400: 9 tokens are too many\n\
                    The conversation is too long for the model: summarizing earlier messages.\n\
                    HTTP 529: Overloaded\nRetrying the summary (1/3) in 5s...\n\
                    Earlier messages were summarized for the model.\nRetrying (1/3) in 5s...\n\
                    Answered after 2 retries, in 15s.\n";
    assert_eq!((out.as_str(), err.as_str(), ending), ("Hello\n", expected, Some(Ending::Answered)));
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_cannot_be_made_is_told_once() {
    let ahead = [started(CompactionCause::Ahead), completed(CompactionOutcome::Failed), text("Hello")];
    let (_, err, _) = tell(ahead.into_iter().chain(done(DoneReason::Stop)));
    let expected = "The conversation is nearly too long for the model: summarizing earlier messages.\n\
                    Earlier messages could not be summarized (HTTP 401: no such key). The model is sent all of them.\n";
    assert_eq!(err, expected);
    let ended = [
        started(CompactionCause::Overflow),
        completed(CompactionOutcome::Failed),
        error("the conversation is too long for the model, and summarizing it failed: HTTP 401: no such key"),
    ];
    let (_, err, ending) = tell(ended.into_iter().chain(done(DoneReason::Error)));
    assert_eq!((err.matches("no such key").count(), ending), (1, Some(Ending::Failed)), "{err}");
    let stopped = [started(CompactionCause::Overflow), completed(CompactionOutcome::Cancelled)];
    let idle = EventBody::Status { status: ConversationStatus::Idle, retry: None };
    let (_, err, ending) = tell(stopped.into_iter().chain(done(DoneReason::Aborted)).chain([idle]));
    assert_eq!((err.lines().count(), ending), (3, Some(Ending::Cancelled)), "{err}");
}
