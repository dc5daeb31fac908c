//! `everturn conversations export`.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, ErrorKind, Write},
    path::Path,
    process::ExitCode,
};

use crate::{visible, wording};
use anyhow::{Context as _, Result, anyhow};
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
        write(archive, &chosen, &mut BufWriter::new(io::stdout())).await?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut file = BufWriter::new(create(path)?);
    let written = write(archive, &chosen, &mut file).await.and_then(|chunks| {
        file.get_ref().sync_all()?;
        Ok(chunks)
    });
    let chunks = written.inspect_err(|_| {
        // An incomplete file would be taken for a complete one.
        let _ = fs::remove_file(path);
    });
    let chunks = chunks.with_context(|| format!("cannot write {}", path.display()))?;
    let (count, chunks) =
        (wording::count(chosen.len() as u64, "conversation"), wording::count(chunks, "chunk"));
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

/// Writes the conversations and returns their number of chunks.
async fn write(
    archive: &Archive<'_>,
    chosen: &[&(ConversationId, Head)],
    out: &mut impl Write,
) -> Result<u64> {
    let mut chunks = 0;
    for (id, head) in chosen {
        let last_seq = archive.last_seq(id, head).await?;
        line(out, &conversation(id, &Head { last_seq, ..head.clone() }))?;
        each_chunk(archive, id, last_seq, |stored| {
            chunks += 1;
            line(out, &chunk(id, stored))
        })
        .await?;
    }
    out.flush()?;
    Ok(chunks)
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

/// Visits the chunks up to `last` in ascending order, a few at a time; a server may be adding more meanwhile.
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
        archive.chunks(id, window).await?.iter().try_for_each(|chunk| take(chunk))?;
        since = end;
    }
    Ok(())
}
