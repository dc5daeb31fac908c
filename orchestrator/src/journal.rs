//! The journal as the orchestrator uses it.

mod guard;
mod inherited;

pub use everturn_ports::{
    Commit, Configured, Definition, Head, Journal, JournalError, ListCursor, MemoryJournal, NodeId, Page,
    RequestScope, Retention, Room, Stored, StoredEvent, Take, TurnRecord, Unsealed, Version, Window,
};
pub(crate) use guard::{Guarded, guard};
pub(crate) use inherited::Inherited;
