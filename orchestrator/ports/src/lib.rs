//! What the orchestrator asks of storage and of other processes: the journal, documents, and the ports of a cluster.
//!
//! Stores implement these traits and depend on nothing else of the orchestrator. This crate does *not* run turns, and has no I/O:
//! its in-memory implementations are for tests and for conversations that need not be kept.

mod cluster;
mod cursor;
mod journal;
pub mod json;
mod state;
pub mod weight;

pub use cluster::{
    Appended, Cluster, CommandBus, Incoming, ListBus, ListEvent, Listed, LiveBus, LiveEvent, Member,
    Membership, SendError, Streamed,
};
pub use cursor::{Cursor, InvalidCursor};
pub use journal::{
    Commit, Configured, Definition, Head, Journal, JournalError, ListCursor, MemoryJournal, NodeId, Page,
    RequestScope, Retention, Room, Stored, StoredEvent, Take, TurnRecord, Unsealed, Version, Window,
};
pub use state::{MemoryState, StateStore};

pub use everturn_kernel as kernel;
pub use everturn_kernel::{Moment, Wait};
