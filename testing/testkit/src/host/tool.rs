//! A scripted tool.

use std::future::pending;

use everturn_kernel::{Input, ToolAnswer};
use everturn_wire::OutputStream;

use super::{Printed, let_others_look};
use crate::{Clock, Fact, Log, Tool, crash::Crash};

/// A running tool. Records its end when dropped.
pub(super) struct Running {
    clock: Clock,
    log: Log,
    crash: Crash,
    printed: Printed,
}

impl Running {
    pub(super) fn new(clock: &Clock, log: &Log, crash: &Crash, printed: &Printed) -> Self {
        Self { clock: clock.clone(), log: log.clone(), crash: crash.clone(), printed: printed.clone() }
    }

    pub(super) async fn run(self, tool: Tool, call_id: String) -> ToolAnswer {
        self.may_crash().await;
        if tool.hangs {
            pending::<()>().await;
        }
        self.clock.sleep(tool.takes_ms / 2).await;
        if let Some(data) = tool.prints {
            let output = Input::ToolOutput { call_id, stream: OutputStream::Stdout, data };
            self.printed.lock().expect("no one panics while printing").push_back(output);
            let_others_look().await;
        }
        self.clock.sleep(tool.takes_ms - tool.takes_ms / 2).await;
        tool.answer
    }

    /// Answers a call of a tool that is not in the script.
    pub(super) async fn refuse(self, name: String) -> ToolAnswer {
        self.may_crash().await;
        ToolAnswer::error(format!("(tool failed: there is no tool {name:?})"))
    }

    async fn may_crash(&self) {
        if self.crash.is_now() {
            self.clock.stop();
            pending::<()>().await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.log.note(self.clock.now(), Fact::Stopped);
    }
}
