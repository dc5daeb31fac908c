//! The saved form of a turn's progress with its report.

use alloc::{boxed::Box, string::String};

use everturn_wire::{ForcedBy, Value};
use serde::{Deserialize, Serialize};

use super::is_zero;
use crate::report::Reporting;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ReportingRecord {
    #[serde(skip_serializing_if = "is_zero")]
    failed: u32,
    #[serde(skip_serializing_if = "is_zero")]
    failed_in_step: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    last: String,
    #[serde(skip_serializing_if = "is_zero")]
    uncounted: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forced: Option<ForcedBy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<Value>,
}

impl From<Box<Reporting>> for Box<ReportingRecord> {
    fn from(reporting: Box<Reporting>) -> Self {
        let Reporting { failed, failed_in_step, last, uncounted, limit, forced, kept } = *reporting;
        Self::new(ReportingRecord { failed, failed_in_step, last, uncounted, limit, forced, kept })
    }
}

impl From<Box<ReportingRecord>> for Box<Reporting> {
    fn from(record: Box<ReportingRecord>) -> Self {
        let ReportingRecord { failed, failed_in_step, last, uncounted, limit, forced, kept } = *record;
        Self::new(Reporting { failed, failed_in_step, last, uncounted, limit, forced, kept })
    }
}
