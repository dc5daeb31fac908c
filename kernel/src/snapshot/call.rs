//! The saved form of a tool call and its check.

use alloc::{boxed::Box, string::String, vec::Vec};

use everturn_wire::{Decision, Echo, Image, SettledQuestion, Value};
use serde::{Deserialize, Serialize};

use crate::{
    Approval, Arguments, Check, Millis, ToolAnswer, ToolCall,
    call::{CallState, OpenCall},
    check::Asking,
    review::Review,
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallRecord {
    id: String,
    name: String,
    arguments: ArgumentsRecord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    echo: Option<Echo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check: Option<CheckRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    decisions: Vec<Decision>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    questions: Vec<SettledQuestion>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<usize>,
    state: StateRecord,
}

/// A check that has not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase")]
enum CheckRecord {
    Person(ApprovalRecord),
    Review {
        within_ms: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        otherwise: Option<ApprovalRecord>,
    },
    Refused(String),
    Report(Option<String>),
    Caller,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApprovalRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ArgumentsRecord {
    Parsed(Value),
    Malformed { raw: String, reason: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase")]
enum StateRecord {
    Pending,
    Asking {
        since: Millis,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Millis>,
    },
    Reviewing {
        since: Millis,
        deadline: Millis,
        attempt: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_at: Option<Millis>,
    },
    Running {
        since: Millis,
    },
    Done {
        content: String,
        is_error: bool,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
}

impl From<OpenCall> for CallRecord {
    fn from(open: OpenCall) -> Self {
        let OpenCall {
            call: ToolCall { id, name, arguments, echo },
            check,
            decisions,
            questions,
            place,
            state,
        } = open;
        let arguments = match arguments {
            Arguments::Parsed(value) => ArgumentsRecord::Parsed(value),
            Arguments::Malformed { raw, reason } => ArgumentsRecord::Malformed { raw, reason },
        };
        let state = match state {
            CallState::Pending => StateRecord::Pending,
            CallState::Asking(Asking { since, until }) => StateRecord::Asking { since, until },
            CallState::Reviewing(Review { since, deadline, attempt, next_at }) => {
                StateRecord::Reviewing { since, deadline, attempt, next_at }
            }
            CallState::Running { since } => StateRecord::Running { since },
            CallState::Done(ToolAnswer { content, is_error, images }) => {
                StateRecord::Done { content, is_error, images }
            }
        };
        Self {
            id,
            name,
            arguments,
            echo,
            check: check.map(|check| (*check).into()),
            decisions,
            questions,
            place,
            state,
        }
    }
}

impl From<CallRecord> for OpenCall {
    fn from(
        CallRecord { id, name, arguments, echo, check, decisions, questions, place, state }: CallRecord,
    ) -> Self {
        let arguments = match arguments {
            ArgumentsRecord::Parsed(value) => Arguments::Parsed(value),
            ArgumentsRecord::Malformed { raw, reason } => Arguments::Malformed { raw, reason },
        };
        let state = match state {
            StateRecord::Pending => CallState::Pending,
            StateRecord::Asking { since, until } => CallState::Asking(Asking { since, until }),
            StateRecord::Reviewing { since, deadline, attempt, next_at } => {
                CallState::Reviewing(Review { since, deadline, attempt, next_at })
            }
            StateRecord::Running { since } => CallState::Running { since },
            StateRecord::Done { content, is_error, images } => {
                CallState::Done(ToolAnswer { content, is_error, images })
            }
        };
        let check = check.map(|check| Box::new(check.into()));
        Self { call: ToolCall { id, name, arguments, echo }, check, decisions, questions, place, state }
    }
}

impl From<Check> for CheckRecord {
    fn from(check: Check) -> Self {
        match check {
            Check::Person(approval) => Self::Person(approval.into()),
            Check::Review { within_ms, otherwise } => {
                Self::Review { within_ms, otherwise: otherwise.map(Into::into) }
            }
            Check::Refused(answer) => Self::Refused(answer),
            Check::Report(why) => Self::Report(why),
            Check::Caller => Self::Caller,
        }
    }
}

impl From<CheckRecord> for Check {
    fn from(record: CheckRecord) -> Self {
        match record {
            CheckRecord::Person(approval) => Self::Person(approval.into()),
            CheckRecord::Review { within_ms, otherwise } => {
                Self::Review { within_ms, otherwise: otherwise.map(Into::into) }
            }
            CheckRecord::Refused(answer) => Self::Refused(answer),
            CheckRecord::Report(why) => Self::Report(why),
            CheckRecord::Caller => Self::Caller,
        }
    }
}

impl From<Approval> for ApprovalRecord {
    fn from(Approval { reason, within_ms }: Approval) -> Self {
        Self { reason, within_ms }
    }
}

impl From<ApprovalRecord> for Approval {
    fn from(ApprovalRecord { reason, within_ms }: ApprovalRecord) -> Self {
        Self { reason, within_ms }
    }
}
