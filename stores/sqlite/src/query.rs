//! Queries about one conversation or all of them.

use std::sync::Arc;

use everturn_ports::{
    Cursor, Head, Page, Room, Stored, StoredEvent, Take, Unsealed, Version, Wait, Window, kernel::Millis,
};
use everturn_store_rows::{self as rows, CHUNK, Ids, Kept, Malformed, RUN, SEAL, integer};
use everturn_wire::{CallerName, ConversationId, StoredChunk, TurnMetrics};
use rusqlite::{Connection, Error, OptionalExtension as _, Result, Row, params, types::Type};

use crate::record::{self, HEAD, RUNNING, TURN, count};

pub(crate) fn load(connection: &Connection, id: &ConversationId) -> Result<Option<Stored>> {
    let sql =
        format!("SELECT conversation.version, {HEAD}, {TURN} FROM conversation {RUNNING} WHERE id = ?1");
    let stored = |row: &Row<'_>| {
        let Some(head) = record::head(row, 1)? else { return Ok(None) };
        Ok(Some(Stored { version: Version(count(row, 0)?), head, turn: record::turn(row, 9)?, owner: None }))
    };
    connection.prepare_cached(&sql)?.query_row([id.as_str()], stored).optional().map(Option::flatten)
}

pub(crate) fn chunks(
    connection: &Connection,
    id: &ConversationId,
    window: Window,
) -> Result<Vec<Arc<StoredChunk>>> {
    let sql = "SELECT place, role, text, supersedes FROM entry
        WHERE conversation = (SELECT key FROM conversation WHERE id = ?1) AND kind = ?5 AND place > ?2 AND place < ?3 ";
    let order = match window.take {
        Take::Newest => "ORDER BY place DESC LIMIT ?4",
        Take::Oldest => "ORDER BY place LIMIT ?4",
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
    let found = statement.query_map(params![id.as_str(), since, before, limit, CHUNK], chunk)?;
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
    let sql = "SELECT begins, text, conversation FROM entry
        WHERE conversation = (SELECT key FROM conversation WHERE id = ?1) AND kind = ?2 AND place > ?3 ORDER BY place";
    let (mut events, mut chunk, ids) = (Vec::new(), None, Ids::of(id));
    let mut statement = connection.prepare_cached(sql)?;
    let mut runs = statement.query(params![id.as_str(), RUN, integer(after.value())])?;
    while events.len() < limit
        && let Some(row) = runs.next()?
    {
        let run = rows::events(Cursor::from_value(count(row, 0)?), row.get_ref(1)?.as_bytes()?);
        for kept in run {
            let kept = kept.map_err(damaged)?;
            if kept.end > after && events.len() < limit {
                events.push(whole(connection, row.get(2)?, &kept, &ids, &mut chunk)?);
            }
        }
    }
    Ok(events)
}

/// An event of a run, completed with the text that it shares with a chunk. `known`: the chunk that was looked up last.
fn whole(
    connection: &Connection,
    conversation: i64,
    kept: &Kept<'_>,
    ids: &Ids,
    known: &mut Option<(u64, Vec<u8>)>,
) -> Result<StoredEvent> {
    if let Some(seq) = kept.refers_to()
        && known.as_ref().is_none_or(|known| known.0 != seq)
    {
        let sql = "SELECT text FROM entry WHERE conversation = ?1 AND kind = ?2 AND place = ?3";
        let columns = params![conversation, CHUNK, integer(seq)];
        let json = |row: &Row<'_>| Ok(row.get_ref(0)?.as_bytes()?.to_vec());
        let chunk = connection.prepare_cached(sql)?.query_row(columns, json).optional()?;
        *known = Some((seq, chunk.ok_or_else(|| damaged(Malformed))?));
    }
    let chunk = known.as_ref().map_or(&[][..], |known| &known.1);
    kept.event(ids, chunk).ok_or_else(|| damaged(Malformed))
}

fn damaged(malformed: Malformed) -> Error {
    Error::FromSqlConversionFailure(1, Type::Text, malformed.into())
}

pub(crate) fn metrics(connection: &Connection, id: &ConversationId) -> Result<Vec<TurnMetrics>> {
    let sql = "SELECT text FROM entry
        WHERE conversation = (SELECT key FROM conversation WHERE id = ?1) AND kind = ?2 ORDER BY place";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_map(params![id.as_str(), SEAL], |row| record::from_json(row, 0))?.collect()
}

/// Returns the query for a page of the list: of one caller, or of all.
pub(crate) fn list_sql(of_caller: bool) -> String {
    // In this form, the index of callers' conversations leads to those of one.
    let of_caller = match of_caller {
        true => "AND id GLOB '*@*' AND substr(id, instr(id, '@') + 1) = ?4",
        false => "AND ?4 IS NULL",
    };
    format!(
        "SELECT id, {HEAD} FROM conversation WHERE created_at IS NOT NULL AND id NOT GLOB 'ephemeral:*' {of_caller}
            AND (?1 IS NULL OR last_activity_at < ?1 OR (last_activity_at = ?1 AND id > ?2))
        ORDER BY last_activity_at DESC, id LIMIT ?3"
    )
}

pub(crate) fn conversations(connection: &Connection, page: &Page) -> Result<Vec<(ConversationId, Head)>> {
    let sql = list_sql(page.caller.is_some());
    let after = page.after.as_ref();
    let at = after.map(|after| integer(after.last_activity_at.0));
    let id_after = after.map(|after| after.id.as_str());
    let limit = page.limit.map_or(i64::MAX, |limit| integer(limit as u64));
    let caller = page.caller.as_ref().map(CallerName::as_str);
    let listed = |row: &Row<'_>| {
        let head = record::head(row, 1)?;
        Ok((id(row)?, head))
    };
    let mut statement = connection.prepare_cached(&sql)?;
    let with_head = |found: Result<(ConversationId, Option<Head>)>| {
        found.map(|(id, head)| head.map(|head| (id, head))).transpose()
    };
    statement.query_map(params![at, id_after, limit, caller], listed)?.filter_map(with_head).collect()
}

pub(crate) fn unsealed(connection: &Connection, before: Millis) -> Result<Vec<Unsealed>> {
    let Some(last) = before.0.checked_sub(1) else { return Ok(Vec::new()) };
    // Running turns resume immediately, before any waiting turn.
    let sql = "SELECT id FROM running JOIN conversation ON key = conversation AND conversation.version = running.version
        ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let running = statement.query_map([], |row| Ok(Unsealed::new(id(row)?, Wait::Now)))?;
    let mut unsealed = running.collect::<Result<Vec<_>>>()?;
    let sql = "SELECT id, wake_at, wait_ms, for_person FROM conversation INDEXED BY waiting
        WHERE wake_at IS NOT NULL AND wake_at <= ?1 ORDER BY wake_at, id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut waiting = statement.query([integer(last)])?;
    while let Some(row) = waiting.next()? {
        unsealed.push(Unsealed::new(id(row)?, record::wait(row, 1)?));
    }
    Ok(unsealed)
}

fn id(row: &Row<'_>) -> Result<ConversationId> {
    Ok(ConversationId::from(row.get_ref(0)?.as_str()?))
}
