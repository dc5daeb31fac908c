//! Range checks of settings.

use alloc::{format, string::String};

use super::{AfterContent, OnQuota, RetryPreset, RetrySettings, RouteRevert};

/// A day and 30 days, in milliseconds.
const MAX_BASE_MS: u64 = 24 * 60 * 60 * 1000;
const MAX_DELAY_MS: u64 = 30 * MAX_BASE_MS;
const MAX_RETRIES: u32 = 1000;

/// Settings that cannot be used. The text says what is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("retry settings: {0}")]
pub struct InvalidRetrySettings(pub String);

impl RetrySettings {
    /// Checks each setting against its range.
    ///
    /// # Errors
    /// Returns an error if a setting is out of range.
    pub fn check(&self) -> Result<(), InvalidRetrySettings> {
        let wrong = |why: String| Err(InvalidRetrySettings(why));
        let words = [
            ("preset", self.preset == Some(RetryPreset::Unknown), RetryPreset::EXPECTED),
            ("revert", self.revert == Some(RouteRevert::Unknown), RouteRevert::EXPECTED),
            ("afterContent", self.after_content == Some(AfterContent::Unknown), AfterContent::EXPECTED),
            ("quota", self.quota == Some(OnQuota::Unknown), OnQuota::EXPECTED),
        ];
        if let Some((field, _, expected)) = words.into_iter().find(|(_, is_unknown, _)| *is_unknown) {
            return wrong(format!("{field} must be {expected}"));
        }
        if let Some(retries) = self.max_retries.filter(|retries| *retries > MAX_RETRIES) {
            return wrong(format!("maxRetries is {retries}: write a number from 0 to {MAX_RETRIES}"));
        }
        if let Some(base) = self.base_delay_ms.filter(|base| !(1..=MAX_BASE_MS).contains(base)) {
            return wrong(format!(
                "baseDelayMs is {base}: write the first wait in milliseconds, 1 to {MAX_BASE_MS} (a day)"
            ));
        }
        if let Some(most) = self.max_delay_ms.filter(|most| *most > MAX_DELAY_MS) {
            return wrong(format!(
                "maxDelayMs is {most}: write the longest wait in milliseconds, up to {MAX_DELAY_MS} (30 days), or 0 for no limit"
            ));
        }
        if let Some(jitter) = self.jitter.filter(|jitter| !(0.0..=1.0).contains(jitter)) {
            return wrong(format!("jitter is {jitter}: write a fraction of the wait, from 0 to 1"));
        }
        for (of, names) in self.fallback_chains.iter().flat_map(|chains| &chains.0) {
            let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
            if let Some((_, name)) = twice {
                return wrong(format!(
                    "the fallback chain of {of} names {name} twice: name each once, in order"
                ));
            }
            if names.contains(of) {
                return wrong(format!(
                    "the fallback chain of {of} leads back to it: name other models or routes"
                ));
            }
            if names.is_empty() {
                return wrong(format!(
                    "the fallback chain of {of} is empty: name a model or route, or leave it out"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_rejected() {
        let check = |json: &str| serde_json::from_str::<RetrySettings>(json).unwrap().check();
        for good in [
            "{}",
            r#"{"maxRetries":0,"baseDelayMs":1,"maxDelayMs":0,"jitter":0}"#,
            r#"{"fallbackChains":{"a/m":["b/m","route/r"],"route/r":["b/m"]}}"#,
            r#"{"maxRetries":1000,"baseDelayMs":86400000,"maxDelayMs":2592000000,"jitter":1}"#,
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, field) in [
            (
                r#"{"preset":"lunar"}"#,
                "preset must be one of the words: patient exponential interactive cycling",
            ),
            (r#"{"revert":"later"}"#, "revert must be one of the words: cooldown-expiry never"),
            (r#"{"afterContent":""}"#, "afterContent must be"),
            (r#"{"quota":"?"}"#, "quota must be"),
            (r#"{"maxRetries":1001}"#, "maxRetries is 1001"),
            (r#"{"baseDelayMs":0}"#, "baseDelayMs is 0"),
            (r#"{"baseDelayMs":-5}"#, "baseDelayMs is 0"),
            (r#"{"baseDelayMs":86400001}"#, "baseDelayMs is 86400001"),
            (r#"{"maxDelayMs":2592000001}"#, "maxDelayMs is 2592000001"),
            (r#"{"jitter":1.01}"#, "jitter is 1.01"),
            (r#"{"jitter":-0.1}"#, "jitter is -0.1"),
            (r#"{"fallbackChains":{"a/m":["b/m","b/m"]}}"#, "the fallback chain of a/m names b/m twice"),
            (r#"{"fallbackChains":{"a/m":["b/m","a/m"]}}"#, "the fallback chain of a/m leads back to it"),
            (r#"{"fallbackChains":{"a/m":[]}}"#, "the fallback chain of a/m is empty"),
        ] {
            let InvalidRetrySettings(why) = check(bad).unwrap_err();
            assert!(why.starts_with(field), "{bad}: {why}");
        }
        let nan = RetrySettings { jitter: Some(f64::NAN), ..RetrySettings::default() };
        assert!(nan.check().is_err());
    }
}
