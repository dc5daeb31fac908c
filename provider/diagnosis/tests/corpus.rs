//! The diagnosis of labelled failures.

#[path = "corpus/row.rs"]
mod row;

use row::Row;

/// The number of correct diagnoses in one file.
#[derive(Default)]
struct Score {
    rows: usize,
    disagreements: Vec<String>,
    wrong_waits: Vec<String>,
    invented_waits: Vec<String>,
}

impl Score {
    fn of(lines: &str) -> Self {
        let mut score = Self::default();
        let rows = lines.lines().map(|line| Row::parse(line).expect("a row is JSON"));
        rows.filter(|row| row.scored).for_each(|row| score.add(&row));
        score
    }

    fn add(&mut self, row: &Row) {
        let failure = row.diagnose();
        if let Some(label) = &row.label {
            let (want, got) = ((label.category, label.retryable), (failure.category, failure.retryable));
            self.rows += 1;
            if want != got {
                self.disagreements.push(format!("{}: want {want:?}, got {got:?}", row.id));
            }
        }
        let tolerance = |wait: u64| (wait / 1000).max(1);
        match (row.wait, failure.hint_ms) {
            (None, None) => {}
            (Some(want), Some(got)) if got.abs_diff(want) <= tolerance(want) => {}
            (None, Some(got)) => self.invented_waits.push(format!("{}: {got}", row.id)),
            (Some(want), got) => self.wrong_waits.push(format!("{}: want {want}, got {got:?}", row.id)),
        }
    }

    /// Asserts that exactly the `known` rows are misjudged, so that a change for better or worse is noticed.
    fn check(&self, known: &[&str]) {
        let ids = self.disagreements.iter().filter_map(|line| line.split(':').next());
        assert_eq!(ids.collect::<Vec<_>>(), known, "of {}:\n{}", self.rows, self.disagreements.join("\n"));
        assert_eq!(self.wrong_waits, [""; 0]);
        assert_eq!(self.invented_waits, [""; 0]);
    }
}

#[test]
fn collected_failures_are_diagnosed() {
    let score = Score::of(include_str!("corpus/errors.jsonl"));
    assert!(score.rows > 300, "only {} rows were read", score.rows);
    // Its text is that of a peer that does not speak HTTP at all, which is retried.
    score.check(&["rq-plain-to-tls-port"]);
}

#[test]
fn further_failures_are_diagnosed() {
    let score = Score::of(include_str!("corpus/field.jsonl"));
    assert!(score.rows > 200, "only {} rows were read", score.rows);
    score.check(&[]);
}

#[test]
fn reported_failures_are_diagnosed() {
    let score = Score::of(include_str!("corpus/report.jsonl"));
    assert!(score.rows > 500, "only {} rows were read", score.rows);
    score.check(&[]);
}

#[test]
fn failures_that_were_once_misread_are_diagnosed() {
    let score = Score::of(include_str!("corpus/misread.jsonl"));
    assert!(score.rows > 100, "only {} rows were read", score.rows);
    score.check(&[]);
}

#[test]
fn every_form_of_hint_is_read() {
    Score::of(include_str!("corpus/hints.jsonl")).check(&[]);
}

#[test]
fn a_rejected_image_is_told_from_other_rejections() {
    let lines = include_str!("corpus/image.jsonl");
    Score::of(lines).check(&[]);
    let rows: Vec<Row> = lines.lines().map(|line| Row::parse(line).expect("a row is JSON")).collect();
    assert!(rows.len() > 30, "only {} rows were read", rows.len());
    let is_wrong = |row: &&Row| row.image != Some(row.diagnose().rejects_image);
    let wrong: Vec<_> = rows.iter().filter(is_wrong).map(|row| &row.id).collect();
    assert_eq!(wrong, [""; 0]);
}
