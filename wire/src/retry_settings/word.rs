//! Enums for settings.

use serde::Serialize;

/// Defines an enum whose variants are strings on the wire.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$of])* #[serde(rename = $word)] $variant,)*
            /// A value from a newer version. The original is not kept; it serializes as `unknown`. It cannot be set.
            #[serde(rename = "unknown")]
            #[cfg_attr(feature = "schema", schemars(skip))]
            Unknown,
        }

        impl $name {
            /// All values that can be set.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The expected values, for error messages.
            pub(super) const EXPECTED: &str = concat!("one of the words:" $(, " ", $word)*);

            /// Returns the value on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Unknown => "unknown",
                }
            }

            /// Returns the value with this name, if it can be set.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }
    };
}

words! {
    /// A schedule, by name.
    RetryPreset {
        /// 5 s, 10 s, 30 s and so on up to 30 min, for 8 h in total.
        Patient = "patient",
        /// Doubling waits.
        Exponential = "exponential",
        /// Few, short retries, and another target before any wait.
        Interactive = "interactive",
        /// The targets of a route in turn.
        Cycling = "cycling",
    }
}

words! {
    /// When a turn goes back to the first target of its route.
    RouteRevert {
        /// As soon as that target is available again.
        CooldownExpiry = "cooldown-expiry",
        /// Only when the target it moved to fails.
        Never = "never",
    }
}

words! {
    /// What to do about a failure after part of an answer was shown.
    AfterContent {
        /// End the turn, and keep what was shown.
        Keep = "keep",
        /// Withdraw what was shown, and ask again.
        Rewind = "rewind",
    }
}

words! {
    /// What to do at a usage limit that ends after the longest wait.
    OnQuota {
        /// End the turn.
        Fail = "fail",
        /// Wait until the limit ends.
        Park = "park",
    }
}
