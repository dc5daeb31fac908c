//! Parses events, and reads streams of them.

use everturn_wire::{EventBody, Value};

/// Parses events.
pub(crate) fn events(written: Value) -> Vec<EventBody> {
    serde_json::from_value(written).unwrap()
}

/// Returns the text that was not withdrawn.
pub(crate) fn text_of(events: &[EventBody]) -> String {
    let (mut text, mut step) = (String::new(), 0);
    for event in events {
        match event {
            EventBody::TextDelta { delta } => text.push_str(delta),
            EventBody::FinalReport(report) if text.is_empty() => {
                text = report.report.as_ref().unwrap().to_string();
            }
            EventBody::StepRewound { .. } => text.truncate(step),
            EventBody::StepComplete { .. } => step = text.len(),
            EventBody::Error(_) | EventBody::Done { .. } | EventBody::TurnSealed => break,
            _ => {}
        }
    }
    text
}

/// Returns the data of each server-sent event, without comments.
pub(crate) fn data_of(stream: &str) -> Result<Vec<&str>, String> {
    if stream.contains('\r') {
        return Err("a carriage return".to_owned());
    }
    let Some(stream) = stream.strip_suffix("\n\n") else {
        return Err("the last event is cut off".to_owned());
    };
    let is_comment = |event: &&str| event.starts_with(':') && !event.contains('\n');
    let data = |event: &'_ str| -> Result<usize, String> {
        match event.strip_prefix("data: ").filter(|data| !data.contains('\n')) {
            Some(data) => Ok(data.len()),
            None => Err(format!("not one line of data: {event:?}")),
        }
    };
    let events = stream.split("\n\n").filter(|event| !is_comment(event));
    events.map(|event| data(event).map(|len| &event[event.len() - len..])).collect()
}
