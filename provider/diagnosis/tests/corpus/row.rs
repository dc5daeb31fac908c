//! One labelled failure.

use everturn_diagnosis::{Evidence, Stage, diagnose};
use everturn_wire::{Category, Failure};
use serde_json::Value;

/// What a client saw, and the expected diagnosis.
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) stage: Stage,
    pub(crate) status: Option<u16>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) now: u64,
    pub(crate) label: Option<Label>,
    pub(crate) wait: Option<u64>,
    /// Whether the failure alone determines the diagnosis.
    pub(crate) scored: bool,
    /// Whether an image may be the reason; `None` = not labelled.
    pub(crate) image: Option<bool>,
}

/// The expected diagnosis.
pub(crate) struct Label {
    pub(crate) category: Category,
    pub(crate) retryable: bool,
}

impl Row {
    /// Parses one line.
    pub(crate) fn parse(line: &str) -> serde_json::Result<Self> {
        let row: Value = serde_json::from_str(line)?;
        let headers = row["headers"].as_object().into_iter().flatten();
        let category = serde_json::from_value(row["category"].clone()).ok();
        Ok(Self {
            id: row["id"].as_str().unwrap_or_default().to_owned(),
            stage: match row["stage"].as_str() {
                Some("in_stream") => Stage::InStream,
                Some("transport") => Stage::Transport,
                _ => Stage::Http,
            },
            status: row["status"].as_u64().and_then(|status| status.try_into().ok()),
            headers: headers
                .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
                .collect(),
            body: row["body"].as_str().unwrap_or_default().to_owned(),
            now: row["now"].as_str().and_then(epoch_ms).unwrap_or_default(),
            label: category.map(|category| Label { category, retryable: row["retryable"] == true }),
            wait: row["retry_after_ms"].as_u64(),
            image: row["image"].as_bool(),
            scored: matches!(row["needs_context"], Value::Null | Value::Bool(false)),
        })
    }

    /// Diagnoses the row.
    pub(crate) fn diagnose(&self) -> Failure {
        let headers: Vec<_> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        diagnose(&Evidence {
            stage: self.stage,
            status: self.status,
            headers: &headers,
            body: &self.body,
            transport: None,
            now: self.now,
        })
    }
}

/// Converts `2026-09-01T00:00:00Z` to epoch milliseconds.
fn epoch_ms(text: &str) -> Option<u64> {
    let part = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
    let (year, month, day) = (part(0..4)?, part(5..7)?, part(8..10)?);
    let seconds = part(11..13)? * 3600 + part(14..16)? * 60 + part(17..19)?;
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let years: u64 = (1970..year).map(|year| 365 + u64::from(leap(year))).sum();
    let months: u64 = lengths.get(..month.checked_sub(1)? as usize)?.iter().sum();
    Some(((years + months + day - 1) * 86_400 + seconds) * 1000)
}
