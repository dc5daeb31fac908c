//! What must always be true, and what must be true in the end.

use crate::{
    model::Model,
    turns::Needs,
    world::{Append, Command, Seen, Stage, World},
};

impl Seen {
    /// Notes what a stored append says.
    pub(crate) fn append(&mut self, append: &Append) {
        let of = usize::from(append.of) - 1;
        let Append { facts, .. } = append;
        if self.seals[of] > 0 {
            self.wrong = Some("something is stored for a turn that is sealed");
        }
        self.seals[of] += u8::from(facts.seals);
        self.reported[of] |= facts.interrupts;
        self.stopped[of] |= facts.stops;
        self.added += u8::from(facts.queues);
        self.said += u8::from(facts.says);
        self.hurried += u8::from(facts.hurries);
        self.allowed |= facts.allows;
        if facts.is_early {
            self.wrong = Some("a wait ends early");
        }
    }
}

impl Model {
    pub(crate) fn is_wrong(&self, world: &World) -> Option<&'static str> {
        let seen = &world.seen;
        if seen.wrong.is_some() {
            return seen.wrong;
        }
        if seen.seals.iter().any(|seals| *seals > 1) {
            return Some("a turn has two seals");
        }
        if !self.setting.script.is_idempotent && seen.starts.iter().any(|starts| *starts > 1) {
            return Some("a tool that may not run twice is started twice");
        }
        if seen.granted && !seen.allowed {
            return Some("a tool is allowed for the conversation by an answer that did not count");
        }
        if seen.added > 1 || seen.said > 1 {
            return Some("a message is added or said twice");
        }
        if seen.hurried > 1 {
            return Some("one *retry now* ends two waits");
        }
        let client = world.client.as_ref()?;
        let meant = client.meant.flatten().map(|number| usize::from(number) - 1);
        if (0..2).any(|turn| seen.stopped[turn] && meant != Some(turn)) {
            return Some("a stop ends a turn that it was not meant for");
        }
        let Stage::Told(Some(had_effect)) = client.stage else { return None };
        let has = match client.command {
            Command::Stop => meant.is_some_and(|turn| seen.stopped[turn]),
            Command::Enqueue => seen.added > 0,
            Command::Allow => seen.allowed,
            Command::RetryNow => seen.hurried > 0,
        };
        // A stop may be too late for a turn that ends by itself, and still says that a turn was running.
        let is_over = client.command == Command::Stop && meant.is_some_and(|turn| seen.seals[turn] > 0);
        match (had_effect, has) {
            (true, false) if !is_over => Some("a command is said to have had an effect, and had none"),
            (false, true) => Some("a command is said to have had no effect, and had one"),
            _ => None,
        }
    }

    pub(crate) fn is_unfinished(&self, world: &World) -> Option<&'static str> {
        let needs = world.log.turn.map(|turn| self.view(turn).needs);
        if needs.is_some_and(|needs| needs != Needs::Person) {
            return Some("a turn never ends");
        }
        if world.client.is_some_and(|client| !matches!(client.stage, Stage::Told(_))) {
            return Some("a command gets no answer");
        }
        (needs.is_none() && world.seen.added > world.seen.said).then_some("a message is never said")
    }
}
