//! Summaries by the model of a world. They record the position of the conversation, so that it continues from there.

use everturn_wire::{Chunk, Message, Role};

use super::script::Position;

/// The orchestrator's introduction of a summary, and in it the user's message if that was cut off.
const INTRODUCED: &str = "[Summary of the conversation so far";
const VERBATIM: &str = "The user's current request, verbatim:\n";

/// The prefix of a summary.
const SPOKEN: &str = "spoken: ";

/// The headings of a transcript.
const USER: &str = "[user]";
const SUMMARY: &str = "[summary of what came before]";

/// Whether the request asks for a summary.
pub(super) fn is_asked(messages: &[Message]) -> bool {
    messages.first().is_some_and(|message| message.role == Role::System)
}

/// Returns the position up to which a summary is requested, like that of a separate conversation, and the summary.
pub(super) fn asked(messages: &[Message]) -> Option<(Position, String)> {
    let [_, asked] = messages else { return None };
    let Some(Chunk::Text { text }) = asked.iter().next() else { return None };
    let (said, spoken) = transcript(text)?;
    let summary = format!("{SPOKEN}{spoken} since {said}");
    Some(((format!("{said}.summary"), spoken), summary))
}

/// Returns the last user message in a transcript, and the number of assistant messages since.
fn transcript(text: &str) -> Option<Position> {
    let (mut said, mut spoken, mut was_model) = (None, 0, false);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        match line {
            USER => (said, spoken, was_model) = (lines.next().map(str::to_owned), 0, false),
            SUMMARY => {
                let (count, since) = parse(lines.next()?)?;
                (said, spoken, was_model) = (Some(since), count, false);
            }
            _ if line == "[assistant]" || line.starts_with("[assistant calls ") => {
                spoken += usize::from(!was_model);
                was_model = true;
            }
            _ if line.starts_with("[result of ") || line.starts_with("[failed result of ") => {
                was_model = false;
            }
            _ => {}
        }
    }
    Some((said?, spoken))
}

/// Parses `spoken: 2 since c0.t1`.
fn parse(line: &str) -> Option<(usize, String)> {
    let (count, since) = line.strip_prefix(SPOKEN)?.split_once(" since ")?;
    Some((count.parse().ok()?, since.to_owned()))
}

/// Returns the position at the end of a summary, if it is all that is left of the user's messages.
pub(super) fn left_off(text: &str) -> Option<Position> {
    text.strip_prefix(INTRODUCED)?;
    let (_, said) = text.split_once(VERBATIM)?;
    let (spoken, _) = text.lines().find_map(parse)?;
    Some((said.to_owned(), spoken))
}
