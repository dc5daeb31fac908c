//! What a turn is configured to do about failures.

use std::sync::Arc;

use everturn_kernel::{Schedule, Target};

/// The configured retry behaviour.
pub struct Plan {
    /// Whether failures are retried.
    pub enabled: bool,
    /// The schedule, without jitter.
    pub schedule: Arc<dyn Schedule + Send + Sync>,
    /// The schedule's name.
    pub name: &'static str,
    /// Maximum deviation of each wait, as a fraction of it.
    pub jitter: f64,
    /// Maximum sum of the waits of one step, in milliseconds.
    pub max_wait_ms: u64,
    /// Whether usage limits are waited out.
    pub parks: bool,
    /// The targets of the route; empty without a route.
    pub targets: Vec<Target>,
}
