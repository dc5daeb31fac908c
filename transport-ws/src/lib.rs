//! The WebSocket transport: commands in, events out, verbatim.
//!
//! [`router`] serves `GET /ws`; [`Sockets`] is for servers that take upgrades elsewhere too, or speak another [`Protocol`]
//! over them. Each socket is one task: it reads a command when its last answer is on the way, and takes an event when the
//! peer can take more. Each command that has to wait is a task of its own, which goes on however slow the peer is. So a slow
//! peer slows nobody but itself and holds a bounded amount of memory. Commands of different conversations do not wait for
//! each other, and a stop waits for none.
//!
//! This crate does *not* decide anything about a turn, check who may connect (the HTTP transport's guard does) or speak
//! plain HTTP beyond the upgrade.

mod command;
mod feeds;
mod limits;
mod message;
mod native;
mod outbox;
mod protocol;
mod socket;
mod sockets;
mod status;
mod task;
mod under_way;
mod watch;

pub use limits::SocketLimits;
pub use protocol::{Asked, News, Protocol, Read, Urgency};
pub use sockets::{SUBPROTOCOL, Sockets, router};
