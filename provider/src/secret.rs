//! Secrets, which are never displayed.

mod mask;
mod veil;

use std::fmt;

pub(crate) use mask::Mask;
pub(crate) use veil::Veil;

/// A credential. Neither `Debug` nor any message of this crate shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a credential. Trims white space, which is often pasted with keys.
    pub fn new(value: impl AsRef<str>) -> Self {
        Self(value.as_ref().trim().to_owned())
    }

    /// Returns the credential, for the request that needs it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl<T: AsRef<str>> From<T> for Secret {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_not_shown() {
        let secret = Secret::from(" sk-1234567\n");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "Secret Some(Secret)");
    }
}
