//! The conversations of a running server, as it tells of them.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use everturn_orchestrator::{Cursor, Head, Window, kernel::Millis};
use everturn_wire::{
    ConversationId, ConversationList, ConversationState, ConversationSummary, HistoryWindow, StoredChunk,
};

use crate::remote::Remote;

/// Maximum number of pages; our server returns 500 conversations per page.
const PAGES: usize = 2000;

/// All conversations, the latest first.
pub(super) async fn conversations(remote: &Remote<'_>) -> Result<Vec<ConversationSummary>> {
    let (mut all, mut next) = (ConversationList::new(), Some("/conversations".to_owned()));
    for _ in 0..PAGES {
        let Some(path) = next.take() else { return Ok(all) };
        let mut answer = remote.get(&path).await?.context("the server has no list of conversations")?;
        next = answer.next.take();
        all.extend(answer.read::<ConversationList>()?);
    }
    bail!("the server has too many conversations")
}

/// What the server's list says of a conversation; the rest is unknown.
pub(super) fn head(found: ConversationSummary) -> (ConversationId, Head) {
    let head = Head {
        created_at: Millis(found.created_at),
        last_activity_at: Millis(found.last_activity_at),
        title: found.title,
        status: found.status,
        end_reason: found.end_reason,
        model: found.model,
        end: Cursor::default(),
        last_seq: 0,
    };
    (found.id, head)
}

/// The `seq` of its last chunk; `None` if it was deleted.
pub(super) async fn last_seq(remote: &Remote<'_>, id: &ConversationId) -> Result<Option<u64>> {
    let answer = remote.get(&format!("/conversations/{id}?limit=1")).await?;
    answer.map(|answer| Ok(answer.read::<HistoryWindow>()?.latest_seq)).transpose()
}

/// What its turn does; `None` if none runs.
pub(super) async fn state(remote: &Remote<'_>, id: &ConversationId) -> Result<Option<ConversationState>> {
    let Some(answer) = remote.get(&format!("/conversations/{id}/status")).await? else { return Ok(None) };
    Ok(Some(answer.read::<ConversationState>()?).filter(|state| state.is_active))
}

/// The chunks of a window. The server may need several answers for them.
pub(super) async fn chunks(
    remote: &Remote<'_>,
    id: &ConversationId,
    window: Window,
) -> Result<Vec<Arc<StoredChunk>>> {
    let (mut all, mut since) = (Vec::new(), window.since_seq.unwrap_or_default());
    let before = window.before_seq.map(|before| format!("&beforeSeq={before}")).unwrap_or_default();
    loop {
        let path = format!("/conversations/{id}?sinceSeq={since}{before}");
        let answer = remote.get(&path).await?.context("it was deleted just now")?;
        let part: HistoryWindow = answer.read()?;
        let has_more = part.more == Some(true) && !part.chunks.is_empty();
        since = part.latest_seq;
        all.extend(part.chunks.into_iter().map(Arc::new));
        if !has_more {
            return Ok(all);
        }
    }
}
