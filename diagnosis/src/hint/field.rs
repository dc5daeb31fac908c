//! Hints in fields of a body.

use super::{Hint, number, value, wait};
use crate::because::Because;
use crate::shape::Named;

/// What a field's value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// Milliseconds to wait.
    Millis,
    /// Seconds to wait, or a duration with units.
    Span,
    /// When the wait ends: a date, an epoch, or seconds where the number is small.
    Moment,
}

/// Names without case and punctuation.
#[rustfmt::skip]
const NAMES: &[(Field, &[&str])] = &[
    (Field::Millis, &[
        "retryafterms", "retryaftermillis", "retryinms", "retrydelayms", "resetinms", "resetsinms", "waitms",
    ]),
    (Field::Span, &[
        "retryafter", "retryafterseconds", "retryaftersec", "retryaftersecs", "retryin", "retryinseconds", "retrydelay",
        "retrydelayseconds", "waitseconds", "waittime", "resetsin", "resetin", "resetsinseconds", "resetinseconds",
        "resetafter", "resetafterseconds", "secondsuntilreset", "timeuntilreset", "quotaresetdelay", "estimatedtime",
        "cooldownseconds", "cooldowntime",
    ]),
    (Field::Moment, &[
        "resetsat", "resetat", "resettime", "resettimestamp", "quotaresettimestamp", "quotaresettime", "ratelimitreset",
        "retryat", "nextretryat", "availableat", "resetdate", "reset",
    ]),
];

impl Field {
    /// The field of this name, where it is a hint.
    pub(crate) fn named(key: &str) -> Option<Self> {
        let letters = || key.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase());
        let is = |name: &str| letters().eq(name.bytes());
        NAMES.iter().find(|(_, names)| names.iter().any(|name| is(name))).map(|(field, _)| *field)
    }

    fn read(self, text: &str, now: u64) -> Option<u64> {
        match self {
            Self::Millis => wait(number(text)?),
            Self::Span | Self::Moment => value(text, now),
        }
    }
}

/// The longest wait; one that needs no clock before one that does.
pub(super) fn longest(waits: &[(Field, Named)], now: u64) -> Option<Hint<'_>> {
    let longest = |moments: bool| {
        let ours = waits.iter().filter(|(field, _)| (*field == Field::Moment) == moments);
        let read =
            ours.filter_map(|(field, named)| Some((field.read(&named.name, now)?, Because::Wait(named))));
        read.max_by_key(|(wait, _)| *wait)
    };
    longest(false).or_else(|| longest(true))
}
