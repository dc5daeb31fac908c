//! Why a call waits.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Why a call waits. `Display` says it in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Because {
    /// The provider said when to ask again.
    Hint,
    /// The limit on requests that the provider reported is used up.
    Requests,
    /// The limit on tokens that the provider reported has no room for the call.
    Tokens,
    /// As many calls were accepted lately as the provider is known to accept.
    Rate,
    /// As many calls are running as the provider is known to accept.
    Concurrency,
    /// Another turn was refused, and the provider did not say for how long.
    Refused,
    /// Another call is finding out whether the provider answers again.
    Probe,
    /// Calls are made one after another, because it is not known how many are accepted.
    Ramp,
    /// Others came first.
    Line,
    /// The turn's caller used up a limit that this server sets it.
    CallerLimit,
    /// There is no network, or the provider is not there.
    Offline,
    /// A value from a newer version. The original is not kept; it serializes as `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hint => "the provider said when to ask again",
            Self::Requests => "the provider's limit on requests is used up",
            Self::Tokens => "the provider's limit on tokens has no room for this call",
            Self::Rate => "the provider was refusing calls at this rate",
            Self::Concurrency => "the provider was refusing this many calls at once",
            Self::Refused => "the provider refused another call",
            Self::Probe => "another call is finding out whether the provider answers again",
            Self::Ramp => "calls are started gradually, as it is not known how many are accepted",
            Self::Line => "other calls came first",
            Self::CallerLimit => "a limit that this server sets its caller is used up",
            Self::Offline => "the provider cannot be reached from here",
            Self::Unknown => "a newer version knows why",
        })
    }
}
