//! Routes: several targets offered like one model, and the schedule by which a turn moves between them.

use std::sync::Arc;

use everturn_kernel::{Handover, Schedule, Target};

use crate::journal::Configured;

/// How clients name routes: `route/` and the route's name.
pub(crate) const PREFIX: &str = "route/";

/// Several targets offered like one model.
#[derive(Clone)]
pub(crate) struct Route {
    /// How clients name it: `route/NAME`, or the id of the model whose credentials it is over.
    pub(crate) id: String,
    /// In order, each once; never empty.
    pub(crate) targets: Vec<Target>,
    pub(crate) schedule: Arc<dyn Schedule + Send + Sync>,
    /// The schedule is its own; else it is that of all turns.
    pub(crate) is_own: bool,
    /// What is saved with its turns, the schedule included.
    pub(crate) configured: Arc<Configured>,
}

/// The schedule for several targets: one that does not choose between them hands over where a target is walled.
pub(crate) fn on_route(schedule: Arc<dyn Schedule + Send + Sync>) -> Arc<dyn Schedule + Send + Sync> {
    if schedule.chooses_targets() { schedule } else { Arc::new(Handover(schedule)) }
}
