//! The saved form of a hint.

use everturn_wire::Category;
use serde::{Deserialize, Serialize};

use crate::{Millis, Target, hint::Hint};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HintRecord {
    target: Target,
    at: Millis,
    category: Category,
    wait_ms: u64,
}

impl From<Hint> for HintRecord {
    fn from(Hint { target, at, category, wait_ms }: Hint) -> Self {
        Self { target, at, category, wait_ms }
    }
}

impl From<HintRecord> for Hint {
    fn from(HintRecord { target, at, category, wait_ms }: HintRecord) -> Self {
        Self { target, at, category, wait_ms }
    }
}
