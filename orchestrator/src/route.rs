//! Routes: several targets offered like one model, and the schedule by which a turn moves between them.

use std::sync::Arc;

use everturn_kernel::Target;
use everturn_pacing::RetryPolicy;
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
    pub(crate) policy: RetryPolicy,
    /// Whether the policy is its own; otherwise it is the default.
    pub(crate) is_own: bool,
    /// Whether its calls give way to others.
    pub(crate) priority: Priority,
    /// What is saved with its turns, the schedule included.
    pub(crate) configured: Arc<Configured>,
}
