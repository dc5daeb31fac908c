//! The WebSocket transport: commands in, events out, verbatim.
//!
//! [`router`] serves `GET /ws`; [`Sockets`] is for servers that accept upgrades elsewhere, too, or speak another
//! [`Protocol`] over them. Each socket is one task: it reads a command once its last answer is being sent, and takes an
//! event when the peer can accept more. Each command that has to wait runs in its own task, however slow the peer is. So
//! a slow peer slows down only itself and uses bounded memory. Commands of different conversations do not wait for each
//! other, and a stop waits for none.
//!
//! This crate does *not* make decisions about turns, check who may connect (the HTTP transport's guard does), or
//! implement HTTP beyond the upgrade.

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
