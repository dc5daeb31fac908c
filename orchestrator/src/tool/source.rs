//! Sources of tools that come and go while the orchestrator runs.

use std::sync::Arc;

use async_trait::async_trait;
use everturn_wire::{ToolSourceLogin, ToolSourceStatus};

use super::Tool;

/// Tools that come and go while the orchestrator runs, such as those of an MCP server. A turn is offered the tools that
/// are available when it begins.
#[async_trait]
pub trait ToolSource: Send + Sync + 'static {
    /// The source's name, shown to people.
    fn name(&self) -> &str;

    /// The tools offered to turns that begin now. Must be cheap: returns the same `Arc` while the list is unchanged.
    /// Tools that are temporarily unavailable stay in the list and their calls fail, because changing the tools of
    /// requests defeats prompt caching.
    fn tools(&self) -> Arc<[Arc<dyn Tool>]>;

    /// The source's current state.
    fn state(&self) -> SourceState;

    /// Whether the source may later offer a tool of this name that it does not offer now. A turn that resumes after a
    /// restart waits for sources that may still offer one of its tools.
    fn may_offer(&self, name: &str) -> bool;

    /// Waits until the source is no longer starting, whether that succeeded or not.
    async fn settled(&self);
}

/// The state of a tool source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceState {
    /// Whether its tools can be called.
    pub status: ToolSourceStatus,
    /// Why it is down, when it will be restarted, or which tools cannot be offered. Shown to people, so it must not
    /// contain secrets.
    pub message: Option<String>,
    /// The login that it asks for or has.
    pub login: Option<ToolSourceLogin>,
}
