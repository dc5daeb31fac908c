//! Query parameters, read strictly: a wrong value is an error, never a default.

use std::str::FromStr;

use axum::{
    extract::{FromRequestParts, Query},
    http::request::Parts,
};

use crate::refusal::Refusal;

/// The largest number that every JSON reader represents exactly.
const MAX_NUMBER: u64 = (1 << 53) - 1;

/// The query of a request. Unknown parameters are ignored.
pub(crate) struct Parameters(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Parameters {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let Query(all) = Query::from_request_parts(parts, state).await?;
        Ok(Self(all))
    }
}

impl Parameters {
    /// Returns a parameter as text.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Refusal> {
        let mut values = self.0.iter().filter(|(parameter, _)| parameter == name);
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(Refusal::bad(format!("the parameter {name} is there twice"))),
            (value, None) => Ok(value.map(|(_, value)| value.as_str())),
        }
    }

    /// Returns a parameter as a whole number from 0 to 2^53 - 1.
    pub(crate) fn number<N: TryFrom<u64>>(&self, name: &str) -> Result<Option<N>, Refusal> {
        let is_plain = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
        let read = |text: &str| {
            let number = Some(text).filter(is_plain).and_then(|text| u64::from_str(text).ok());
            let number =
                number.filter(|number| *number <= MAX_NUMBER).and_then(|number| N::try_from(number).ok());
            number.ok_or_else(|| {
                Refusal::bad(format!("{name} must be a whole number from 0 to {MAX_NUMBER}, not {text:?}"))
            })
        };
        self.text(name)?.map(read).transpose()
    }

    /// Returns a parameter as a boolean.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        let read = |text: &str| {
            text.parse().map_err(|_| Refusal::bad(format!("{name} must be true or false, not {text:?}")))
        };
        self.text(name)?.map(read).transpose()
    }
}

/// Encodes a text for a query or an extended header value.
pub(crate) fn percent_encoded(text: &str) -> String {
    let encoded = |byte| match byte {
        b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encoded).collect()
}
