//! The report.

use std::fmt;

/// Measurements, compared with their limits.
pub(crate) struct Table {
    rows: Vec<[String; 4]>,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self { rows: Vec::new() }
    }

    /// Adds a cost as a multiple of the bare client's.
    pub(crate) fn ratio(&mut self, what: &str, cost: f64, bare: f64, limit: f64) {
        self.row(what, format!("{:.2} x", cost / bare), format!("{limit:?} x"), cost / bare <= limit);
    }

    /// Adds an absolute number.
    pub(crate) fn figure(&mut self, what: &str, value: f64, unit: &str, limit: f64) {
        self.row(what, format!("{value:.1} {unit}"), format!("{limit:.0} {unit}"), value <= limit);
    }

    fn row(&mut self, what: &str, value: String, limit: String, good: bool) {
        let verdict = if good { "within" } else { "ABOVE" };
        self.rows.push([what.to_owned(), value, limit, verdict.to_owned()]);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {:<64} | {:>12} | {:>10} | {:<6} |", "what", "measured", "limit", "")?;
        writeln!(f, "|{:-<66}|{:->13}:|{:->11}:|{:-<8}|", "", "", "", "")?;
        for [what, value, limit, verdict] in &self.rows {
            writeln!(f, "| {what:<64} | {value:>12} | {limit:>10} | {verdict:<6} |")?;
        }
        Ok(())
    }
}
