//! What defines a turn beside its state.

use std::sync::Arc;

use everturn_wire::{ApprovalMode, RequiredReport, TraceContext, Value};
use serde::{Deserialize, Serialize};

use super::RequestScope;

/// The latest version. A newer one is refused when its turn is taken up.
const VERSION: u32 = 2;

/// What a turn is written as whose request brought nothing with it: version 2 added that.
const WITHOUT_REQUEST: u32 = 1;

/// What defines a turn beside its state: decided when it begins, saved with it, the same after a restart with another
/// configuration. Everything by name, never a secret: what is gone after a restart ends the turn with a failure that says
/// so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Definition {
    /// The version of this form.
    pub version: u32,
    /// The model, as `credential/model`.
    pub model: String,
    /// How hard it is to think, in the provider's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// The turn replaces what the history has from this `seq` on, up to its own first chunk: the model is not sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<u64>,
    /// What happens to calls that need a person's approval.
    #[serde(skip_serializing_if = "is_ask")]
    pub approvals: ApprovalMode,
    /// What the turn's request brought with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Arc<RequestScope>>,
    /// The report that the turn must end with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_report: Option<Arc<RequiredReport>>,
    /// The trace that the turn's request belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Arc<TraceContext>>,
    /// What the orchestrator was configured with. Shared by the turns that it began.
    #[serde(flatten)]
    pub configured: Arc<Configured>,
}

/// The part of a definition that comes from the configuration, the same for every turn of an orchestrator with the same retry
/// settings and the same tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Configured {
    /// The most tokens that an answer may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Instructions that come first in every request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The tools on offer, by name. `None` = those that are configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The schedule, by name and figures ([`everturn_kernel::Schedule::saved`]). `None` = the one that is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Value>,
    /// Whether the turn retries by itself, where its message said so. `None` = as it is set for its conversation, or for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_retry: Option<bool>,
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
            request: None,
            final_report: None,
            trace: None,
            configured: Arc::default(),
        }
    }
}

impl Definition {
    /// A turn with that model, and nothing else decided.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), ..Self::default() }
    }

    /// The same with what the turn's request brought with it. An earlier program would leave it out, so it is not to go on.
    pub(crate) fn bring(&mut self, scope: Arc<RequestScope>) {
        (self.version, self.request) = (VERSION, Some(scope));
    }

    /// Whether this program knows all that its version says.
    pub(crate) fn is_known(&self) -> bool {
        self.version <= VERSION
    }
}
