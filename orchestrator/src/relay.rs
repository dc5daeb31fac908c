//! Calls passed through: a turn of one step whose content is opaque.
//!
//! The kernel decides about such a call as about any other. A call's answer is a tape ([`tape`]): its task writes it, and
//! any number of listeners read it from the start. Nothing here reads a request or an answer, except to tell requests apart ([`key`]).

mod body;
mod call;
mod calls;
mod choice;
mod dialect;
mod host;
mod kept;
mod key;
mod rename;
mod run;
mod tape;
mod tee;
mod within;

use std::{ops::Range, time::Duration};

use everturn_wire::{CallerName, Failure, OnQuota, Priority};

use crate::upstream::{Dialect, Outgoing};
pub(crate) use calls::Calls;
pub use dialect::OfferedModel;
pub(crate) use dialect::{models_of, speaks};
pub use tape::{Listener, Said};

/// A call to pass through.
#[derive(Clone)]
pub struct RelayCall {
    /// Whose call it is; `None` = the administrator's.
    pub caller: Option<CallerName>,
    /// What a provider must speak to be asked, in order of preference. Empty = anything.
    pub dialects: Vec<Dialect>,
    /// The provider, if the caller names one.
    pub provider: Option<String>,
    /// The model, if the request names one.
    pub model: Option<AskedModel>,
    /// Identifies a repeated request, together with its credential, path and body; `None` = the request never joins one
    /// that somebody else still listens to.
    pub session: Option<String>,
    /// The caller's program, for people.
    pub program: Option<String>,
    /// The request itself.
    pub request: Outgoing,
    /// Maximum tokens of its answer, if the request sets one. Until the real number is known, limits count no more than this.
    pub max_output: Option<u64>,
    /// How long it may take until its content begins; at most the configured time.
    pub budget: Option<Duration>,
    /// What happens at a limit that lasts for hours or days: `Fail` ends the call at once, `Park` waits however long the
    /// limit lasts; `None` = as configured.
    pub quota: Option<OnQuota>,
    /// Whether it gives way to others when calls have to wait.
    pub priority: Priority,
}

/// The model that a request names, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedModel {
    /// Its name.
    pub name: String,
    /// Where the request has it, to be replaced in place.
    pub place: ModelPlace,
    /// Whether a provider might read another name: from a second field, one in other letters, `models`, or the path.
    pub is_ambiguous: bool,
}

/// Where a request names its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelPlace {
    /// In the body: the ranges of its JSON strings, quotes included, in order.
    Body(Vec<Range<usize>>),
    /// In the path.
    Path(Range<usize>),
}

/// Why a call is not passed through.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// Nobody can be asked.
    #[error("{0}")]
    NoTarget(String),
    /// Too much is waiting already.
    #[error("{0}")]
    NoRoom(String),
    /// The process is shutting down.
    #[error("the server is restarting: repeat the request")]
    ShuttingDown,
}

/// Why a listener receives no answer by a provider.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NoAnswer {
    /// The call failed without one.
    Failed(Failure),
    /// The process is shutting down, or nobody listened for too long; the wait is kept for a repeated request.
    Left,
    /// The caller's token is no longer valid.
    TokenEnded,
}
