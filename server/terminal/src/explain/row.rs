//! Diagnoses failures given as JSON lines.

use std::{
    collections::BTreeMap,
    io::{BufRead, Write},
};

use anyhow::{Context as _, Result};
use everturn_diagnosis::{Evidence, Transport, diagnose};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::args::{self, epoch_ms};

/// One failure.
#[derive(Deserialize)]
struct Row {
    id: String,
    #[serde(default = "http")]
    stage: args::Stage,
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
    transport: Option<args::Transport>,
    now: Option<String>,
}

fn http() -> args::Stage {
    args::Stage::Http
}

/// Diagnoses each line, and prints the result.
pub(super) fn predict(lines: impl BufRead, mut out: impl Write) -> Result<()> {
    for (number, line) in (1..).zip(lines.lines()) {
        let line = line.with_context(|| format!("cannot read line {number}"))?;
        if line.trim().is_empty() {
            continue;
        }
        let prediction = Row::parse(&line).and_then(|row| row.predict());
        writeln!(out, "{}", prediction.with_context(|| format!("line {number}"))?)?;
    }
    Ok(out.flush()?)
}

impl Row {
    fn parse(line: &str) -> Result<Self> {
        serde_json::from_str(line).context("it is not a failure: expected a JSON object with at least an id")
    }

    fn predict(&self) -> Result<serde_json::Value> {
        let headers: Vec<_> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let now = self.now.as_deref().map(str::parse::<Timestamp>).transpose();
        let now = now
            .with_context(|| format!("{:?} is not a valid time", self.now.as_deref().unwrap_or_default()))?;
        let failure = diagnose(&Evidence {
            stage: self.stage.into(),
            status: self.status,
            headers: &headers,
            body: &self.body,
            transport: self.transport.map(Transport::from),
            now: now.map_or(0, epoch_ms),
        });
        Ok(json!({
            "id": self.id,
            "category": failure.category,
            "retryable": failure.retryable,
            "retry_after_ms": failure.hint_ms,
        }))
    }
}
