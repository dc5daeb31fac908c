//! Numbers in text: a status in a sentence, a request size beyond a limit.

use crate::hint::amount;
use crate::prose::Prose;
use crate::status::is_error;

/// Words that precede a status.
const BEFORE_STATUS: &[&str] = &[
    "status code",
    "status",
    "http",
    "error code",
    "api error",
    "client error",
    "server error",
    "request failed",
];

/// Returns the HTTP status in a sentence: "Server responded with status 429", "429 Too Many Requests".
pub(crate) fn status(prose: &Prose) -> Option<u16> {
    named_status(prose).or_else(|| leading_status(prose.words()))
}

/// Like [`status`], but only if the sentence says that the number is a status.
pub(crate) fn named_status(prose: &Prose) -> Option<u16> {
    let after = |phrase| prose.ends(phrase).find_map(|end| leading_status(&prose.words()[end..]));
    BEFORE_STATUS.iter().find_map(|phrase| after(phrase))
}

fn leading_status(text: &str) -> Option<u16> {
    let word = text.split_ascii_whitespace().next().filter(|word| word.len() == 3)?;
    word.parse().ok().filter(|status| is_error(*status))
}

/// Whether one request is larger than the whole limit: "Limit 30000, Requested 31538". Waiting does not help then.
pub(crate) fn asks_too_much(prose: &Prose) -> bool {
    let after = |word| prose.ends(word).find_map(|end| amount(prose.words()[end..].trim_start()));
    after("limit").zip(after("requested")).is_some_and(|(limit, requested)| requested > limit)
}
