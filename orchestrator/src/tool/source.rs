//! Sources of tools that come and go while the orchestrator runs.

use std::sync::Arc;

use async_trait::async_trait;
use everturn_wire::ToolSourceStatus;

use super::Tool;

/// Tools that come and go while the orchestrator runs, such as those of an MCP server. A turn is offered what there is
/// when it begins.
#[async_trait]
pub trait ToolSource: Send + Sync + 'static {
    /// Its name, for people.
    fn name(&self) -> &str;

    /// What turns that begin now are offered. Cheap: the same `Arc` as long as the list is the same. Tools that cannot
    /// be called for a while stay in it, as requests whose tools change cannot be cached: their calls fail.
    fn tools(&self) -> Arc<[Arc<dyn Tool>]>;

    /// How it is.
    fn state(&self) -> SourceState;

    /// Whether it may offer a tool of that name later, which it does not offer now. A turn that is taken up after a restart
    /// waits for sources that may yet offer one of its tools.
    fn may_offer(&self, name: &str) -> bool;

    /// Waits until it is no longer starting, whether that worked or not.
    async fn settled(&self);
}

/// How a source is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceState {
    /// Whether its tools can be called.
    pub status: ToolSourceStatus,
    /// Why it is down, when it is started again, or what of it cannot be offered. Without secrets: people are shown it.
    pub message: Option<String>,
}
