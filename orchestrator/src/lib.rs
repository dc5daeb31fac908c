//! The embeddable shell around the kernel: it runs conversations.
//!
//! [`Orchestrator::builder`] takes models, tools, a schedule, a journal and a clock. The [`Orchestrator`] starts turns,
//! accepts commands for them and returns [`Subscription`]s. A conversation has one writer, one turn at a time, and any
//! number of subscribers. Except for streamed text, events are journaled before subscribers receive them.
//!
//! This crate does *not* decide what a turn does next (the kernel does), does not speak HTTP or WebSocket (transports
//! do) and knows no model API (providers do).

mod attempt;
mod builder;
mod caller;
mod catalog;
mod clock;
mod cluster;
mod compaction;
mod conversation;
mod cursor;
mod error;
mod frame;
mod health;
mod journal;
mod log;
mod memory;
mod model;
mod model_settings;
mod names;
mod new_id;
mod notice;
mod observer;
mod orchestrator;
mod pacing;
mod panic;
mod permission;
mod question;
mod registry;
mod relay;
mod report;
mod request_history;
mod retry_scope;
mod retry_settings;
mod reviewer;
mod route;
mod runs;
mod schedule;
mod session;
mod shutdown;
mod state;
mod status;
mod subscription;
mod sync;
mod telemetry;
mod timed_retry;
mod timer;
mod tool;
mod toolbox;
mod turn_log;
mod upstream;
mod usage;
mod view;

pub use builder::Builder;
pub use caller::{Caller, Scope, Witness};
pub use catalog::Catalog;
pub use clock::{Clock, SystemClock};
pub use cluster::{
    Appended, Cluster, CommandBus, Incoming, ListBus, ListEvent, Listed, LiveBus, LiveEvent, Member,
    Membership, SendError, Streamed,
};
pub use compaction::{CompactionRequest, Compactor};
pub use cursor::{Cursor, InvalidCursor, SubscribeFrom};
pub use error::{Error, Fault};
pub use frame::Frame;
pub use journal::{
    Commit, Configured, Definition, Head, Journal, JournalError, ListCursor, MemoryJournal, NodeId, Page,
    RequestScope, Retention, Room, Stored, StoredEvent, Take, TurnRecord, Unsealed, Version, Window,
};
pub use memory::MemoryLimits;
pub use observer::{CallEnd, Observer, ProviderCall, TurnEnd};
pub use orchestrator::{Export, MAX_MESSAGE, Orchestrator, RetryTurn, SearchCursor, StartTurn, Started};
pub use relay::{AskedModel, Listener, ModelPlace, NoAnswer, OfferedModel, RelayCall, RelayError, Said};
pub use report::check as check_report;
pub use reviewer::{ReviewRequest, Reviewer, Switches};
pub use state::{MemoryState, StateStore, delete_documents};
pub use status::StatusChange;
pub use subscription::Subscription;
pub use tool::{Ask, Invocation, Output, People, Policy, Reply, SourceState, Tool, ToolSource};
pub use upstream::{Dialect, Outgoing, Passed, RelayProvider, Upstream};
pub use usage::{Day, InvalidDay, Money, Price, UsageQuery};
pub use view::View;

use everturn_ports::json;

pub use everturn_kernel as kernel;
pub use everturn_kernel::{Moment, Wait};
pub use everturn_pacing::Terms;
pub use everturn_pacing::{Cycling, Exponential, LongLimits, Patient, RetryPolicy, Switching, Waits};

/// The README's example runs.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
