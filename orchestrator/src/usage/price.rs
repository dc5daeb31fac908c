//! What tokens cost.

use std::{fmt, str::FromStr};

use super::figures::Figures;
use crate::permission::matches;

/// Millionths in one.
const MILLION: u64 = 1_000_000;

/// Tokens that prices are for.
pub(super) const PER: f64 = 1_000_000.0;

/// What the tokens of a model cost: for a million, in whatever currency.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Tokens of requests.
    pub input: f64,
    /// Tokens of answers, including reasoning.
    pub output: f64,
    /// Tokens of requests that were read from a cache; `None` = as other ones.
    pub cached: Option<f64>,
    /// Tokens of requests that were written to a cache; `None` = as other ones.
    pub cache_write: Option<f64>,
}

/// An amount of money, in millionths of the currency that prices are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Money(pub u64);

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / MILLION, self.0 % MILLION);
        let part = format!("{part:06}");
        match part.trim_end_matches('0') {
            "" => write!(f, "{whole}"),
            part => write!(f, "{whole}.{part}"),
        }
    }
}

impl FromStr for Money {
    type Err = ();

    /// Reads a decimal number with at most six digits after the point.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(part) || part.len() > 6 {
            return Err(());
        }
        let part: u64 = format!("{part:0<6}").parse().map_err(drop)?;
        let whole = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(MILLION));
        whole.and_then(|whole| whole.checked_add(part)).map(Self).ok_or(())
    }
}

impl Price {
    /// Returns what these tokens cost, rounded up, in millionths.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it saturates, and no price is below 0"
    )]
    pub(crate) fn money(&self, tokens: &Figures) -> u64 {
        (self.of(tokens) * PER).ceil() as u64
    }

    /// Returns what these tokens cost.
    #[allow(clippy::cast_precision_loss, reason = "no one counts so many tokens")]
    pub(super) fn of(&self, tokens: &Figures) -> f64 {
        let Figures { input, output, cache_read, cache_write, .. } = *tokens;
        let plain = input.saturating_sub(cache_read).saturating_sub(cache_write);
        [
            (plain, self.input),
            (output, self.output),
            (cache_read, self.cached.unwrap_or(self.input)),
            (cache_write, self.cache_write.unwrap_or(self.input)),
        ]
        .into_iter()
        .map(|(tokens, price)| tokens as f64 / PER * price)
        .sum()
    }
}

/// The prices of models, by pattern.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prices(Vec<(String, Price)>);

impl Prices {
    pub(crate) fn add(&mut self, pattern: String, price: Price) {
        self.0.retain(|(known, _)| *known != pattern);
        self.0.push((pattern, price));
    }

    /// Returns the price of a model: of the patterns that match its id, or that of its target, the one with the most characters
    /// other than `*`.
    pub(crate) fn find(&self, model: &str, target: &str) -> Option<&Price> {
        let fitting =
            self.0.iter().filter(|(pattern, _)| matches(pattern, target) || matches(pattern, model));
        let rank = |pattern: &str| (!pattern.contains('*'), pattern.chars().filter(|c| *c != '*').count());
        fitting.max_by_key(|(pattern, _)| rank(pattern)).map(|(_, price)| price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_have_their_own_price() {
        let tokens = Figures {
            input: 1_000_000,
            output: 500_000,
            cache_read: 600_000,
            cache_write: 100_000,
            ..Figures::default()
        };
        let cost = |price: Price| (price.of(&tokens) * 1_000.0).round() / 1_000.0;
        let plain = Price { input: 2.0, output: 10.0, ..Price::default() };
        assert!((cost(plain) - 7.0).abs() < 1e-9);
        let cached = Price { cached: Some(0.2), cache_write: Some(2.5), ..plain };
        assert!((cost(cached) - (0.6 + 5.0 + 0.12 + 0.25)).abs() < 1e-9, "{}", cost(cached));
    }

    #[test]
    fn money_is_written_as_it_is_read() {
        for (text, millionths) in
            [("0", 0), ("2.5", 2_500_000), ("0.000001", 1), ("18446744073709.551615", u64::MAX)]
        {
            assert_eq!(text.parse(), Ok(Money(millionths)));
            assert_eq!(Money(millionths).to_string(), text);
        }
        assert_eq!("3.50".parse(), Ok(Money(3_500_000)));
        for odd in ["", "-1", "1e3", ".5", "5.", "0.0000001", "18446744073709.551616", "NaN", "inf", "1,5"] {
            assert_eq!(odd.parse::<Money>(), Err(()), "{odd}");
        }
        let dear = Price { input: f64::MAX, ..Price::default() };
        assert_eq!(dear.money(&Figures { input: u64::MAX, ..Figures::default() }), u64::MAX);
    }

    #[test]
    fn the_most_specific_pattern_counts() {
        let mut prices = Prices::default();
        for (pattern, input) in [("*", 1.0), ("openai/gpt-*", 2.0), ("openai/gpt-5", 3.0), ("work/*", 4.0)] {
            prices.add(pattern.to_owned(), Price { input, ..Price::default() });
        }
        let of = |model: &str, target: &str| prices.find(model, target).map(|price| price.input);
        assert_eq!(of("openai/gpt-5", "openai/gpt-5"), Some(3.0));
        assert_eq!(of("openai/gpt-4", "openai/gpt-4"), Some(2.0));
        assert_eq!(of("x/y", "work/y"), Some(4.0));
        assert_eq!(of("x/y", "x/y"), Some(1.0));
        assert_eq!(Prices::default().find("x/y", "x/y"), None);
    }
}
