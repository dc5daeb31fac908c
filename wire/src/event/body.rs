//! What an event is, and what of it is kept.

use alloc::string::String;

use super::{ErrorReport, EventBody};
use crate::SettledQuestion;

impl EventBody {
    /// Whether this event is sent only to subscribers that asked for extensions.
    pub fn is_extension(&self) -> bool {
        match self {
            Self::Status { .. }
            | Self::UserMessage { .. }
            | Self::TurnStart { .. }
            | Self::TextDelta { .. }
            | Self::ReasoningDelta { .. }
            | Self::ToolOutput { .. }
            | Self::Usage { .. }
            | Self::StepComplete { .. }
            | Self::ProviderRetry { .. }
            | Self::Error { .. }
            | Self::Steering { .. }
            | Self::Done { .. }
            | Self::TurnSealed => false,
            // There is exactly one result per call for those who cannot take back what they were told.
            Self::ToolCall { again, .. } | Self::ToolResult { again, .. } => again.is_some(),
            Self::StepRewound { .. }
            | Self::RetryEnded { .. }
            | Self::ProviderSilent { .. }
            | Self::QueueChanged { .. }
            | Self::TargetSwitched { .. }
            | Self::TargetRestored { .. }
            | Self::ApprovalRequested { .. }
            | Self::ApprovalResolved { .. }
            | Self::QuestionAsked(_)
            | Self::QuestionSettled { .. }
            | Self::ReviewStarted { .. }
            | Self::ReviewCompleted { .. }
            | Self::CompactionStarted { .. }
            | Self::CompactionCompleted { .. }
            | Self::ReportMissing { .. }
            | Self::ReportForced { .. }
            | Self::StepsCollapsed { .. }
            | Self::FinalReport(_)
            | Self::Unknown => true,
        }
    }

    /// Creates an error with a message and no details.
    pub fn error(message: impl Into<String>) -> Self {
        Self::Error(ErrorReport::new(message))
    }

    /// Whether this is streamed text: cheap, frequent, and durable only as part of its chunk.
    pub fn is_delta(&self) -> bool {
        matches!(self, Self::TextDelta { .. } | Self::ReasoningDelta { .. } | Self::ToolOutput { .. })
    }

    /// Returns the streamed text of a `text-delta` or `reasoning-delta`.
    pub fn delta(&self) -> Option<&str> {
        match self {
            Self::TextDelta { delta } | Self::ReasoningDelta { delta } => Some(delta),
            _ => None,
        }
    }

    /// Returns what to keep of the event, if it settles a question.
    pub fn settled_question(&self) -> Option<SettledQuestion> {
        let Self::QuestionSettled { question_id, outcome, asker, kind, name, via, .. } = self else {
            return None;
        };
        Some(SettledQuestion {
            question_id: question_id.clone(),
            asker: asker.clone()?,
            kind: (*kind)?,
            outcome: *outcome,
            name: name.clone(),
            via: via.clone(),
        })
    }
}
