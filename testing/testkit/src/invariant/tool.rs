//! When tools start, and how often.

use std::collections::HashMap;

use everturn_kernel::{Input, Settings};
use everturn_wire::EventBody;

use super::Violation;
use crate::Fact;

#[derive(Clone, Debug)]
pub(super) struct Tools {
    max_parallel: u32,
    eager: bool,
    idempotent: Vec<String>,
    running: u32,
    /// Whether the turn was saved since the last call, and since the last tool ended.
    is_saved: bool,
    /// Whether the stream of the last call has ended.
    stream_ended: bool,
    restarts: u32,
    /// Each call that was run, with the number of restarts before it.
    started: HashMap<(u32, String), u32>,
}

impl Tools {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            max_parallel: settings.max_parallel_tools.max(1),
            eager: settings.eager_tools,
            idempotent: settings.idempotent_tools.clone(),
            running: 0,
            is_saved: false,
            stream_ended: false,
            restarts: 0,
            started: HashMap::new(),
        }
    }

    pub(super) fn see(&mut self, fact: &Fact) -> Result<(), Violation> {
        match fact {
            Fact::Saved => self.is_saved = true,
            Fact::Told(EventBody::StepComplete { .. }) => self.stream_ended = true,
            Fact::Called(..) => (self.is_saved, self.stream_ended) = (false, false),
            Fact::Stopped => {
                self.running = self.running.saturating_sub(1);
                self.is_saved = false;
            }
            Fact::Restarted => {
                ensure!(self.running == 0, "{} tools outlive their process", self.running);
                self.restarts += 1;
            }
            // Sent by a host after a crash that the turn survived.
            Fact::Heard(Input::Recover) => self.restarts += 1,
            Fact::Ran { step, id, name } => self.run(*step, id, name)?,
            _ => {}
        }
        Ok(())
    }

    fn run(&mut self, step: u32, id: &str, name: &str) -> Result<(), Violation> {
        ensure!(self.is_saved, "{name} {step}/{id} starts before that is saved");
        ensure!(self.eager || self.stream_ended, "{name} {step}/{id} starts before the end of the stream");
        let before = self.started.insert((step, id.to_owned()), self.restarts);
        let may_start = before.is_none_or(|restarts| {
            restarts < self.restarts && self.idempotent.iter().any(|idempotent| idempotent == name)
        });
        ensure!(may_start, "{name} {step}/{id} starts twice");
        self.running += 1;
        let (running, most) = (self.running, self.max_parallel);
        ensure!(running <= most, "{running} tools run at once, {most} may");
        Ok(())
    }

    pub(super) fn end(&self) -> Result<(), Violation> {
        ensure!(self.running == 0, "{} tools outlive their turn", self.running);
        Ok(())
    }
}
