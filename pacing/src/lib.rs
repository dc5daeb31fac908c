//! When may a model be called, and when again: two pure machines.
//!
//! **When again.** A [`RetryPolicy`] decides about the failure of one turn. The first line that applies:
//!
//! | situation | answer |
//! |---|---|
//! | the failure was caused by the request, or does not pass and no other target is left | give up |
//! | an exhausted account, or a hint beyond the budget: [`LongLimits::SitOut`] | wait for its end, up to 7 days in all |
//! | an exhausted account, or a hint of 10 min: [`LongLimits::GiveUp`] | give up |
//! | [`Cycling`] | the next target, after the limits of a whole cycle |
//! | [`Exponential`] that moves (`interactive`), another target is free | ask that one at once |
//! | several targets ([`RetryPolicy::on_route`]), this one failed for good or needs more than 10 s, another is free | ask that one at once |
//! | none is free | the one that is free first, not before the schedule's wait |
//! | one target | the schedule's wait, or the provider's hint if that is longer |
//! | the schedule has no wait left, or the wait exceeds `max_delay` of `interactive` | give up |
//!
//! The kernel then checks the answer against the budget. Settings of a message, conversation, route and server are combined by
//! [`effective`]; [`RetryPolicy::changed`] makes a policy of them.
//!
//! **When now.** A [`Pacer`] decides about the calls of all turns together. It knows, per target, the limits that the provider reported ([`Limits`]), those that it learnt from refusals,
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
//! | refused again, or nothing is running | wait until enough of the accepted calls are older than the period | [`Because::Rate`] |
//! | refused with a hint | all wait until the hint ends; a lone turn then asks, even if a longer reset was reported | [`Because::Hint`] |
//! | refused without a hint | others wait, at most 30 s between probes; the refused turn follows its schedule | [`Because::Refused`] |
//! | a call is finding out whether the target answers again | wait for its outcome | [`Because::Probe`] |
//! | a call reached nobody, as the network is gone | all wait, and one looks after 5, 10, 20, 30, 30 ... s | [`Because::Offline`] |
//! | its caller's limit is full ([`Terms`]) | wait for the next minute or day, or until one of its calls ends | [`Because::CallerLimit`] |
//! | others came first | wait for them: interactive calls first, then callers take turns, each by age | [`Because::Line`] |
//!
//! Neither has a clock or does I/O.
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
mod retry;
mod saved;
mod search;
mod target;
mod window;

pub use everturn_kernel::{Limits, Told, What};
pub use everturn_wire::{Because, Priority};

pub use call::{Admission, Call, Size, Ticket, Wait};
pub use caller::{Counts, Held, Kind, Terms, Use};
pub use learnt::{Lately, Rate};
pub use pacer::Pacer;
pub use retry::{
    Cycling, Exponential, Layers, LongLimits, Patient, RetryPolicy, SavedPolicy, Switching, Waits, check,
    effective,
};
pub use saved::Known;
