//! What one client saw, as a reading of the log.

use everturn_wire::{AgentEvent, EventBody};

use super::{Client, Seen, log::Ruler, log::shown, width};

/// The part of what a client saw that it has not forgotten.
#[derive(Default)]
struct Reading<'e> {
    /// Each event with its end, and whether the log has it.
    events: Vec<(u64, &'e AgentEvent, bool)>,
    begin: u64,
    /// All cursors that it was ever told.
    cursors: Vec<u64>,
}

impl<'e> Reading<'e> {
    fn position(&self) -> u64 {
        self.events.last().map_or(self.begin, |(end, ..)| *end)
    }

    fn ask(&mut self, cursor: u64) -> Result<(), String> {
        if self.cursors.is_empty() {
            self.begin = cursor;
        } else if !self.cursors.contains(&cursor) {
            return Err(format!("it asks for what follows {cursor}, which it was never told"));
        }
        self.cursors.push(cursor);
        self.events.retain(|(end, ..)| *end <= cursor);
        if self.events.is_empty() {
            self.begin = cursor;
        }
        match self.position() {
            position if position == cursor => Ok(()),
            position => {
                Err(format!("it asks for what follows {cursor}, and has only what is before {position}"))
            }
        }
    }

    fn tell(&mut self, ruler: &Ruler<'_>, end: u64, event: &'e AgentEvent) -> Result<(), String> {
        let (position, what) = (self.position(), &event.body);
        let start = end.checked_sub(width(event)).ok_or_else(|| format!("{what:?} ends at {end}"))?;
        if start < position {
            return Err(format!("told {what:?} at {start}, and was at {position} already"));
        }
        if start > position {
            if let Some(missed) = ruler.between(position, start).first() {
                return Err(format!("missed {:?} at {}", missed.event.body, missed.start));
            }
            // Cursors are skipped after a crash, which is told if text was lost.
            let is_lost =
                |(_, event, is_logged): &(u64, &AgentEvent, bool)| !is_logged && event.body.delta().is_some();
            let has_lost = self.events.last().is_some_and(is_lost);
            // What the lost text used, and results of its calls, come before its withdrawal.
            let withdraws = matches!(
                what,
                EventBody::StepRewound { .. } | EventBody::ToolResult { .. } | EventBody::Usage { .. }
            );
            if has_lost && !withdraws {
                return Err(format!("told {what:?} after lost text that was not withdrawn"));
            }
        }
        let is_logged = ruler.has(start, event)?;
        self.cursors.push(end);
        self.events.push((end, event, is_logged));
        Ok(())
    }

    /// What was lost was withdrawn.
    fn ends(&self, ruler: &Ruler<'_>, is_at_end: bool) -> Result<(), String> {
        if !is_at_end {
            return Ok(());
        }
        if self.position() < ruler.end() {
            return Err(format!("it was told nothing after {}, of {}", self.position(), ruler.end()));
        }
        let told = shown(self.events.iter().map(|(_, event, _)| *event));
        let logged = shown(ruler.between(self.begin, u64::MAX).iter().map(|logged| &logged.event));
        if told != logged {
            return Err(format!("it shows {told:?}, and the log {logged:?}"));
        }
        Ok(())
    }
}

/// Checks what a client saw.
pub(super) fn check(ruler: &Ruler<'_>, client: &Client) -> Result<(), String> {
    let mut reading = Reading::default();
    for seen in &client.seen {
        match seen {
            Seen::Asked(cursor) => reading.ask(*cursor)?,
            Seen::Told(end, event) => reading.tell(ruler, *end, event)?,
        }
    }
    reading.ends(ruler, client.is_at_end)
}
