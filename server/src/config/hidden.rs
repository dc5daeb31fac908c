//! A configured value that is used but never shown.

use std::fmt;

use everturn_provider::Secret;
use serde::Deserialize;

/// A key or token as it was configured. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Hidden(String);

impl Hidden {
    /// Takes a value in, without the white space around it; none when nothing is left of it.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The value, for whoever checks or sends it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// The value as a provider takes it.
    pub(crate) fn secret(&self) -> Secret {
        Secret::new(&self.0)
    }
}

impl From<String> for Hidden {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden")
    }
}
