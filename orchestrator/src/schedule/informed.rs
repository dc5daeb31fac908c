//! A schedule that knows the target health shared by all turns of the process.

use std::{sync::Arc, time::Duration};

use everturn_kernel::{Directive, NextCall, Question, Retry, Schedule};

use crate::health::SharedHealth;

/// A schedule that knows the target health shared by all turns of the process.
pub(crate) struct Informed {
    pub(crate) schedule: Arc<dyn Schedule + Send + Sync>,
    pub(crate) health: Arc<SharedHealth>,
}

impl Schedule for Informed {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        self.schedule.delay_for(retry)
    }

    fn decide(&self, question: &Question<'_>) -> Directive {
        self.schedule.decide(&question.knowing(&self.health.copy()))
    }

    fn next_target(&self, call: &NextCall<'_>) -> usize {
        match call.targets {
            [] => call.current,
            _ => self.schedule.next_target(&call.knowing(&self.health.copy())),
        }
    }

    fn counts_replies(&self) -> bool {
        self.schedule.counts_replies()
    }

    fn max_retries(&self) -> Option<u32> {
        self.schedule.max_retries()
    }
}
