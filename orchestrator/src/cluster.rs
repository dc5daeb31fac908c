//! What nodes that share a journal do about each other.

mod peers;
mod proof;
mod remote;
mod rules;

pub use everturn_ports::{
    Appended, Cluster, CommandBus, Incoming, ListBus, ListEvent, Listed, LiveBus, LiveEvent, Member,
    Membership, SendError, Streamed,
};
pub(crate) use peers::{Peers, Relayed};
pub(crate) use proof::{Proof, Undecided, may_be_starting};
pub(crate) use remote::{Command, Reply, Request};
pub(crate) use rules::{Addressed, Heard, addressed, heard};
