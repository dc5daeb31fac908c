//! A value that is used but never shown.

use std::fmt;

/// A credential. Neither `Debug` nor any message of this crate shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The shortest value that is looked for in texts, in bytes: a shorter one would blank out plain words.
    const SHORTEST: usize = 8;

    /// Takes a credential in. White space around it is dropped: keys are pasted.
    pub fn new(value: impl AsRef<str>) -> Self {
        Self(value.as_ref().trim().to_owned())
    }

    /// The credential, for the request that needs it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// `text` without this credential.
    pub(crate) fn hide_in(&self, text: &mut String) {
        if self.0.len() >= Self::SHORTEST && text.contains(&self.0) {
            *text = text.replace(&self.0, "[redacted]");
        }
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
        let mut text = "Incorrect key sk-1234567 (sk-1234567)".to_owned();
        secret.hide_in(&mut text);
        assert_eq!(text, "Incorrect key [redacted] ([redacted])");
    }

    #[test]
    fn a_short_value_does_not_blank_out_words() {
        let mut text = "true is true".to_owned();
        Secret::from("true").hide_in(&mut text);
        Secret::from("").hide_in(&mut text);
        assert_eq!(text, "true is true");
    }
}
