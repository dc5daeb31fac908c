//! The log itself.

use std::collections::HashMap;

use everturn_wire::{AgentEvent, Chunk, EventBody, Role, TurnId};

use super::{Command, Log, Logged, width};

/// The positions of a log.
pub(super) struct Ruler<'a>(&'a [Logged]);

impl<'a> Ruler<'a> {
    pub(super) fn of(events: &'a [Logged]) -> Self {
        Self(events)
    }

    pub(super) fn end(&self) -> u64 {
        self.0.last().map_or(0, |event| event.end)
    }

    /// Returns the events that have something between these positions.
    pub(super) fn between(&self, start: u64, end: u64) -> &'a [Logged] {
        let first = self.0.partition_point(|event| event.end <= start);
        let count = self.0[first..].partition_point(|event| event.start < end);
        &self.0[first..first + count]
    }

    /// Compares an event that was told with what the log has there. Returns whether the log has it at all: what is streamed,
    /// by the model or a tool, may be lost, text also in part.
    pub(super) fn has(&self, start: u64, told: &AgentEvent) -> Result<bool, String> {
        let end = start + width(told);
        let found = self.between(start, end);
        let differs =
            |logged: &Logged| format!("told {:?}, and the log has {:?}", told.body, logged.event.body);
        let Some(text) = told.body.delta() else {
            return match found {
                [] if told.body.is_delta() => Ok(false),
                [] => Err(format!("told what the log does not have: {:?}", told.body)),
                [logged] if logged.start == start && logged.event == *told => Ok(true),
                [logged, ..] => Err(differs(logged)),
            };
        };
        for logged in found {
            let same =
                logged.event.turn_id == told.turn_id && is_reasoning(&logged.event) == is_reasoning(told);
            let Some(other) = logged.event.body.delta().filter(|_| same) else { return Err(differs(logged)) };
            let (from, to) = (start.max(logged.start), end.min(logged.end));
            let of = |text: &str, start: u64| {
                text.as_bytes().get((from - start) as usize..(to - start) as usize).map(<[u8]>::to_vec)
            };
            if !text.is_empty() && of(text, start) != of(other, logged.start) {
                return Err(differs(logged));
            }
        }
        Ok(!found.is_empty())
    }
}

fn is_reasoning(event: &AgentEvent) -> bool {
    matches!(event.body, EventBody::ReasoningDelta { .. })
}

/// Returns what is wrong with a log, whoever read it.
pub(super) fn check(log: &Log) -> Vec<String> {
    let mut wrong = Vec::new();
    for (event, next) in log.events.iter().zip(log.events.iter().skip(1)) {
        if next.start < event.end {
            wrong.push(format!("the log has two events at {}", next.start));
        }
    }
    for event in &log.events {
        if event.end - event.start != width(&event.event) {
            wrong.push(format!(
                "from {} to {} is not the length of {:?}",
                event.start, event.end, event.event.body
            ));
        }
    }
    if !log.chunks.iter().map(|chunk| chunk.seq).eq(1..=log.chunks.len() as u64) {
        wrong.push("a chunk is missing, or there twice".to_owned());
    }
    wrong.extend(turns(log).err());
    let (shown, kept) = (shown(log.events.iter().map(|logged| &logged.event)), kept(log));
    if shown != kept {
        wrong.push(format!("shown was {shown:?}, and kept is {kept:?}"));
    }
    wrong
}

/// Each turn is contiguous, is done and sealed once, and nothing follows its seal.
fn turns(log: &Log) -> Result<(), String> {
    let mut ends: HashMap<&TurnId, [usize; 2]> = HashMap::new();
    let mut running = None;
    for Logged { event, .. } in &log.events {
        let Some(turn) = &event.turn_id else { continue };
        let [done, sealed] = ends.entry(turn).or_default();
        if *sealed > 0 {
            return Err(format!("{:?} follows the seal of its turn", event.body));
        }
        if running.is_some_and(|running| running != turn) {
            return Err(format!("{:?} is in the middle of another turn", event.body));
        }
        running = Some(turn);
        match event.body {
            EventBody::Done { .. } => *done += 1,
            EventBody::TurnSealed => (*sealed, running) = (*sealed + 1, None),
            _ => {}
        }
    }
    match ends.iter().find(|(_, ends)| **ends != [1, 1]) {
        Some((turn, ends)) => Err(format!("{turn} was done and sealed {ends:?} times")),
        None => Ok(()),
    }
}

/// Returns the text that a client shows after these events.
pub(super) fn shown<'e>(events: impl Iterator<Item = &'e AgentEvent>) -> String {
    let (mut shown, mut step) = (String::new(), String::new());
    for event in events {
        match &event.body {
            EventBody::TextDelta { delta } => step.push_str(delta),
            EventBody::StepRewound { .. } => step.clear(),
            EventBody::StepComplete { .. } | EventBody::TurnSealed => {
                shown.push_str(&std::mem::take(&mut step));
            }
            _ => {}
        }
    }
    shown + &step
}

/// Returns the text that the history keeps.
fn kept(log: &Log) -> String {
    let texts = log.chunks.iter().filter(|chunk| chunk.role == Role::Assistant);
    let texts = texts.filter_map(|chunk| match &*chunk.chunk {
        Chunk::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Returns what is wrong with the outcome of a command.
pub(super) fn lacks(log: &Log, command: &Command) -> Option<String> {
    let (Command::Said(text) | Command::TakenBack(text)) = command;
    let in_events = log.events.iter().filter(|logged| match &logged.event.body {
        EventBody::UserMessage { text: said } | EventBody::Steering { text: said } => said == text,
        _ => false,
    });
    let in_chunks = log.chunks.iter().filter(|chunk| {
        chunk.role == Role::User && matches!(&*chunk.chunk, Chunk::Text { text: said } if said == text)
    });
    let expected = if matches!(command, Command::Said(_)) { (1, 1) } else { (0, 0) };
    let found = (in_events.count(), in_chunks.count());
    (found != expected).then(|| format!("{command:?} is {found:?} times in events and history"))
}
