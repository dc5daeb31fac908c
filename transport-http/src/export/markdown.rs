//! A conversation as Markdown.

use everturn_orchestrator::{Error, Export, Head};
use everturn_wire::{Chunk, ConversationStatus, Image, Role, StoredChunk};

/// Writes a conversation as Markdown, chunk by chunk.
#[derive(Default)]
pub(super) struct Markdown {
    /// The superseded chunks, as disjoint ranges of `seq` in ascending order: the first, and the first after them.
    superseded: Vec<(u64, u64)>,
    speaker: Option<&'static str>,
}

impl Markdown {
    /// Writes the title. Reads the conversation once before, because chunks are superseded by later ones.
    pub(super) async fn begin(&mut self, export: &Export, text: &mut String) -> Result<(), Error> {
        let mut all = export.clone();
        while let Some(chunks) = all.next().await? {
            let ends = chunks.iter().filter_map(|chunk| chunk.supersedes.map(|from| (from, chunk.seq)));
            ends.for_each(|(from, to)| self.supersede(from, to));
        }
        let title = Some(export.head().title.as_str()).filter(|title| !title.is_empty());
        text.push_str(&format!("# {}", title.unwrap_or("Conversation")));
        Ok(())
    }

    /// `to`: after all ranges so far.
    fn supersede(&mut self, from: u64, to: u64) {
        let mut from = from;
        while let Some((first, _)) = self.superseded.pop_if(|(_, end)| *end >= from) {
            from = from.min(first);
        }
        self.superseded.push((from, to));
    }

    fn is_superseded(&self, seq: u64) -> bool {
        let before = self.superseded.partition_point(|(first, _)| *first <= seq);
        before.checked_sub(1).and_then(|last| self.superseded.get(last)).is_some_and(|(_, end)| seq < *end)
    }

    /// Writes a chunk, unless it is superseded or not for people.
    pub(super) fn chunk(&mut self, stored: &StoredChunk, text: &mut String) {
        let speaker = match stored.role {
            Role::User => "You",
            Role::Assistant | Role::Tool => "Assistant",
            _ => return,
        };
        let Some(said) = said(&stored.chunk).filter(|_| !self.is_superseded(stored.seq)) else { return };
        if self.speaker.replace(speaker) != Some(speaker) {
            text.push_str(&format!("\n\n## {speaker}"));
        }
        text.push_str("\n\n");
        text.push_str(&said);
    }

    /// Writes the end, and whether it is the end of the conversation, too.
    pub(super) fn end(head: &Head, text: &mut String) {
        text.push_str(match head.status {
            ConversationStatus::Active | ConversationStatus::Queued => {
                "\n\n---\n\n*A turn was still running when this was exported.*\n"
            }
            _ => "\n",
        });
    }
}

/// What a chunk says to people; `None` = nothing.
fn said(chunk: &Chunk) -> Option<String> {
    Some(match chunk {
        Chunk::Text { text } => Some(text.trim().to_owned()).filter(|text| !text.is_empty())?,
        Chunk::ToolCall { tool_name, input, .. } => {
            let input = serde_json::to_string_pretty(input).unwrap_or_default();
            format!("**{tool_name}**\n\n{}", fence(&input, "json"))
        }
        Chunk::ToolResult { content, .. } => fence(content, ""),
        Chunk::Error(report) => fence(&report.message, ""),
        Chunk::Image { url, mime_type } if Image::is_pdf(url, mime_type.as_deref()) => {
            match url.starts_with("data:") {
                true => "*(PDF)*".to_owned(),
                false => format!("[PDF]({url})"),
            }
        }
        Chunk::Image { url, .. } if url.starts_with("data:") => "*(image)*".to_owned(),
        Chunk::Image { url, .. } => format!("![image]({url})"),
        _ => return None,
    })
}

/// Code, between fences longer than any inside it.
fn fence(text: &str, language: &str) -> String {
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or(0);
    let marks = "`".repeat(longest.max(2) + 1);
    format!("{marks}{language}\n{text}\n{marks}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_superseded_chunks_stay_disjoint() {
        let mut markdown = Markdown::default();
        for (from, to) in [(3, 5), (7, 9), (8, 12), (20, 21), (7, 22), (30, 31)] {
            markdown.supersede(from, to);
        }
        assert_eq!(markdown.superseded, [(3, 5), (7, 22), (30, 31)]);
        let all: Vec<u64> = (1..=31).filter(|seq| !markdown.is_superseded(*seq)).collect();
        assert_eq!(all, [1, 2, 5, 6, 22, 23, 24, 25, 26, 27, 28, 29, 31]);
    }

    #[test]
    fn code_with_fences_is_fenced_by_longer_ones() {
        assert_eq!(fence("a", "json"), "```json\na\n```");
        assert_eq!(fence("a\n````\nb", ""), "`````\na\n````\nb\n`````");
    }
}
