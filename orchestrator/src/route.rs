//! Routes: several targets offered like one model, and the schedule by which a turn moves between them.

use std::sync::Arc;

use everturn_kernel::{Handover, Schedule, Target};
use everturn_wire::Priority;

use crate::journal::Configured;

/// How clients name routes: `route/` and the route's name.
pub(crate) const PREFIX: &str = "route/";

/// Several targets offered like one model.
#[derive(Clone)]
pub(crate) struct Route {
    /// How clients name it: `route/NAME`, or the id of a model with several credentials.
    pub(crate) id: String,
    /// In order, each once; never empty.
    pub(crate) targets: Vec<Target>,
    pub(crate) schedule: Arc<dyn Schedule + Send + Sync>,
    /// Whether the schedule is its own; otherwise it is the default.
    pub(crate) is_own: bool,
    /// Whether its calls give way to others.
    pub(crate) priority: Priority,
    /// What is saved with its turns, the schedule included.
    pub(crate) configured: Arc<Configured>,
}

/// Returns a schedule for several targets: one that does not choose between them is wrapped in a [`Handover`].
pub(crate) fn on_route(schedule: Arc<dyn Schedule + Send + Sync>) -> Arc<dyn Schedule + Send + Sync> {
    if schedule.chooses_targets() { schedule } else { Arc::new(Handover(schedule)) }
}
