//! Names of body fields that specify a wait.

/// The meaning of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// Milliseconds to wait.
    Millis,
    /// Seconds to wait, or a duration with units.
    Span,
    /// When the wait ends: a date, an epoch time, or seconds if the number is small.
    Moment,
}

/// Names without case or punctuation.
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
    /// Returns the kind of the field with this name, if it is a hint.
    pub(crate) fn named(key: &str) -> Option<Self> {
        let letters = || key.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase());
        let is = |name: &str| letters().eq(name.bytes());
        NAMES.iter().find(|(_, names)| names.iter().any(|name| is(name))).map(|(field, _)| *field)
    }
}
