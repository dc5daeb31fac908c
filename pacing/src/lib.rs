//! When may a model be called, and when again: a pure machine.
//!
//! A [`Pacer`] knows, per target, the limits that the provider reported ([`Limits`]), those that it learnt from refusals,
//! which calls are running, and who waits. [`Pacer::admit`] answers whether a call may be made now. The owner reports what
//! became of each call: [`Pacer::heard`], [`Pacer::refused`], [`Pacer::ended`]. After each report, and at
//! [`Pacer::next_at`], [`Pacer::let_go`] names the turns whose wait is over, in order.
//!
//! | situation | answer | because |
//! |---|---|---|
//! | nothing is known, one call at a time | go | |
//! | nothing is known, many calls at once | go, 8 at first, twice as many each second, and one more for each accepted | [`Because::Ramp`] |
//! | the provider reported what is left | go while it fits, else wait until it does | [`Because::Requests`], [`Because::Tokens`] |
//! | refused, and calls are running | wait until one of them ends | [`Because::Concurrency`] |
//! | refused again, or nothing is running | wait until as many calls as were accepted are old enough | [`Because::Rate`] |
//! | refused with a hint | all wait until the hint ends; a lone turn then asks, even if a longer reset was reported | [`Because::Hint`] |
//! | refused without a hint | others wait, at most 30 s between probes; the refused turn follows its schedule | [`Because::Refused`] |
//! | a call is finding out whether the target answers again | wait for its outcome | [`Because::Probe`] |
//! | a call reached nobody, as the network is gone | all wait, and one looks after 5, 10, 20, 30, 30 ... s | [`Because::Offline`] |
//! | its caller used what it may ([`Terms`]) | wait for the next minute or day, or until one of its calls ends | [`Because::CallerLimit`] |
//! | others came first | wait for them: interactive calls first, then callers take turns, each by age | [`Because::Line`] |
//!
//! This crate does *not* decide how long a refused turn waits before it asks again: that is its schedule's.
#![no_std]

extern crate alloc;

mod call;
mod caller;
mod ceiling;
mod closed;
mod learnt;
mod log;
mod noise;
mod pacer;
mod queue;
mod ramp;
mod reserve;
mod saved;
mod search;
mod target;
mod window;

pub use everturn_kernel::{Limits, Told, What};
pub use everturn_wire::{Because, Priority};

pub use call::{Admission, Call, Size, Ticket, Wait};
pub use caller::{Counts, Held, Kind, Terms, Use};
pub use pacer::Pacer;
pub use saved::Known;
