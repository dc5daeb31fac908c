//! What the repetition of a turn takes over from its request.

use std::sync::Arc;

use everturn_wire::{Priority, RequiredReport, Value};
use serde::{Deserialize, Serialize};

use super::RequestScope;

/// What a request set for its turn: inherited by a turn that repeats that one or follows it from the queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Inherited {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<Arc<RequestScope>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning_effort: Option<String>,
    pub(crate) priority: Priority,
    /// The report that the request itself required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) final_report: Option<Arc<RequiredReport>>,
    /// Whether the turn only summarized: a turn that repeats it does, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) summarizes: bool,
}

impl Inherited {
    /// Returns the form that is kept with the figures of a sealed turn; `None` if the request set nothing.
    pub(crate) fn kept(&self) -> Option<Box<Value>> {
        if *self == Self::default() {
            return None;
        }
        serde_json::to_value(self).ok().map(Box::new)
    }

    /// Reads the kept form. That of a newer version which cannot be read counts as nothing.
    pub(crate) fn read(kept: Option<&Value>) -> Self {
        kept.and_then(|kept| Self::deserialize(kept).ok()).unwrap_or_default()
    }
}
