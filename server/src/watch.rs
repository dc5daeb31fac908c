//! The process that ends programs if this one is killed.

use std::{env, process::Command, sync::Arc};

use everturn_mcp::Watchdog;

/// Its command.
pub(crate) const WATCH: &str = "watch-programs";

/// Starts the process that ends programs if this one is killed.
pub(crate) fn watchdog() -> Option<Arc<Watchdog>> {
    let program = env::current_exe();
    let started = program.and_then(|program| Watchdog::start(Command::new(program).arg(WATCH)));
    match started {
        Ok(watchdog) => Some(Arc::new(watchdog)),
        Err(error) => {
            tracing::warn!(%error, "cannot watch programs: if this process is killed, they may keep running");
            None
        }
    }
}
