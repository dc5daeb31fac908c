//! Describes a wait in one line of a comment.

use everturn_wire::EventBody;

/// Maximum length of a quotation in a comment, in bytes.
const QUOTE: usize = 200;

/// Describes a wait for the client; `None` if the event is not a wait.
pub(super) fn line(event: &EventBody) -> Option<String> {
    let line = match event {
        EventBody::ProviderRetry { attempt, delay_ms, message, .. } => {
            format!("retry {} in {delay_ms} ms: {}", u64::from(*attempt) + 1, quoted(message))
        }
        EventBody::ProviderSilent { silent_ms, .. } => {
            format!("no word from the provider for {silent_ms} ms")
        }
        EventBody::ApprovalRequested { tool_name, .. } => {
            format!("a call of {} waits for approval", quoted(tool_name))
        }
        EventBody::TargetSwitched { to, .. } => format!("asking {}", quoted(to)),
        EventBody::CompactionStarted { .. } => "summarizing the history, which is too long".to_owned(),
        _ => return None,
    };
    Some(line)
}

/// Whether the event ends a wait.
pub(super) fn ends(event: &EventBody) -> bool {
    matches!(
        event,
        EventBody::RetryEnded { .. }
            | EventBody::ApprovalResolved { .. }
            | EventBody::CompactionCompleted { .. }
            | EventBody::StepComplete { .. }
    )
}

/// Shortens a text to one line without anything that could end the comment.
fn quoted(text: &str) -> String {
    let end = text.floor_char_boundary(QUOTE);
    text[..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
