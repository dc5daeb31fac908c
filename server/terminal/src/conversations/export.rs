//! `everturn conversations export`.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, ErrorKind, Write},
    path::Path,
    process::ExitCode,
};

use crate::{visible, wording};
use anyhow::{Context as _, Error, Result, anyhow};
use everturn_orchestrator::{Head, Window};
use everturn_wire::{Chunk, ConversationId, ExportLine, StoredChunk};

use super::{archive::Archive, selection};

/// Number of chunks in memory at a time.
const CHUNKS: u64 = 256;

/// Exports some conversations, or all.
pub(super) async fn run(archive: &Archive<'_>, asked: &[String], output: Option<&Path>) -> Result<ExitCode> {
    let all = archive.conversations().await?;
    let chosen = match asked {
        [] => all.iter().collect(),
        asked => selection::several(&all, asked)?,
    };
    let Some(path) = output else {
        write(archive, &chosen, asked.is_empty(), &mut BufWriter::new(io::stdout())).await?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut file = BufWriter::new(create(path)?);
    let written = write(archive, &chosen, asked.is_empty(), &mut file).await.and_then(|written| {
        file.get_ref().sync_all()?;
        Ok(written)
    });
    let written = written.inspect_err(|_| {
        // An incomplete file would be taken for a complete one.
        let _ = fs::remove_file(path);
    });
    let (count, chunks) = written.with_context(|| format!("cannot write {}", path.display()))?;
    let (count, chunks) = (wording::count(count, "conversation"), wording::count(chunks, "chunk"));
    writeln!(io::stderr(), "Wrote {count} with {chunks} to {}.", path.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Creates a new file, accessible only to its owner.
fn create(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            anyhow!("{} already exists: remove it, or choose another name for --output", path.display())
        }
        _ => anyhow!("cannot make {}: {error}; choose another place for --output", path.display()),
    })
}

/// Writes the conversations and returns how many there were, and their number of chunks.
async fn write(
    archive: &Archive<'_>,
    chosen: &[&(ConversationId, Head)],
    may_be_gone: bool,
    out: &mut impl Write,
) -> Result<(u64, u64)> {
    let (mut count, mut chunks) = (0, 0);
    for (id, head) in chosen {
        let last_seq = match archive.last_seq(id).await? {
            Some(last_seq) => last_seq,
            None if may_be_gone => continue,
            None => return Err(deleted(id)),
        };
        count += 1;
        line(out, &conversation(id, &Head { last_seq, ..head.clone() }))?;
        each_chunk(archive, id, last_seq, |stored| {
            chunks += 1;
            line(out, &chunk(id, stored))
        })
        .await?;
    }
    out.flush()?;
    Ok((count, chunks))
}

fn line(out: &mut impl Write, line: &ExportLine) -> Result<()> {
    let line = visible::json(&serde_json::to_string(line)?);
    Ok(writeln!(out, "{line}")?)
}

fn conversation(id: &ConversationId, head: &Head) -> ExportLine {
    ExportLine::Conversation {
        id: id.clone(),
        created_at: head.created_at.0,
        last_activity_at: head.last_activity_at.0,
        title: head.title.clone(),
        status: head.status,
        model: head.model.clone(),
        end_reason: head.end_reason.clone(),
        latest_seq: head.last_seq,
    }
}

fn chunk(id: &ConversationId, stored: &StoredChunk) -> ExportLine {
    ExportLine::Chunk {
        conversation_id: id.clone(),
        seq: stored.seq,
        role: stored.role,
        chunk: Chunk::clone(&stored.chunk),
        supersedes: stored.supersedes,
    }
}

pub(super) fn deleted(id: &ConversationId) -> Error {
    anyhow!("{id} was deleted just now")
}

/// Visits the chunks up to `last` in ascending order, a few at a time; a server may be adding more meanwhile. Fails if one is
/// missing.
pub(super) async fn each_chunk(
    archive: &Archive<'_>,
    id: &ConversationId,
    last: u64,
    mut take: impl FnMut(&StoredChunk) -> Result<()>,
) -> Result<()> {
    let mut since = 0;
    while since < last {
        let end = last.min(since + CHUNKS);
        let window = Window { since_seq: Some(since), before_seq: Some(end + 1), ..Window::default() };
        let chunks = archive.chunks(id, window).await?;
        if !chunks.iter().map(|chunk| chunk.seq).eq(since + 1..=end) {
            return Err(deleted(id));
        }
        chunks.iter().try_for_each(|chunk| take(chunk))?;
        since = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use everturn_orchestrator::{Commit, Journal as _, MemoryJournal, Version, kernel::Millis};
    use everturn_wire::Role;
    use futures_util::FutureExt as _;

    use super::*;

    /// A conversation of two windows.
    const LAST: u64 = 2 * CHUNKS;

    async fn journal(id: &ConversationId) -> (Arc<MemoryJournal>, Archive<'static>) {
        let chunk = |seq| {
            let chunk = Chunk::Text { text: "text".to_owned() }.into();
            StoredChunk { seq, role: Role::User, chunk, supersedes: None }
        };
        let journal = Arc::new(MemoryJournal::new());
        let commit = Commit::new(Head { last_seq: LAST, ..Head::new(Millis(1)) });
        let commit = (1..=LAST).fold(commit, |commit, seq| commit.chunk(chunk(seq)));
        journal.append(id, Version(0), commit).await.unwrap();
        (journal.clone(), Archive::Shared(journal))
    }

    #[tokio::test]
    async fn a_conversation_that_is_deleted_meanwhile_is_not_taken_for_whole() {
        let id = ConversationId::from("c");
        let (journal, archive) = journal(&id).await;
        let mut taken = 0;
        let visited = each_chunk(&archive, &id, LAST, |_| {
            taken += 1;
            journal.remove(&id).now_or_never().unwrap()?;
            Ok(())
        });
        assert_eq!(visited.await.unwrap_err().to_string(), "c was deleted just now");
        assert_eq!(taken, CHUNKS, "the first window");
    }

    #[tokio::test]
    async fn an_export_of_all_leaves_out_what_is_deleted_before_its_turn() {
        let [here, gone] = ["here", "gone"].map(|id| (ConversationId::from(id), Head::new(Millis(1))));
        let (_, archive) = journal(&here.0).await;
        let mut out = Vec::new();
        assert_eq!(write(&archive, &[&gone, &here], true, &mut out).await.unwrap(), (1, LAST));
        assert!(!String::from_utf8(out).unwrap().contains("gone"));
        let error = write(&archive, &[&here, &gone], false, &mut Vec::new()).await.unwrap_err();
        assert_eq!(error.to_string(), "gone was deleted just now");
    }
}
