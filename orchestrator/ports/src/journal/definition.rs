//! What defines a turn besides its state.

use std::sync::Arc;

use everturn_kernel::RestoreError;
use everturn_wire::{ApprovalMode, Priority, RequiredReport, TraceContext, Value};
use serde::{Deserialize, Serialize};

use super::RequestScope;

/// The latest version. A turn with a newer one is left to a newer program. To be raised with anything that an earlier program
/// must not ignore, such as a new schedule.
const VERSION: u32 = 2;

/// The version of a turn whose request has no [`RequestScope`], which version 2 added.
const WITHOUT_REQUEST: u32 = 1;

/// What defines a turn besides its state: decided when it begins, saved with it, and unchanged after a restart with
/// another configuration. It refers to everything by name and never contains a secret. If something no longer exists
/// after a restart, the turn ends with a failure that says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Definition {
    /// The version of this format.
    pub version: u32,
    /// The model, as `credential/model`.
    pub model: String,
    /// Reasoning effort, in the provider's terms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// The turn supersedes the history from this `seq` up to its own first chunk: the model does not receive that part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<u64>,
    /// What happens to calls that need a person's approval.
    #[serde(skip_serializing_if = "is_ask")]
    pub approvals: ApprovalMode,
    /// Whether the turn gives way to others when calls have to wait.
    #[serde(skip_serializing_if = "is_interactive")]
    pub priority: Priority,
    /// The parameters, tools and instructions of the turn's request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Arc<RequestScope>>,
    /// The report that the turn must end with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_report: Option<Arc<RequiredReport>>,
    /// Whether the turn only summarizes the older history.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub summarizes: bool,
    /// The trace that the turn's request belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Arc<TraceContext>>,
    /// The orchestrator's configuration. Shared by its turns.
    #[serde(flatten)]
    pub configured: Arc<Configured>,
}

/// The part of a definition that comes from the configuration and the conversation: the same for all turns of an orchestrator
/// with the same settings and tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Configured {
    /// Maximum number of tokens in an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Instructions at the beginning of every request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The offered tools, by name. `None` = the configured ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The schedule, by name and parameters (`SavedPolicy` of `everturn-pacing`). `None` = the configured one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Value>,
    /// Whether the turn retries automatically, if its message said so. `None` = as set for its conversation, or
    /// globally.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_retry: Option<bool>,
    /// Sampling temperature that the conversation sets, unless the request has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Reasoning effort that the conversation sets, unless the message has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usual_effort: Option<String>,
}

fn is_interactive(priority: &Priority) -> bool {
    *priority == Priority::Interactive
}

fn is_ask(mode: &ApprovalMode) -> bool {
    *mode == ApprovalMode::Ask
}

impl Default for Definition {
    fn default() -> Self {
        Self {
            version: WITHOUT_REQUEST,
            model: String::new(),
            reasoning_effort: None,
            supersedes: None,
            approvals: ApprovalMode::Ask,
            priority: Priority::Interactive,
            request: None,
            final_report: None,
            summarizes: false,
            trace: None,
            configured: Arc::default(),
        }
    }
}

impl Definition {
    /// Creates a definition with this model and defaults for everything else.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), ..Self::default() }
    }

    /// Sets the scope of the turn's request. Raises the version, because an earlier program would ignore the scope and
    /// so must not continue the turn.
    pub fn bring(&mut self, scope: Arc<RequestScope>) {
        (self.version, self.request) = (VERSION, Some(scope));
    }

    /// Checks that this program supports its version. Otherwise a newer one must continue the turn.
    pub fn check(&self) -> Result<(), RestoreError> {
        match self.version {
            found if found > VERSION => Err(RestoreError::TooNew { found, known: VERSION }),
            _ => Ok(()),
        }
    }
}
