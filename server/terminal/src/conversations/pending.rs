//! Describes an unsealed turn.

use everturn_orchestrator::{TurnRecord, Wait, kernel::Turn};
use everturn_wire::{ConversationState, RetryPhase, RetryState};

use crate::{calendar::Calendar, wording};

/// An unsealed turn, as a journal or a server tells of it.
pub(super) struct Pending {
    /// The wait that it is in.
    pub(super) retry: Option<RetryState>,
    person: Option<Person>,
    /// The texts of queued messages.
    pub(super) queue: Vec<String>,
}

/// It waits for a person.
struct Person {
    /// Until then, in epoch milliseconds; `None` = for ever.
    until: Option<u64>,
}

impl Pending {
    pub(super) fn of_record(record: &TurnRecord) -> Self {
        let retry = Turn::restore(record.snapshot.clone()).ok().and_then(|turn| turn.retry());
        let person = match record.wait {
            Wait::Person { until } => Some(Person { until: until.map(|until| until.at.0) }),
            _ => None,
        };
        let queue = record.snapshot.queue().iter().map(|message| message.text.clone()).collect();
        Self { retry: retry.filter(is_waiting), person, queue }
    }

    pub(super) fn of_state(state: ConversationState) -> Self {
        // Running tools may ask as well, but a server does not say until when it waits for anybody.
        let person =
            (state.approvals.is_some() || state.questions.is_some()).then_some(Person { until: None });
        let queue = state.queue.into_iter().flatten().map(|message| message.text).collect();
        Self { retry: state.retry.filter(is_waiting), person, queue }
    }

    /// Whether it waits, for a moment or a person.
    pub(super) fn waits(&self) -> bool {
        self.retry.is_some() || self.person.is_some()
    }

    /// `waits until 12:03:10, 3rd retry`, or that it no longer waits; `needs you` if it waits for a person.
    pub(super) fn words(&self, calendar: &Calendar) -> String {
        match (&self.person, &self.retry) {
            (Some(Person { until: Some(until) }), _) => format!("needs you by {}", calendar.exact(*until)),
            (Some(Person { until: None }), _) => "needs you".to_owned(),
            (None, None) => "unfinished".to_owned(),
            (None, Some(wait)) => {
                let next_at = wait.next_at.unwrap_or_default();
                let (retry, at) = (wording::ordinal(u64::from(wait.attempt) + 1), calendar.exact(next_at));
                match calendar.is_ahead(next_at) {
                    true => format!("waits until {at}, {retry} retry"),
                    false => format!("{retry} retry due since {at}"),
                }
            }
        }
    }
}

fn is_waiting(retry: &RetryState) -> bool {
    retry.phase == RetryPhase::Waiting
}

#[cfg(test)]
mod tests {
    use everturn_orchestrator::{
        Cursor, Definition, Moment,
        kernel::{Effects, Millis, Prompt, Settings},
    };

    use super::*;

    #[test]
    fn a_turn_that_waits_for_a_person_says_so() {
        let turn =
            Turn::begin("t".into(), Settings::default(), Prompt::default(), Millis(1), &mut Effects::new());
        let words = |wait| {
            let (snapshot, definition) = (turn.snapshot(), Definition::new("test/m"));
            let record = TurnRecord { snapshot, wait, from: Cursor::default(), first_seq: 1, definition };
            Pending::of_record(&record).words(&Calendar::of_process())
        };
        assert_eq!(words(Wait::Now), "unfinished");
        assert_eq!(words(Wait::Person { until: None }), "needs you");
        let until = Some(Moment { at: Millis(2_000_000_000_000), decided_ms: 1 });
        assert!(words(Wait::Person { until }).starts_with("needs you by "));
    }
}
