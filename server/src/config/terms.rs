//! What a caller may use, as files and flags have it.

use std::str::FromStr;

use anyhow::{Result, bail};
use everturn_orchestrator::{Money, Terms};
use everturn_transport_http::KnownCaller;
use everturn_wire::Priority;
use serde::{Deserialize, Serialize};

/// What a caller may use. `None` = no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TermsTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requests_per_minute: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens_per_minute: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens_per_day: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parallel: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) money_per_day: Option<Amount>,
    /// Patterns of ids; empty = all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) models: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) priority: Option<Priority>,
}

impl TermsTable {
    /// Returns the terms of a caller with this name.
    ///
    /// # Errors
    /// When a limit allows nothing.
    pub(crate) fn terms(&self, name: &str) -> Result<Terms> {
        let Self {
            requests_per_minute,
            tokens_per_minute,
            tokens_per_day,
            parallel,
            money_per_day,
            priority,
            ..
        } = *self;
        let money_per_day = money_per_day.map(|Amount(Money(millionths))| millionths);
        for (key, limit) in [
            ("requests_per_minute", requests_per_minute),
            ("tokens_per_minute", tokens_per_minute),
            ("tokens_per_day", tokens_per_day),
            ("parallel", parallel),
            ("money_per_day", money_per_day),
        ] {
            if limit == Some(0) {
                bail!("{key} of {name} must be more than 0: revoke its token to refuse everything");
            }
        }
        let priority = priority.unwrap_or_default();
        Ok(Terms {
            priority,
            requests_per_minute,
            tokens_per_minute,
            tokens_per_day,
            parallel,
            money_per_day,
        })
    }

    /// Returns it in words, for people; empty without any.
    pub(crate) fn words(&self) -> String {
        let limits = [
            (self.requests_per_minute, "requests/min"),
            (self.tokens_per_minute, "tokens/min"),
            (self.tokens_per_day, "tokens/day"),
            (self.parallel, "at once"),
        ];
        let limits = limits.into_iter().filter_map(|(limit, of)| Some(format!("{} {of}", limit?)));
        let limits = limits.chain(self.money_per_day.map(|Amount(money)| format!("costs of {money}/day")));
        let priority = self.priority.filter(|priority| *priority == Priority::Background);
        let models = (!self.models.is_empty()).then(|| format!("only {}", self.models.join(" ")));
        limits.chain(priority.map(|_| "background".to_owned())).chain(models).collect::<Vec<_>>().join(", ")
    }
}

impl From<&KnownCaller> for TermsTable {
    fn from(caller: &KnownCaller) -> Self {
        let Terms {
            requests_per_minute,
            tokens_per_minute,
            tokens_per_day,
            parallel,
            money_per_day,
            priority,
        } = caller.terms;
        let money_per_day = money_per_day.map(|millionths| Amount(Money(millionths)));
        let priority = Some(priority).filter(|priority| *priority == Priority::Background);
        let models = caller.models.clone();
        Self {
            requests_per_minute,
            tokens_per_minute,
            tokens_per_day,
            parallel,
            money_per_day,
            models,
            priority,
        }
    }
}

/// An amount of money: a number with at most six digits after the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub(crate) struct Amount(Money);

impl TryFrom<f64> for Amount {
    type Error = String;

    fn try_from(amount: f64) -> Result<Self, String> {
        amount.to_string().parse()
    }
}

impl From<Amount> for f64 {
    fn from(Amount(money): Amount) -> Self {
        money.to_string().parse().unwrap_or_default()
    }
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let why = "an amount of money is a number with at most six digits after the point, such as 2.50";
        text.parse().map(Self).map_err(|()| why.to_owned())
    }
}

/// A limit as a flag has it: a number, or `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit<T = u64>(pub(crate) Option<T>);

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self(None)),
            _ => match text.parse() {
                Ok(limit @ 1_u64..) => Ok(Self(Some(limit))),
                _ => Err("write a number of at least 1, or none".to_owned()),
            },
        }
    }
}

impl FromStr for Limit<Amount> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self(None)),
            _ => match text.parse() {
                Ok(amount) => Ok(Self(Some(amount))),
                Err(why) => Err(format!("{why}, or none")),
            },
        }
    }
}
