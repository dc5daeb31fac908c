//! An exported conversation as a response body, of which one window is in memory at a time.

mod markdown;

use bytes::Bytes;
use everturn_orchestrator::{Error, Export};
use everturn_wire::{Chunk, ExportLine, StoredChunk};
use futures_util::stream::{self, Stream};
use tokio::sync::OwnedSemaphorePermit;

use crate::query::percent_encoded;
use markdown::Markdown;

/// Maximum length of a file name without its extension, in characters.
const NAME_CHARS: usize = 60;

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Everything, as lines of [`ExportLine`].
    Jsonl,
    /// The messages that are not superseded, for reading.
    Markdown,
}

impl Format {
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Jsonl => "application/x-ndjson",
            Self::Markdown => "text/markdown; charset=utf-8",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Markdown => "md",
        }
    }
}

/// Returns the `Content-Disposition` of a conversation with this title. Its file name consists of letters, digits and
/// hyphens, so it is safe on any system.
pub(crate) fn file_name(title: &str, format: Format) -> String {
    let words = title.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words.collect::<Vec<_>>().join("-").chars().take(NAME_CHARS).collect();
    let name = match name.trim_end_matches('-') {
        "" => "conversation",
        name => name,
    };
    let extension = format.extension();
    if name.is_ascii() {
        return format!("attachment; filename=\"{name}.{extension}\"");
    }
    // RFC 6266: the plain name is for clients that do not know the other one.
    let encoded = percent_encoded(name);
    format!("attachment; filename=\"conversation.{extension}\"; filename*=UTF-8''{encoded}.{extension}")
}

/// An export being sent. The client sets the pace: a window is read only when there is room for it.
struct Sending {
    export: Export,
    writer: Writer,
    stage: Stage,
    _place: OwnedSemaphorePermit,
}

enum Stage {
    Begin,
    Chunks,
    Over,
}

enum Writer {
    Jsonl,
    Markdown(Markdown),
}

/// Returns the pieces of the file. An error cuts the response off, so that the client knows that it is incomplete.
pub(crate) fn pieces(
    export: Export,
    format: Format,
    place: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Bytes, Error>> {
    let writer = match format {
        Format::Jsonl => Writer::Jsonl,
        Format::Markdown => Writer::Markdown(Markdown::default()),
    };
    stream::unfold(Sending { export, writer, stage: Stage::Begin, _place: place }, async |mut sending| {
        let piece = sending.piece().await.transpose()?;
        if let Err(error) = &piece {
            tracing::warn!(%error, "an export was cut off");
            sending.stage = Stage::Over;
        }
        Some((piece, sending))
    })
}

impl Sending {
    async fn piece(&mut self) -> Result<Option<Bytes>, Error> {
        let mut text = String::new();
        // A window may have nothing for people to read.
        while text.is_empty() {
            match self.stage {
                Stage::Begin => {
                    self.begin(&mut text).await?;
                    self.stage = Stage::Chunks;
                }
                Stage::Chunks => match self.export.next().await? {
                    Some(chunks) => chunks.iter().for_each(|chunk| self.chunk(chunk, &mut text)),
                    None => {
                        self.end(&mut text);
                        self.stage = Stage::Over;
                    }
                },
                Stage::Over => return Ok(None),
            }
        }
        Ok(Some(text.into()))
    }

    async fn begin(&mut self, text: &mut String) -> Result<(), Error> {
        let (id, head) = (self.export.id().clone(), self.export.head());
        match &mut self.writer {
            Writer::Jsonl => line(
                text,
                &ExportLine::Conversation {
                    id,
                    created_at: head.created_at.0,
                    last_activity_at: head.last_activity_at.0,
                    title: head.title.clone(),
                    status: head.status,
                    model: head.model.clone(),
                    end_reason: head.end_reason.clone(),
                    latest_seq: head.last_seq,
                },
            ),
            Writer::Markdown(markdown) => markdown.begin(&self.export, text).await?,
        }
        Ok(())
    }

    fn chunk(&mut self, stored: &StoredChunk, text: &mut String) {
        match &mut self.writer {
            Writer::Jsonl => line(
                text,
                &ExportLine::Chunk {
                    conversation_id: self.export.id().clone(),
                    seq: stored.seq,
                    role: stored.role,
                    chunk: Chunk::clone(&stored.chunk),
                    supersedes: stored.supersedes,
                },
            ),
            Writer::Markdown(markdown) => markdown.chunk(stored, text),
        }
    }

    fn end(&self, text: &mut String) {
        if let Writer::Markdown(_) = &self.writer {
            Markdown::end(self.export.head(), text);
        }
    }
}

fn line(text: &mut String, line: &ExportLine) {
    // A type of our own whose serialization cannot fail.
    text.push_str(&serde_json::to_string(line).unwrap_or_default());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_is_safe_and_tells_the_title() {
        let name = |title: &str| file_name(title, Format::Markdown);
        let plain = |name: &str| format!("attachment; filename=\"{name}.md\"");
        assert_eq!(name("What is **two** and two?"), plain("What-is-two-and-two"));
        assert_eq!(name("../../etc/passwd\r\nX: y\"; \\"), plain("etc-passwd-X-y"));
        assert_eq!(name(&format!("{} b", "a".repeat(59))), plain(&"a".repeat(59)));
        for title in ["", "..", "🦀", "-"] {
            assert_eq!(name(title), plain("conversation"), "{title}");
        }
        let expected = "attachment; filename=\"conversation.md\"; filename*=UTF-8''Gr%C3%BC%C3%9Fe-an-2.md";
        assert_eq!(name("Grüße an 2"), expected);
    }
}
