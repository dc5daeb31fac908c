//! Where a chat runs: in a terminal with a person, or between pipes.

use std::{
    env,
    io::{self, IsTerminal as _},
};

use anyhow::{Result, bail};
use everturn_wire::{ApprovalMode, ConversationId};

use super::{
    turn::Permissions,
    view::{Json, Live, Plain, View},
};
use crate::{args, printer};

/// Capabilities of the environment.
#[derive(Clone, Copy)]
pub(super) struct Terminal {
    /// Whether lines may be redrawn.
    pub(super) is_live: bool,
    /// Whether a person may press keys.
    pub(super) has_keys: bool,
}

impl Terminal {
    /// No terminal: nothing is redrawn, and no keys are read.
    pub(super) const NONE: Self = Self { is_live: false, has_keys: false };

    pub(super) fn of_process() -> Self {
        let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_live = io::stdout().is_terminal() && io::stderr().is_terminal() && !is_dumb;
        Self { is_live, has_keys: is_live && io::stdin().is_terminal() }
    }

    /// How calls that need approval are handled. Without a keyboard, they are denied by default; with `--approvals
    /// ask`, somebody else can answer at the server.
    pub(super) fn approvals(self, args: &args::Chat) -> Result<ApprovalMode> {
        match args.approvals {
            Some(args::Approvals::Ask) if !self.has_keys && args.server.is_none() => bail!(
                "nobody could answer: without --server, approvals are asked for in a terminal only; name a server, or leave \
                 out --approvals ask"
            ),
            Some(args::Approvals::Ask) => Ok(ApprovalMode::Ask),
            None if self.has_keys => Ok(ApprovalMode::Ask),
            Some(args::Approvals::Deny) | None => Ok(ApprovalMode::Deny),
        }
    }

    /// Adds how approvals can be answered elsewhere, if not here.
    pub(super) fn permissions(
        self,
        mode: ApprovalMode,
        args: &args::Chat,
        id: &ConversationId,
    ) -> Permissions {
        let elsewhere = args.server.as_ref().filter(|_| !self.has_keys);
        let elsewhere = elsewhere.map(|server| {
            format!(
                "It waits for an answer: on the page of {server}, or with POST /conversations/{id}/approvals."
            )
        });
        let denies = mode == ApprovalMode::Deny && args.server.is_none();
        Permissions { mode, denies, elsewhere }
    }

    pub(super) fn view(self, args: &args::Chat) -> Box<dyn View> {
        if args.json {
            return Box::new(Json::new(io::stdout(), io::stderr()));
        }
        match self.is_live {
            true => {
                let live = Live::new(io::stdout(), printer::columns, self.has_keys, args.show_reasoning);
                Box::new(if args.raw { live.raw() } else { live })
            }
            false => {
                let is_terminal = io::stdout().is_terminal();
                Box::new(Plain::new(io::stdout(), io::stderr(), is_terminal, args.show_reasoning))
            }
        }
    }
}
