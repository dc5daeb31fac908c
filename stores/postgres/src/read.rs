//! Queries about one conversation or all of them.

use std::{collections::HashMap, sync::Arc};

use everturn_ports::{
    Cursor, Head, Page, Room, Stored, StoredEvent, Take, Unsealed, Version, Window, kernel::Millis,
};
use everturn_store_rows::{CHUNK, Ids, RUN, SEAL, chunk, events as run_events, integer, role};
use everturn_wire::{CallerName, ConversationId, StoredChunk, TurnMetrics};
use tokio_postgres::Row;

use crate::{
    error::Failure,
    record::{self, count, get, optional_count},
    session::Session,
};

/// Number of chunks, and of runs of events, per request: a reader who needs few must not receive all, and each answer has to
/// arrive in time.
const CHUNKS: i64 = 64;

/// Number of chunks per request of a reader who needs all, up to [`BYTES`]: each request takes a round trip.
const ALL_CHUNKS: i64 = 4_096;
const RUNS: i64 = 8;

/// Number of bytes after which an answer has no further chunk.
const BYTES: i64 = 1 << 20;

pub(crate) async fn load(session: &Session, id: &ConversationId) -> Result<Option<Stored>, Failure> {
    let sql =
        "SELECT version, created_at, last_activity_at, title, status, end_reason, model, ends, last_seq,
            turn, turn_begins, turn_seq, definition.json, wake_at, wait_ms, for_person
        FROM conversation LEFT JOIN definition ON definition.key = conversation.definition WHERE id = $1";
    let rows = session.query(sql, &[&id.as_str()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (version, head) = (Version(count(row, 0)?), record::head(row, 1)?);
    Ok(Some(Stored { version, head, turn: record::turn(row, 9)?, owner: None }))
}

pub(crate) async fn chunks(
    session: &Session,
    id: &ConversationId,
    window: Window,
) -> Result<Vec<Arc<StoredChunk>>, Failure> {
    let sql = match window.take {
        Take::Newest => {
            "SELECT place, role, text, supersedes FROM (
                SELECT *, sum(octet_length(text)) OVER (ORDER BY place DESC) - octet_length(text) AS before FROM (
                    SELECT place, role, text, supersedes FROM entry
                    WHERE conversation = (SELECT key FROM conversation WHERE id = $1) AND kind = $2
                        AND place > $3 AND place < $4 ORDER BY place DESC LIMIT $5) AS page
            ) AS page WHERE before < $6 ORDER BY place DESC"
        }
        Take::Oldest => {
            "SELECT place, role, text, supersedes FROM (
                SELECT *, sum(octet_length(text)) OVER (ORDER BY place) - octet_length(text) AS before FROM (
                    SELECT place, role, text, supersedes FROM entry
                    WHERE conversation = (SELECT key FROM conversation WHERE id = $1) AND kind = $2
                        AND place > $3 AND place < $4 ORDER BY place LIMIT $5) AS page
            ) AS page WHERE before < $6 ORDER BY place"
        }
    };
    let mut since = integer(window.since_seq.unwrap_or(0));
    let mut before = integer(window.before_seq.unwrap_or(u64::MAX));
    let limit = window.limit.unwrap_or(usize::MAX);
    let most = if window.max_bytes.is_some() { CHUNKS } else { ALL_CHUNKS };
    let (mut room, mut chunks) = (Room::new(window.max_bytes), Vec::new());
    'all: while chunks.len() < limit {
        let page = most.min(integer((limit - chunks.len()) as u64));
        let rows = session.query(sql, &[&id.as_str(), &CHUNK, &since, &before, &page, &BYTES]).await?;
        let mut bytes = 0;
        for row in &rows {
            let length = get::<&str>(row, 2)?.len();
            if !room.has(length) {
                break 'all;
            }
            bytes += length as u64;
            chunks.push(Arc::new(stored_chunk(row)?));
        }
        let has_more = integer(rows.len() as u64) == page || integer(bytes) >= BYTES;
        match (rows.last(), window.take) {
            (Some(last), Take::Newest) if has_more => before = get(last, 0)?,
            (Some(last), Take::Oldest) if has_more => since = get(last, 0)?,
            _ => break,
        }
    }
    if window.take == Take::Newest {
        chunks.reverse();
    }
    Ok(chunks)
}

fn stored_chunk(row: &Row) -> Result<StoredChunk, Failure> {
    let code = i64::from(get::<i16>(row, 1)?);
    let role = role(code).ok_or_else(|| Failure::damaged(format!("role {code}")))?;
    let chunk = chunk(get::<&str>(row, 2)?.as_bytes()).map_err(Failure::damaged)?;
    Ok(StoredChunk { seq: count(row, 0)?, role, chunk: chunk.into(), supersedes: optional_count(row, 3)? })
}

pub(crate) async fn events(
    session: &Session,
    id: &ConversationId,
    after: Cursor,
    limit: usize,
) -> Result<Vec<StoredEvent>, Failure> {
    let sql = "SELECT place, begins, text, conversation FROM entry
        WHERE conversation = (SELECT key FROM conversation WHERE id = $1) AND kind = $2 AND place > $3
        ORDER BY place LIMIT $4";
    let (mut events, mut from, ids) = (Vec::new(), integer(after.value()), Ids::of(id));
    while events.len() < limit {
        let rows = session.query(sql, &[&id.as_str(), &RUN, &from, &RUNS]).await?;
        for row in &rows {
            let begins = Cursor::from_value(count(row, 1)?);
            let kept = run_events(begins, get::<&str>(row, 2)?.as_bytes()).collect::<Result<Vec<_>, _>>();
            let mut kept = kept.map_err(Failure::damaged)?;
            kept.retain(|kept| kept.end > after);
            kept.truncate(limit - events.len());
            let mut named: Vec<i64> = kept.iter().filter_map(|kept| kept.refers_to().map(integer)).collect();
            named.dedup();
            let chunks = texts(session, get(row, 3)?, &named).await?;
            for kept in kept {
                let chunk = kept.refers_to().map_or(Some(""), |seq| chunks.get(&seq).map(String::as_str));
                let event = chunk.and_then(|chunk| kept.event(&ids, chunk.as_bytes()));
                events.push(event.ok_or_else(|| Failure::damaged("an event without its chunk"))?);
            }
        }
        match rows.last() {
            Some(last) if integer(rows.len() as u64) == RUNS => from = get(last, 0)?,
            _ => break,
        }
    }
    Ok(events)
}

/// Returns the JSON of chunks, which events refer to.
async fn texts(session: &Session, conversation: i64, seqs: &[i64]) -> Result<HashMap<u64, String>, Failure> {
    if seqs.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = "SELECT place, text FROM entry WHERE conversation = $1 AND kind = $2 AND place = ANY($3)";
    let rows = session.query(sql, &[&conversation, &CHUNK, &seqs]).await?;
    rows.iter().map(|row| Ok((count(row, 0)?, get(row, 1)?))).collect()
}

pub(crate) async fn metrics(session: &Session, id: &ConversationId) -> Result<Vec<TurnMetrics>, Failure> {
    let sql = "SELECT text FROM entry
        WHERE conversation = (SELECT key FROM conversation WHERE id = $1) AND kind = $2 ORDER BY place";
    let rows = session.query(sql, &[&id.as_str(), &SEAL]).await?;
    rows.iter().map(|row| record::json(row, 0)).collect()
}

pub(crate) async fn conversations(
    session: &Session,
    page: &Page,
) -> Result<Vec<(ConversationId, Head)>, Failure> {
    // In this form, the index leads to the first row of the page.
    let sql = match page.caller {
        None => {
            "SELECT id, created_at, last_activity_at, title, status, end_reason, model, ends, last_seq
            FROM conversation WHERE id NOT LIKE 'ephemeral:%' AND last_activity_at <= $1
                AND (last_activity_at < $1 OR id > $2)
            ORDER BY last_activity_at DESC, id LIMIT $3"
        }
        // The same for the index of callers' conversations.
        Some(_) => {
            "SELECT id, created_at, last_activity_at, title, status, end_reason, model, ends, last_seq
            FROM conversation WHERE id NOT LIKE 'ephemeral:%' AND last_activity_at <= $1
                AND (last_activity_at < $1 OR id > $2) AND id LIKE '%@%' AND split_part(id, '@', 2) = $4
            ORDER BY last_activity_at DESC, id LIMIT $3"
        }
    };
    let after = page.after.as_ref();
    let at = after.map_or(i64::MAX, |after| integer(after.last_activity_at.0));
    let id_after = after.map_or("", |after| after.id.as_str());
    let limit = page.limit.map_or(i64::MAX, |limit| integer(limit as u64));
    let rows = match page.caller.as_ref().map(CallerName::as_str) {
        None => session.query_all(sql, &[&at, &id_after, &limit]).await?,
        Some(caller) => session.query_all(sql, &[&at, &id_after, &limit, &caller]).await?,
    };
    rows.iter().map(|row| Ok((id(row)?, record::head(row, 1)?))).collect()
}

pub(crate) async fn unsealed(session: &Session, before: Millis) -> Result<Vec<Unsealed>, Failure> {
    let Some(last) = before.0.checked_sub(1) else { return Ok(Vec::new()) };
    // Answered from the index alone, in its order: running turns come first.
    let sql = "SELECT id, wake_at, wait_ms, for_person FROM conversation
        WHERE turn IS NOT NULL AND (wake_at <= $1 OR (wake_at IS NULL AND NOT for_person))
        ORDER BY wake_at NULLS FIRST, id";
    let rows = session.query_all(sql, &[&integer(last)]).await?;
    rows.iter().map(|row| Ok(Unsealed::new(id(row)?, record::wait(row, 1)?))).collect()
}

fn id(row: &Row) -> Result<ConversationId, Failure> {
    Ok(ConversationId::from(get::<&str>(row, 0)?))
}
