//! Everturn's own headers, by which a client that speaks another protocol says how long and how it waits.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, StatusCode};
use everturn_wire::{OnQuota, Priority};

use crate::refusal::Refusal;

mod budget;

pub use budget::read as read_span;

const BUDGET: HeaderName = HeaderName::from_static("everturn-budget");
const QUOTA: HeaderName = HeaderName::from_static("everturn-quota");
const WHOLE: HeaderName = HeaderName::from_static("everturn-whole");
const PRIORITY: HeaderName = HeaderName::from_static("everturn-priority");

/// What a request asks for in these headers. What is absent is as configured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Control {
    /// How long the answer may be waited for.
    pub(crate) budget: Option<Duration>,
    /// Whether a used-up quota is waited for.
    pub(crate) quota: Option<OnQuota>,
    /// Whether the answer is held until it is complete.
    pub(crate) whole: bool,
    /// Whether other calls go first.
    pub(crate) priority: Priority,
}

impl Control {
    /// Reads the headers.
    ///
    /// # Errors
    /// Returns a 400 response that names the header and what to write.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Refusal> {
        Ok(Self {
            budget: read(headers, &BUDGET, "a length of time like 10m, 90s or 1h30m", budget::read)?,
            quota: read(headers, &QUOTA, "fail or park", |text| match text {
                "fail" => Some(OnQuota::Fail),
                "park" => Some(OnQuota::Park),
                _ => None,
            })?,
            whole: read(headers, &WHOLE, "true or false", |text| text.parse().ok())?.unwrap_or_default(),
            priority: read(headers, &PRIORITY, "interactive or background", |text| match text {
                "interactive" => Some(Priority::Interactive),
                "background" => Some(Priority::Background),
                _ => None,
            })?
            .unwrap_or_default(),
        })
    }
}

fn read<T>(
    headers: &HeaderMap,
    name: &HeaderName,
    expected: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Refusal> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    if let Some(read) = parse(text) {
        return Ok(Some(read));
    }
    let text: String = text.chars().take(64).collect();
    Err(Refusal::new(StatusCode::BAD_REQUEST, format!("the header {name} is {text:?}: write {expected}")))
}
