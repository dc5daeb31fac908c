use everturn_wire::{FinalReport, ForcedBy, Value};

use super::*;

fn missing() -> EventBody {
    let reason = "the reply was empty".to_owned();
    EventBody::ReportMissing { step_id: StepId::new(&"t".into(), 0), reason, attempt: 1, max_attempts: 3 }
}

fn forced(by: ForcedBy) -> EventBody {
    EventBody::ReportForced { step_id: StepId::new(&"t".into(), 1), by }
}

#[tokio::test(start_paused = true)]
async fn a_report_is_the_answer_and_what_led_to_it_is_told_apart() {
    let report: Value = [("status".to_owned(), Value::from("done"))].into_iter().collect();
    let report = FinalReport { success: true, report: Some(report), reason: None, context: None };
    let events = [missing(), forced(ForcedBy::MaxSteps), EventBody::FinalReport(Box::new(report))];
    let (out, err, ending) = tell(events.into_iter().chain(done(DoneReason::Stop)));
    let expected = "No report yet (1/3): the reply was empty\nAsked for the report alone: this is the last step.\n\
                    Final report\n";
    assert_eq!((out.as_str(), err.as_str()), ("{\n  \"status\": \"done\"\n}\n", expected));
    assert_eq!(ending, Some(Ending::Answered));
}

#[tokio::test(start_paused = true)]
async fn no_report_says_why() {
    let why = "the model gave no acceptable final report in 1 attempts:\nthe reply was empty";
    let report = FinalReport { success: false, report: None, reason: Some(why.to_owned()), context: None };
    let events = [error(why), EventBody::FinalReport(Box::new(report))];
    let (out, err, ending) = tell(events.into_iter().chain(done(DoneReason::Error)));
    let told = "No report: the model gave no acceptable final report in 1 attempts: the reply was empty\n";
    assert!(out.is_empty() && err.starts_with(told), "{err}");
    assert_eq!(ending, Some(Ending::Failed));
}
