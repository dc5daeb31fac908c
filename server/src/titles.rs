//! Titles by the model: one short call after the first turn of a conversation, which nothing waits for.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use everturn_orchestrator::{Orchestrator, Take, Window};
use everturn_wire::{Chunk, ConversationId, ConversationStatus, DoneReason, Role, StoredChunk};
use tokio::{
    sync::{Semaphore, broadcast::error::RecvError},
    time::timeout,
};

use crate::config::Titles;

/// Maximum time for a title, and number of titles made at once.
const TIME: Duration = Duration::from_secs(60);
const AT_ONCE: usize = 2;

/// What is shown to the model of each side, in characters, and read of its answer, in bytes.
const SHOWN: usize = 1500;

/// Maximum length of a title, in characters.
const LONGEST: usize = 60;

/// How many conversations are remembered as done.
const REMEMBERED: usize = 1024;

const INSTRUCTIONS: &str = "Write a title for this conversation: two to six words in its language, on one line, without quotation marks and \
                            without a full stop. Answer with the title alone.";

/// Gives titles to conversations whose first turn ends, until the orchestrator is gone.
pub(crate) async fn keep_up(orchestrator: Orchestrator, titles: Titles) {
    let (mut changes, places) = (orchestrator.status_changes(), Arc::new(Semaphore::new(AT_ONCE)));
    let mut seen: VecDeque<ConversationId> = VecDeque::new();
    loop {
        let id = match changes.recv().await {
            Ok(change)
                if change.status == ConversationStatus::Idle && !change.conversation_id.is_ephemeral() =>
            {
                change.conversation_id
            }
            Ok(_) | Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        // With many at once, some keep the beginning of their first message.
        let Ok(place) = places.clone().try_acquire_owned() else { continue };
        if seen.contains(&id) {
            continue;
        }
        if seen.len() == REMEMBERED {
            seen.pop_front();
        }
        seen.push_back(id.clone());
        let (orchestrator, titles) = (orchestrator.clone(), titles.clone());
        tokio::spawn(async move {
            let _place = place;
            make(&orchestrator, &titles, &id).await;
        });
    }
}

/// Makes a title, unless a person has given one. A failure leaves the title as it is.
async fn make(orchestrator: &Orchestrator, titles: &Titles, id: &ConversationId) -> Option<()> {
    let turns = orchestrator.metrics(id).await.ok()?;
    let [only] = &turns[..] else { return None };
    if only.reason != Some(DoneReason::Stop) {
        return None;
    }
    let window =
        Window { limit: Some(100), max_bytes: Some(64 << 10), take: Take::Oldest, ..Window::default() };
    let chunks = orchestrator.history(id, window).await.ok()?.chunks;
    let [asked, answered] = [Role::User, Role::Assistant].map(|role| said(&chunks, role));
    let known = orchestrator.title(id).await.ok().filter(|title| is_automatic(title, &asked))?;
    let model = titles.model.clone().or(only.model.clone())?;
    if answered.is_empty() {
        return None;
    }
    let question =
        format!("{INSTRUCTIONS}\n\n<user>\n{asked}\n</user>\n<assistant>\n{answered}\n</assistant>");
    let written = timeout(TIME, orchestrator.ask(id, &model, question, SHOWN)).await.ok()?;
    let written =
        written.inspect_err(|why| tracing::debug!(conversation = %id, why = why.message, "no title"));
    let title = plain(&written.ok()?)?;
    // A person may have named it meanwhile.
    orchestrator.title(id).await.ok().filter(|now| *now == known)?;
    orchestrator.rename(id, &title).await.ok().map(drop)
}

/// Returns the first texts of one side.
fn said(chunks: &[StoredChunk], role: Role) -> String {
    let texts =
        chunks.iter().filter(|stored| stored.role == role).filter_map(|stored| match &*stored.chunk {
            Chunk::Text { text } => Some(text.as_str()),
            _ => None,
        });
    texts.flat_map(str::chars).take(SHOWN).collect()
}

/// Whether a title is the beginning of the first message.
fn is_automatic(title: &str, asked: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    words(asked).starts_with(words(title).trim_end_matches('…').trim_end())
}

/// Returns what a model wrote as a title; `None` if it cannot be one.
fn plain(written: &str) -> Option<String> {
    let line = written.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line = line.trim_start_matches(['#', '*', ' ']).trim_start_matches("Title:");
    let is_mark =
        |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '*' | '`' | '“' | '”' | '„' | '«' | '»');
    let line = line.trim_matches(is_mark).trim_end_matches('.');
    let title: String = line.chars().filter(|c| !c.is_control()).collect();
    (1..=LONGEST).contains(&title.chars().count()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_plain_line() {
        for (written, expected) in [
            ("Rolling two dice", Some("Rolling two dice")),
            ("\n\"Rolling two dice.\"\n\nI hope this helps", Some("Rolling two dice")),
            ("## **Würfeln**", Some("Würfeln")),
            ("Title: A plan", Some("A plan")),
            ("", None),
            ("\"\"", None),
            (&"x".repeat(61), None),
        ] {
            assert_eq!(plain(written).as_deref(), expected, "{written}");
        }
    }

    #[test]
    fn only_the_beginning_of_the_first_message_gives_way() {
        assert!(is_automatic("hello", "hello"));
        assert!(is_automatic("Explain the …", "Explain\n  the plan"));
        assert!(!is_automatic("My plan", "Explain the plan"));
    }
}
