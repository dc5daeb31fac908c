//! Replays bodies without a connection, for property tests and fuzz targets of all readers.

use everturn_kernel::StreamEvent;

use crate::{
    AnswerLimits,
    answer::Answer,
    anthropic, chat,
    exchange::{Body, Facts, Flaw, Reader, Reading},
    gemini, responses,
};

/// The APIs whose streams can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// Chat Completions.
    Chat,
    /// Messages.
    Messages,
    /// Responses.
    Responses,
    /// Gemini.
    Gemini,
}

impl Dialect {
    /// All dialects.
    pub const ALL: &'static [Self] = &[Self::Chat, Self::Messages, Self::Responses, Self::Gemini];
}

/// How reading a body ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// The body is not an event stream.
    Missing,
    /// The answer is complete.
    Complete,
    /// The answer cannot be used, for this reason.
    Flawed(String),
}

/// Returns the events read from a body in these pieces, and how it ended. The body ends cleanly after the last piece.
/// `eager_calls` is as in [`everturn_kernel::Request`].
pub fn replay<'a>(
    dialect: Dialect,
    limits: AnswerLimits,
    eager_calls: bool,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<StreamEvent>, Ending) {
    let answer = Answer::new("seed".to_owned(), limits.answer).eager(eager_calls);
    let origin = "origin".to_owned();
    match dialect {
        Dialect::Chat => feed(chat::answered(answer, Some(origin), limits), pieces),
        Dialect::Messages => feed(anthropic::answered(answer, origin, limits), pieces),
        Dialect::Responses => feed(responses::answered(answer, origin, limits), pieces),
        Dialect::Gemini => feed(gemini::answered(answer, origin, limits), pieces),
    }
}

fn feed<'a, R: Reader>(
    mut body: Body<R>,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<StreamEvent>, Ending) {
    let mut facts = Facts::new();
    let read = || {
        for piece in pieces {
            if body.take(piece, &mut facts)? == Reading::Complete {
                return Ok(Ending::Complete);
            }
        }
        if body.opening.is_some() {
            return Ok(Ending::Missing);
        }
        body.end(&mut facts).map(|()| Ending::Complete)
    };
    let ending = read().unwrap_or_else(|flaw| {
        Ending::Flawed(match flaw {
            Flaw::Payload(payload) => payload,
            Flaw::Truncated(what) => what.to_owned(),
            Flaw::Excess(what) => what,
        })
    });
    (facts.into(), ending)
}

#[cfg(test)]
mod tests;
