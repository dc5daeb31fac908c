//! How fast a journal appends. Figures, not checks.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use everturn_orchestrator::{Journal, Version};
use everturn_wire::ConversationId;
use futures_util::future::join_all;

use crate::numbered::{numbered, turn};

/// Lets writers append to a conversation each, at the same time, and describes how fast that was. Each append has 200 bytes
/// of text and a running turn. `run` distinguishes the conversations from those of other runs.
///
/// # Panics
/// If an append fails.
pub async fn appends(journal: &Arc<dyn Journal>, run: &str, writers: u64, appends: u64) -> String {
    let begun = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let (journal, id) = (journal.clone(), format!("{run}-{writers}-{writer}"));
            tokio::spawn(async move {
                let id = ConversationId::from(id.as_str());
                let (mut version, mut took) = (Version(0), Vec::new());
                for number in 1..=appends {
                    let commit = numbered(number, &"x".repeat(200)).turn(turn());
                    let begun = Instant::now();
                    version = journal.append(&id, version, commit).await.expect("an append succeeds");
                    took.push(begun.elapsed());
                }
                took
            })
        })
        .collect();
    let took = join_all(tasks).await.into_iter().flat_map(|took| took.expect("a writer does not panic"));
    let mut took: Vec<Duration> = took.collect();
    took.sort();
    let rate = took.len() as f64 / begun.elapsed().as_secs_f64();
    let at = |part: usize| took[took.len() * part / 100];
    format!("{writers} writers: {rate:.0}/s, p50 {:?}, p99 {:?}", at(50), at(99))
}
