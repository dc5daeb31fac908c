//! Removes secrets from answers, also if they are split over several events.
//!
//! Unlike in failures, only a whole secret of 16 characters or more is replaced, exactly as configured: an answer may well
//! contain parts of one, or speak about keys.

#[cfg(test)]
mod tests;

use std::{mem, ops::Range, sync::Arc};

use bytes::Bytes;
use everturn_kernel::{Arguments, FinishReason, StreamEvent, ToolCall};
use everturn_wire::{Echo, Reported, Value};
use memchr::{memchr_iter, memmem::Finder};
use serde_json::Map;

/// Replaces a secret.
pub(super) const MARK: &str = "[redacted]";

/// Overwrites each byte of a secret where the length of a text must stay.
pub(super) const BLANK: u8 = b'*';

/// Minimum length of a secret that is replaced in answers, in bytes. Shorter ones are no keys, and may be words.
const SHORTEST: usize = 16;

/// Number of characters that are shown although a secret may begin with them. Otherwise every text that ends like the start of a
/// key would be delayed.
const SHOWN: usize = 3;

/// Whole secrets, prepared for searching.
#[derive(Clone, Default)]
pub(crate) struct Whole(Arc<Vec<Finder<'static>>>);

impl Whole {
    /// Adds a secret if it is long enough.
    pub(super) fn add(&mut self, secret: &str) {
        let is_known = self.0.iter().any(|finder| finder.needle() == secret.as_bytes());
        if secret.len() >= SHORTEST && secret.is_ascii() && !is_known {
            Arc::make_mut(&mut self.0).push(Finder::new(secret).into_owned());
        }
    }

    /// Returns the first secret in a text.
    fn find(&self, text: &str) -> Option<Range<usize>> {
        let found = self.0.iter().filter_map(|finder| {
            let at = finder.find(text.as_bytes())?;
            Some(at..at + finder.needle().len())
        });
        found.min_by_key(|range| (range.start, usize::MAX - range.end))
    }

    /// Overwrites the secrets in a piece of an answer, so that its length stays.
    pub(crate) fn overwrite(&self, piece: Bytes) -> Bytes {
        let found = |bytes: &[u8]| {
            self.0.iter().find_map(|finder| Some((finder.find(bytes)?, finder.needle().len())))
        };
        if found(&piece).is_none() {
            return piece;
        }
        let mut bytes = piece.to_vec();
        while let Some((at, length)) = found(&bytes) {
            bytes[at..at + length].fill(BLANK);
        }
        bytes.into()
    }

    /// Returns where a secret may begin that is cut off by the end of the text; its length if none does.
    fn cut(&self, text: &str) -> usize {
        let bytes = text.as_bytes();
        let starts = self.0.iter().filter_map(|finder| {
            let secret = finder.needle();
            let from = bytes.len().saturating_sub(secret.len() - 1);
            memchr_iter(secret[0], &bytes[from..])
                .map(|at| from + at)
                .find(|at| secret.starts_with(&bytes[*at..]))
        });
        starts.min().unwrap_or(bytes.len())
    }

    fn hide(&self, text: &mut String) {
        while let Some(found) = self.find(text) {
            text.replace_range(found, MARK);
        }
    }

    fn hide_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.hide(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in(item)),
            Value::Object(fields) => {
                if fields.keys().any(|name| self.find(name).is_some()) {
                    let renamed = mem::take(fields).into_iter().map(|(mut name, value)| {
                        self.hide(&mut name);
                        (name, value)
                    });
                    *fields = renamed.collect::<Map<_, _>>();
                }
                fields.values_mut().for_each(|value| self.hide_in(value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn hide_in_echo(&self, echo: &mut Echo) {
        self.hide_in(&mut echo.data);
    }

    fn hide_in_call(&self, call: &mut ToolCall) {
        self.hide(&mut call.id);
        self.hide(&mut call.name);
        match &mut call.arguments {
            Arguments::Parsed(value) => self.hide_in(value),
            Arguments::Malformed { raw, reason } => {
                [raw, reason].into_iter().for_each(|text| self.hide(text));
            }
        }
        call.echo.iter_mut().for_each(|echo| self.hide_in_echo(echo));
    }
}

/// Masks secrets in the events of one call.
#[derive(Default)]
pub(crate) struct Mask {
    whole: Whole,
    /// The end of the latest text, if it may be the start of a secret.
    tail: String,
    /// Number of bytes of it that were yielded.
    shown: usize,
    is_reasoning: bool,
}

impl Mask {
    pub(crate) fn new(whole: &Whole) -> Self {
        Self { whole: whole.clone(), ..Self::default() }
    }

    /// Returns the event without secrets, and text to yield before it. Both may be missing, because text that may be the start of
    /// a secret is kept until more arrives.
    pub(crate) fn take(&mut self, event: StreamEvent) -> [Option<StreamEvent>; 2] {
        if self.whole.0.is_empty() {
            return [None, Some(event)];
        }
        match event {
            StreamEvent::Text(text) => self.take_text(text, false),
            StreamEvent::Reasoning(text) => self.take_text(text, true),
            StreamEvent::Echo(mut echo) => {
                self.whole.hide_in_echo(&mut echo);
                [self.release(), Some(StreamEvent::Echo(echo))]
            }
            StreamEvent::ToolCall(mut call) => {
                self.whole.hide_in_call(&mut call);
                [self.release(), Some(StreamEvent::ToolCall(call))]
            }
            StreamEvent::Finished(FinishReason::Other(mut reason)) => {
                self.whole.hide(&mut reason);
                [self.release(), Some(StreamEvent::Finished(FinishReason::Other(reason)))]
            }
            StreamEvent::Reported(mut reported) => {
                let Reported { model, system_fingerprint, service_tier, cost: _ } = &mut *reported;
                [model, system_fingerprint, service_tier]
                    .into_iter()
                    .flatten()
                    .for_each(|text| self.whole.hide(text));
                [self.release(), Some(StreamEvent::Reported(reported))]
            }
            StreamEvent::Finished(_) | StreamEvent::Failed(_) => [self.release(), Some(event)],
            // The id of a call that is yet to come, under which it is found.
            StreamEvent::CallHere(mut id) => {
                self.whole.hide(&mut id);
                [None, Some(StreamEvent::CallHere(id))]
            }
            // The rest has no text of a provider's, and does not end one.
            event => [None, Some(event)],
        }
    }

    fn take_text(&mut self, text: String, is_reasoning: bool) -> [Option<StreamEvent>; 2] {
        let before = if self.is_reasoning == is_reasoning { None } else { self.release() };
        self.is_reasoning = is_reasoning;
        let text = self.mask(text);
        [before, Some(text).filter(|text| !text.is_empty()).map(|text| event(text, is_reasoning))]
    }

    /// Returns what of the text can be yielded, with what was kept before.
    fn mask(&mut self, text: String) -> String {
        if self.tail.is_empty() && self.whole.find(&text).is_none() && self.whole.cut(&text) == text.len() {
            return text;
        }
        let mut all = mem::take(&mut self.tail) + &text;
        let (mut masked, mut at) = (String::new(), mem::take(&mut self.shown));
        while let Some(found) = self.whole.find(&all) {
            masked.push_str(&all[at.min(found.start)..found.start]);
            masked.push_str(MARK);
            all.drain(..found.end);
            at = 0;
        }
        let tail = self.whole.cut(&all);
        let shown = (tail + SHOWN).min(all.len()).max(at);
        masked.push_str(&all[at..shown]);
        (self.shown, self.tail) = (shown - tail, all.split_off(tail));
        masked
    }

    /// Returns text that was kept and turned out not to be a secret.
    fn release(&mut self) -> Option<StreamEvent> {
        let kept = mem::take(&mut self.tail).split_off(mem::take(&mut self.shown));
        (!kept.is_empty()).then(|| event(kept, self.is_reasoning))
    }
}

fn event(text: String, is_reasoning: bool) -> StreamEvent {
    if is_reasoning { StreamEvent::Reasoning(text) } else { StreamEvent::Text(text) }
}
