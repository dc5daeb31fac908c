//! What is read, of one conversation and of all.

use std::sync::Arc;

use bytes::Bytes;
use everturn_orchestrator::{
    Cursor, Head, Page, Room, Stored, StoredEvent, Take, Version, Wait, Window, kernel::Millis,
};
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};
use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};

use crate::record::{self, HEAD, TURN, count, integer};

pub(crate) fn load(connection: &Connection, id: &ConversationId) -> Result<Option<Stored>> {
    let sql = format!("SELECT version, {HEAD}, {TURN} FROM conversation WHERE id = ?1");
    let stored = |row: &Row<'_>| {
        let Some(head) = record::head(row, 1)? else { return Ok(None) };
        Ok(Some(Stored { version: Version(count(row, 0)?), head, turn: record::turn(row, 8)? }))
    };
    connection.prepare_cached(&sql)?.query_row([id.as_str()], stored).optional().map(Option::flatten)
}

pub(crate) fn chunks(
    connection: &Connection,
    id: &ConversationId,
    window: Window,
) -> Result<Vec<Arc<StoredChunk>>> {
    let sql = "SELECT seq, role, chunk, supersedes FROM chunk
        WHERE conversation = (SELECT key FROM conversation WHERE id = ?1) AND seq > ?2 AND seq < ?3 ";
    let order = match window.take {
        Take::Newest => "ORDER BY seq DESC LIMIT ?4",
        Take::Oldest => "ORDER BY seq LIMIT ?4",
    };
    let since = integer(window.since_seq.unwrap_or(0));
    let before = integer(window.before_seq.unwrap_or(u64::MAX));
    let limit = window.limit.map_or(i64::MAX, |limit| integer(limit as u64));
    let mut room = Room::new(window.max_bytes);
    let chunk = |row: &Row<'_>| {
        if !room.has(row.get_ref(2)?.as_bytes()?.len()) {
            return Ok(None);
        }
        let (seq, role) = (count(row, 0)?, record::role(row, 1)?);
        let supersedes = record::optional_count(row, 3)?;
        Ok(Some(Arc::new(StoredChunk { seq, role, chunk: record::chunk(row, 2)?.into(), supersedes })))
    };
    let mut statement = connection.prepare_cached(&[sql, order].concat())?;
    let found = statement.query_map(params![id.as_str(), since, before, limit], chunk)?;
    let mut chunks: Vec<_> = found.map_while(Result::transpose).collect::<Result<_>>()?;
    if window.take == Take::Newest {
        chunks.reverse();
    }
    Ok(chunks)
}

pub(crate) fn events(
    connection: &Connection,
    id: &ConversationId,
    after: Cursor,
    limit: usize,
) -> Result<Vec<StoredEvent>> {
    let sql = "SELECT begins, ends, json FROM event
        WHERE conversation = (SELECT key FROM conversation WHERE id = ?1) AND ends > ?2
        ORDER BY ends LIMIT ?3";
    let event = |row: &Row<'_>| {
        Ok(StoredEvent {
            start: Cursor::from_value(count(row, 0)?),
            end: Cursor::from_value(count(row, 1)?),
            json: Bytes::copy_from_slice(row.get_ref(2)?.as_bytes()?),
        })
    };
    let mut statement = connection.prepare_cached(sql)?;
    let found = params![id.as_str(), integer(after.value()), integer(limit as u64)];
    statement.query_map(found, event)?.collect()
}

pub(crate) fn metrics(connection: &Connection, id: &ConversationId) -> Result<Vec<TurnMetrics>> {
    let sql = "SELECT figures FROM sealed
        WHERE conversation = (SELECT key FROM conversation WHERE id = ?1) ORDER BY number";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_map([id.as_str()], |row| record::from_json(row, 0))?.collect()
}

pub(crate) fn conversations(connection: &Connection, page: &Page) -> Result<Vec<(ConversationId, Head)>> {
    let sql = format!(
        "SELECT id, {HEAD} FROM conversation WHERE created_at IS NOT NULL AND id NOT GLOB 'ephemeral:*'
            AND (?1 IS NULL OR last_activity_at < ?1 OR (last_activity_at = ?1 AND id > ?2))
        ORDER BY last_activity_at DESC, id LIMIT ?3"
    );
    let after = page.after.as_ref();
    let at = after.map(|after| integer(after.last_activity_at.0));
    let id_after = after.map(|after| after.id.as_str());
    let limit = page.limit.map_or(i64::MAX, |limit| integer(limit as u64));
    let listed = |row: &Row<'_>| {
        let head = record::head(row, 1)?;
        Ok((id(row)?, head))
    };
    let mut statement = connection.prepare_cached(&sql)?;
    let with_head = |found: Result<(ConversationId, Option<Head>)>| {
        found.map(|(id, head)| head.map(|head| (id, head))).transpose()
    };
    statement.query_map(params![at, id_after, limit], listed)?.filter_map(with_head).collect()
}

pub(crate) fn unsealed(connection: &Connection, before: Millis) -> Result<Vec<(ConversationId, Wait)>> {
    // Nulls come first: a turn that does not wait goes on now. The condition is the index's.
    let sql = "SELECT id, wake_at, wait_ms, for_person FROM conversation INDEXED BY unsealed
        WHERE turn IS NOT NULL AND (for_person = 0 OR wake_at IS NOT NULL) ORDER BY wake_at, id";
    let mut statement = connection.prepare_cached(sql)?;
    let waiting = statement.query_map([], |row| Ok((id(row)?, record::wait(row, 1)?)))?;
    let is_due = |wait: Wait| wait.due_at().is_some_and(|at| at < before);
    waiting
        .take_while(|found: &Result<(_, Wait)>| found.as_ref().map_or(true, |(_, wait)| is_due(*wait)))
        .collect()
}

fn id(row: &Row<'_>) -> Result<ConversationId> {
    Ok(ConversationId::from(row.get_ref(0)?.as_str()?))
}
