//! Hints from text: "Please try again in 6m0s", "resets at 2026-09-01T09:44:51Z".

use crate::pair::Pairs;
use crate::prose::Prose;

use super::{EPOCH_MILLIS, EPOCH_SECONDS, calendar, date, duration, until, wait};

/// What may follow a trigger phrase.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A duration or a point in time.
    Any,
    /// Only a point in time; a duration would be the length of the window.
    Moment,
    /// A number without a unit, too; it counts seconds.
    Bare,
}

/// Phrases that precede a wait.
const TRIGGERS: &[(&str, Form)] = &[
    ("again in", Form::Any),
    ("again at", Form::Moment),
    ("again after", Form::Any),
    ("retry your request in", Form::Any),
    ("retry your request after", Form::Any),
    ("retry the request in", Form::Any),
    ("retry the request after", Form::Any),
    ("retry in", Form::Any),
    ("retrying in", Form::Any),
    ("retry after", Form::Bare),
    ("retry delay", Form::Any),
    ("retrydelay", Form::Any),
    ("regain access on", Form::Moment),
    ("regain access at", Form::Moment),
    ("retry at", Form::Moment),
    ("retry after seconds", Form::Bare),
    ("resets in seconds", Form::Bare),
    ("reset in", Form::Any),
    ("resets in", Form::Any),
    ("reset after", Form::Any),
    ("resets after", Form::Any),
    ("reset at", Form::Moment),
    ("resets at", Form::Moment),
    ("reset on", Form::Moment),
    ("resets on", Form::Moment),
    ("resets", Form::Moment),
    ("limit reached", Form::Moment),
    ("available in", Form::Any),
    ("available at", Form::Moment),
    ("replenished in", Form::Any),
    ("refreshes in", Form::Any),
    ("renews in", Form::Any),
    ("refresh in", Form::Any),
    ("lifted in", Form::Any),
    ("unblocked in", Form::Any),
    ("cooldown", Form::Any),
    ("back in", Form::Any),
    ("wait", Form::Any),
    ("until", Form::Moment),
];

/// The first letters of triggers.
const STARTS: Pairs = {
    let mut starts = Pairs::of(&[]);
    let mut at = 0;
    while at < TRIGGERS.len() {
        starts.insert(TRIGGERS[at].0.as_bytes());
        at += 1;
    }
    starts
};

/// Words between a trigger and its wait.
#[rustfmt::skip]
const FILLERS: &[&str] = &[
    "about", "approximately", "around", "roughly", "at", "least", "another", "for", "up", "to", "the", "next", "more",
    "after", "|",
];

/// Returns the first wait in the text.
pub(super) fn read(prose: &Prose, now: u64) -> Option<u64> {
    let triggered = prose.tails().filter(|tail| STARTS.may_have(tail.as_bytes())).flat_map(|tail| {
        let rest = move |trigger| tail.strip_prefix(trigger)?.strip_prefix(' ');
        TRIGGERS.iter().filter_map(move |(trigger, form)| Some((rest(*trigger)?, *form)))
    });
    let mut named = triggered.filter_map(|(rest, form)| after(fillers_skipped(rest), form, now));
    named.next().or_else(|| before_later(prose.words()))
}

fn fillers_skipped(mut text: &str) -> &str {
    while let Some((_, rest)) = text.split_once(' ').filter(|(word, _)| FILLERS.contains(word)) {
        text = rest;
    }
    text
}

fn after(text: &str, form: Form, now: u64) -> Option<u64> {
    if let Some(at) = date::rfc3339(text).map(|(at, _)| at).or_else(|| calendar::read(text, now)) {
        return until(at, now);
    }
    let bare = text.split(' ').next().and_then(super::number);
    match bare {
        Some(number) if number >= EPOCH_MILLIS => return until(number, now),
        Some(number) if number >= EPOCH_SECONDS => return until(number * 1000.0, now),
        _ if form == Form::Moment => return None,
        _ => {}
    }
    let (millis, _) =
        duration::leading(text).or_else(|| Some((bare.filter(|_| form == Form::Bare)? * 1000.0, "")))?;
    wait(millis)
}

/// Maximum length of a wait, in bytes.
const LONGEST_WAIT: usize = 48;

/// In Chinese the wait comes first: "请在 1 分 30 秒后重试".
fn before_later(words: &str) -> Option<u64> {
    words.match_indices('后').find_map(|(end, _)| {
        let from = words.floor_char_boundary(end.saturating_sub(LONGEST_WAIT));
        let digits = words[from..end].match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| from + at);
        let mut starts =
            digits.filter(|at| !words[..*at].ends_with(|c: char| c.is_ascii_digit() || c == '.'));
        starts.find_map(|start| {
            let (millis, rest) = duration::leading(&words[start..])?;
            rest.trim_start().starts_with('后').then(|| wait(millis)).flatten()
        })
    })
}
