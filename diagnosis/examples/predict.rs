//! Diagnoses labelled failures: JSON lines in, one prediction a line out.

#[path = "../tests/corpus/row.rs"]
#[allow(dead_code)]
mod row;

use std::error::Error;
use std::io::{self, BufRead, Write};

use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let row = row::Row::parse(&line?)?;
        let failure = row.diagnose();
        let prediction = json!({
            "id": row.id,
            "category": failure.category,
            "retryable": failure.retryable,
            "retry_after_ms": failure.hint_ms,
        });
        writeln!(out, "{prediction}")?;
    }
    Ok(())
}
