//! Diagnoses rows of labelled failures: JSON lines in, one prediction a line out.

use std::error::Error;
use std::io::{self, BufRead, Write};

use everturn_diagnosis::{Evidence, Stage, diagnose};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let row: Value = serde_json::from_str(&line?)?;
        let headers: Vec<(&str, &str)> = row["headers"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
            .collect();
        let failure = diagnose(&Evidence {
            stage: match row["stage"].as_str() {
                Some("in_stream") => Stage::InStream,
                Some("transport") => Stage::Transport,
                _ => Stage::Http,
            },
            status: row["status"].as_u64().and_then(|status| status.try_into().ok()),
            headers: &headers,
            body: row["body"].as_str().unwrap_or_default(),
            transport: None,
            now: row["now"].as_str().and_then(epoch_ms).unwrap_or_default(),
        });
        let prediction = json!({
            "id": row["id"],
            "category": failure.category,
            "retryable": failure.retryable,
            "retry_after_ms": failure.hint_ms,
        });
        writeln!(out, "{prediction}")?;
    }
    Ok(())
}

/// `2026-09-01T00:00:00Z` in epoch milliseconds.
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
