//! What a turn is configured to do about failures.

use everturn_kernel::Target;
use everturn_orchestrator::RetryPolicy;

/// The configured retry behaviour.
pub struct Plan {
    /// Whether failures are retried.
    pub enabled: bool,
    /// The policy, without jitter.
    pub policy: RetryPolicy,
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
