//! Failed attempts of a turn, read back from its events; for people, never for a model.

use std::collections::VecDeque;

use everturn_wire::{Because, Category, ConversationId, FailedAttempt, TurnId};
use serde::Deserialize;

use crate::{Cursor, Journal, JournalError};

/// Maximum number of attempts kept per turn: the newest.
const MOST: usize = 100;
/// Maximum length of a message, in characters.
const MESSAGE: usize = 500;
/// Number of events read at once.
const PAGE: usize = 256;

/// The failed attempts of one turn, collected from its events in order.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    kept: VecDeque<FailedAttempt>,
    step: u32,
    /// Number of retries of the current series before which nobody was asked.
    unasked: u32,
    /// The number of the next attempt of the series.
    next: u32,
}

impl Attempts {
    /// Reads the attempts of the turn that begins at `from`, as far as it is in the journal.
    ///
    /// # Errors
    /// When the journal fails.
    pub(crate) async fn read(
        journal: &dyn Journal,
        id: &ConversationId,
        from: Cursor,
    ) -> Result<Self, JournalError> {
        let (mut attempts, mut after) = (Self::default(), from);
        loop {
            let events = journal.events(id, after, PAGE).await?;
            let Some(last) = events.last() else { return Ok(attempts) };
            after = last.end;
            for event in &events {
                if attempts.hear(&event.json) {
                    return Ok(attempts);
                }
            }
        }
    }

    /// Processes an event. Returns whether it was the turn's last one.
    pub(crate) fn hear(&mut self, json: &[u8]) -> bool {
        // Skip parsing: a turn may have many events, and few of them matter.
        let rest = json.strip_prefix(br#"{"type":""#).unwrap_or_default();
        if rest.starts_with(b"step-complete\"") {
            (self.step, self.next) = (self.step + 1, 0);
        } else if rest.starts_with(b"provider-retry\"") {
            let failed = serde_json::from_slice(json).ok().and_then(|event| self.failed(event));
            self.keep(failed);
        } else if rest.starts_with(b"compaction-started\"") {
            let refused = serde_json::from_slice(json).ok().and_then(|event| self.refused(event));
            self.keep(refused);
            self.next = 0;
        } else if rest.starts_with(b"compaction-completed\"") {
            self.next = 0;
        }
        rest.starts_with(b"turn-sealed\"")
    }

    fn keep(&mut self, failed: Option<FailedAttempt>) {
        self.kept.extend(failed);
        if self.kept.len() > MOST {
            self.kept.pop_front();
        }
    }

    /// Returns the attempt that an overflow ended. `None` if no request was refused.
    fn refused(&self, compaction: Compaction) -> Option<FailedAttempt> {
        Some(FailedAttempt {
            turn_id: compaction.turn_id,
            step: self.step,
            attempt: self.next,
            target: compaction.failed_target,
            category: Some(Category::ContextOverflow),
            code: compaction.code,
            message: brief(compaction.message.unwrap_or_default()),
            failed_at: compaction.failed_at?,
            latency_ms: compaction.latency_ms,
            wait_ms: Some(0),
            because: None,
        })
    }

    /// Returns the failed attempt behind a retry. `None` if another turn found the failure, so that no attempt was made.
    fn failed(&mut self, retry: Retry) -> Option<FailedAttempt> {
        if retry.attempt == 0 {
            self.unasked = 0;
        }
        if retry.shared.is_some() {
            self.unasked += 1;
            return None;
        }
        self.next = (retry.attempt + 1).saturating_sub(self.unasked);
        Some(FailedAttempt {
            turn_id: retry.turn_id,
            step: self.step,
            attempt: retry.attempt.saturating_sub(self.unasked),
            target: retry.failed_target,
            category: retry.category,
            code: retry.code,
            message: brief(retry.message),
            failed_at: retry.next_at?.saturating_sub(retry.delay_ms),
            latency_ms: retry.latency_ms,
            wait_ms: Some(retry.delay_ms),
            because: retry.because,
        })
    }

    /// Returns all attempts, including the one that ended the turn.
    pub(crate) fn ended_by(mut self, last: Option<FailedAttempt>) -> Vec<FailedAttempt> {
        self.kept.extend(last);
        let surplus = self.kept.len().saturating_sub(MOST);
        self.kept.drain(..surplus);
        self.kept.into()
    }
}

/// The fields of a `provider-retry` event about the failed attempt.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Retry {
    turn_id: TurnId,
    attempt: u32,
    delay_ms: u64,
    message: String,
    code: Option<String>,
    next_at: Option<u64>,
    category: Option<Category>,
    shared: Option<bool>,
    because: Option<Because>,
    failed_target: Option<String>,
    latency_ms: Option<u64>,
}

/// The fields of a `compaction-started` event about the refused request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Compaction {
    turn_id: TurnId,
    message: Option<String>,
    code: Option<String>,
    failed_target: Option<String>,
    failed_at: Option<u64>,
    latency_ms: Option<u64>,
}

/// Truncates a message.
pub(crate) fn brief(message: String) -> String {
    match message.char_indices().nth(MESSAGE) {
        Some((at, _)) => format!("{}…", &message[..at]),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry(attempt: u32, more: &str) -> String {
        format!(
            r#"{{"type":"provider-retry","attempt":{attempt},"delayMs":5000,"message":"no","nextAt":{},{more}
                "conversationId":"c","turnId":"t"}}"#,
            5_000 + 1_000 * attempt
        )
    }

    #[test]
    fn a_retry_tells_of_the_attempt_before_it() {
        let mut attempts = Attempts::default();
        assert!(!attempts.hear(retry(0, r#""failedTarget":"a/m","latencyMs":7,"#).as_bytes()));
        attempts.hear(br#"{"type":"step-complete","stepId":"t#0","conversationId":"c","turnId":"t"}"#);
        attempts.hear(retry(0, r#""shared":true,"#).as_bytes());
        attempts.hear(retry(1, r#""category":"overloaded","code":"529","#).as_bytes());
        assert!(attempts.hear(br#"{"type":"turn-sealed","conversationId":"c","turnId":"t"}"#));
        let told: Vec<_> = attempts
            .ended_by(None)
            .into_iter()
            .map(|it| (it.step, it.attempt, it.target, it.code, it.failed_at, it.latency_ms))
            .collect();
        let first = (0, 0, Some("a/m".to_owned()), None, 0, Some(7));
        assert_eq!(told, [first, (1, 0, None, Some("529".to_owned()), 1_000, None)], "one was not asked");
    }

    #[test]
    fn the_newest_are_kept() {
        let mut attempts = Attempts::default();
        (0..150).for_each(|attempt| _ = attempts.hear(retry(attempt, "").as_bytes()));
        let last = attempts.kept.back().cloned();
        let kept = attempts.ended_by(last);
        assert_eq!((kept.len(), kept[0].attempt, kept[99].attempt), (100, 51, 149));
    }

    #[test]
    fn a_long_message_is_cut() {
        assert_eq!(brief("ä".repeat(500)).chars().count(), 500);
        assert_eq!(brief("ä".repeat(501)), format!("{}…", "ä".repeat(500)));
    }
}
