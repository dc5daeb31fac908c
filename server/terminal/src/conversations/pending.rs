//! Describes an unsealed turn.

use anyhow::Result;
use everturn_orchestrator::{Cursor, TurnRecord, Wait, kernel::Turn};
use everturn_wire::{AgentEvent, ConversationId, EventBody, RetryPhase, RetryState};

use super::archive::Archive;
use crate::{calendar::Calendar, wording};

/// Number of events read at a time while searching for the reason of a wait.
const EVENTS: usize = 512;

/// The wait of a turn, if it is waiting.
pub(super) fn wait(turn: &TurnRecord) -> Option<RetryState> {
    let turn = Turn::restore(turn.snapshot.clone()).ok()?;
    turn.retry().filter(|retry| retry.phase == RetryPhase::Waiting)
}

/// `waits until 12:03:10, 3rd retry`, or that it no longer waits; `needs you` if it waits for a person.
pub(super) fn words(turn: &TurnRecord, calendar: &Calendar) -> String {
    if let Wait::Person { until } = turn.wait {
        return match until {
            Some(until) => format!("needs you by {}", calendar.exact(until.at.0)),
            None => "needs you".to_owned(),
        };
    }
    let Some(wait) = wait(turn) else { return "unfinished".to_owned() };
    let next_at = wait.next_at.unwrap_or_default();
    let (retry, at) = (wording::ordinal(u64::from(wait.attempt) + 1), calendar.exact(next_at));
    match calendar.is_ahead(next_at) {
        true => format!("waits until {at}, {retry} retry"),
        false => format!("{retry} retry due since {at}"),
    }
}

/// The failure that a waiting turn waits out: code, category, message.
pub(super) async fn failure(
    archive: &Archive,
    id: &ConversationId,
    turn: &TurnRecord,
) -> Result<Option<(String, String)>> {
    let (mut after, mut latest) = (turn.from, None);
    loop {
        let events = archive.events(id, after, EVENTS).await?;
        for event in &events {
            let event: Option<AgentEvent> = serde_json::from_slice(&event.json).ok();
            if let Some(EventBody::ProviderRetry { code, category, message, .. }) =
                event.map(|event| event.body)
            {
                let kind = category.map(wording::category);
                let name: Vec<String> = code.into_iter().chain(kind).collect();
                latest = Some((name.join(" "), message));
            }
        }
        match events.last().filter(|_| events.len() == EVENTS) {
            Some(last) => after = Cursor::from_value(last.end.value()),
            None => return Ok(latest),
        }
    }
}

#[cfg(test)]
mod tests {
    use everturn_orchestrator::{
        Definition, Moment,
        kernel::{Effects, Millis, Prompt, Settings, Turn},
    };

    use super::*;

    #[test]
    fn a_turn_that_waits_for_a_person_says_so() {
        let turn =
            Turn::begin("t".into(), Settings::default(), Prompt::default(), Millis(1), &mut Effects::new());
        let words = |wait| {
            let (snapshot, definition) = (turn.snapshot(), Definition::new("test/m"));
            let record = TurnRecord { snapshot, wait, from: Cursor::default(), first_seq: 1, definition };
            words(&record, &Calendar::of_process())
        };
        assert_eq!(words(Wait::Now), "unfinished");
        assert_eq!(words(Wait::Person { until: None }), "needs you");
        let until = Some(Moment { at: Millis(2_000_000_000_000), decided_ms: 1 });
        assert!(words(Wait::Person { until }).starts_with("needs you by "));
    }
}
