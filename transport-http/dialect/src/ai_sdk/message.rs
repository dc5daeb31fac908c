//! The content of a user message, and the answers in an assistant message.

use everturn_wire::Image;

use super::spoken::{Part, Spoken};

/// A person's answer to a request for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The id of the request.
    pub id: String,
    /// Whether the call may run.
    pub approved: bool,
    /// The reason.
    pub reason: Option<String>,
}

/// Returns the text and the images of a user message.
pub(super) fn content(message: &Spoken) -> Result<(String, Vec<Image>), String> {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in parts(message) {
        match part.kind.as_str() {
            "text" => texts.extend(part.text.as_deref()),
            "file" => images.push(part.image().ok_or_else(|| {
                let kind: String = part.media_type.iter().flat_map(|kind| kind.chars()).take(64).collect();
                format!("files of type {kind:?} are not supported: attach images, or paste the text")
            })?),
            // Other data of apps and steps.
            _ => {}
        }
    }
    Ok((texts.join("\n\n"), images))
}

/// Returns the answers to requests for approval in a message.
pub(super) fn responses(message: &Spoken) -> Vec<Response> {
    let answered = parts(message).iter().filter(|part| part.state.as_deref() == Some("approval-responded"));
    let approvals = answered.filter_map(|part| part.approval.as_ref());
    let response = |approval: &super::spoken::Approval| {
        let (id, reason) = (approval.id.clone(), approval.reason.clone());
        Some(Response {
            id,
            approved: approval.approved?,
            reason: reason.filter(|reason| !reason.is_empty()),
        })
    };
    approvals.filter_map(response).collect()
}

/// Returns the calls in a message.
pub(super) fn calls(message: &Spoken) -> Vec<String> {
    parts(message).iter().filter_map(|part| part.tool_call_id.clone()).collect()
}

fn parts(message: &Spoken) -> &[Part] {
    message.parts.as_ref().map_or(&[], |parts| &parts.0)
}
