//! Deletes the events of old turns, and entire conversations.

use std::sync::atomic::{AtomicU64, Ordering};

use everturn_ports::{JournalError, Retention, kernel::Millis};
use everturn_store_rows::{RUN, SEAL, integer};
use everturn_wire::ConversationId;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::{SqliteJournal, journal::tidy, record::count};

/// Number of conversations visited, and of events deleted, per transaction, so that appends do not wait long.
const CONVERSATIONS: i64 = 64;
const EVENTS: usize = 4096;

impl SqliteJournal {
    /// Deletes events of sealed turns. The space is reused, or given back when it is worth it.
    pub(crate) async fn drop_old_events(&self, retention: Retention) -> Result<usize, JournalError> {
        let (mut dropped, mut next) = (0, Some(0));
        while let Some(after) = next {
            let part;
            (part, next) = self.alone(move |connection| drop_some(connection, retention, after)).await?;
            dropped += part;
        }
        Ok(dropped)
    }

    /// Removes the ephemeral conversations that have been idle since this moment.
    pub(crate) async fn remove_ephemeral(
        &self,
        idle_since: Millis,
    ) -> Result<Vec<ConversationId>, JournalError> {
        let mut all = Vec::new();
        loop {
            let removed = self.removed();
            match self.alone(move |connection| drop_ephemeral(connection, idle_since, &removed)).await? {
                some if some.is_empty() => return Ok(all),
                some => all.extend(some),
            }
        }
    }

    /// Deletes a conversation with its documents; returns false if there is none with this id. Further appends to it
    /// fail as stale.
    ///
    /// # Errors
    /// When the storage fails; then nothing is deleted.
    pub async fn delete(&self, id: &ConversationId) -> Result<bool, JournalError> {
        let (id, removed) = (id.clone(), self.removed());
        self.alone(move |connection| delete(connection, &id, &removed)).await
    }
}

/// Removes a batch of the ephemeral conversations that have no unsealed turn and were last active before this moment;
/// returns which.
fn drop_ephemeral(
    connection: &mut Connection,
    idle_since: Millis,
    removed: &AtomicU64,
) -> rusqlite::Result<Vec<ConversationId>> {
    let sql =
        "SELECT id FROM conversation WHERE id >= ?1 AND id < ?2 AND turn IS NULL AND last_activity_at < ?3
        AND NOT EXISTS (SELECT 1 FROM running WHERE conversation = key AND running.version = conversation.version) LIMIT ?4";
    // `;` is the character after `:`.
    let (from, to) = (ConversationId::EPHEMERAL, ConversationId::EPHEMERAL.replace(':', ";"));
    let columns = params![from, to, integer(idle_since.0), CONVERSATIONS];
    let ids: Vec<ConversationId> = connection
        .prepare_cached(sql)?
        .query_map(columns, |row| row.get(0).map(String::into))?
        .collect::<rusqlite::Result<_>>()?;
    for id in &ids {
        delete(connection, id, removed)?;
    }
    Ok(ids)
}

/// Visits one batch of the conversations after the key `after`. Returns the number of deleted events, and the last
/// finished key unless all conversations are done.
fn drop_some(
    connection: &mut Connection,
    retention: Retention,
    after: i64,
) -> rusqlite::Result<(usize, Option<i64>)> {
    let transaction = connection.transaction()?;
    let keys: Vec<i64> = transaction
        .prepare_cached("SELECT key FROM conversation WHERE key > ?1 ORDER BY key LIMIT ?2")?
        .query_map([after, CONVERSATIONS], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let (mut dropped, mut done) = (0, None);
    for key in keys {
        dropped += drop_events(&transaction, retention, key, EVENTS - dropped)?;
        if dropped >= EVENTS {
            // This conversation may have more events to delete.
            done = done.or(Some(after));
            break;
        }
        done = Some(key);
    }
    transaction.commit()?;
    Ok((dropped, done))
}

/// Deletes the oldest events that a conversation need not keep, until `most` are deleted. Returns their number.
fn drop_events(on: &Connection, retention: Retention, key: i64, most: usize) -> rusqlite::Result<usize> {
    let sql = "SELECT ends FROM entry WHERE conversation = ?1 AND kind = ?2 AND (sealed_at < ?3 OR place <=
            (SELECT max(place) FROM entry WHERE conversation = ?1 AND kind = ?2) - ?4)
        ORDER BY place DESC LIMIT 1";
    let sealed_before = retention.sealed_before.map(|before| integer(before.0));
    let columns = params![key, SEAL, sealed_before, retention.newest_turns];
    let last: Option<i64> = on.prepare_cached(sql)?.query_row(columns, |row| row.get(0)).optional()?;
    let Some(last) = last else { return Ok(0) };
    let sql =
        "SELECT key, events FROM entry WHERE conversation = ?1 AND kind = ?2 AND place <= ?3 ORDER BY place";
    let mut statement = on.prepare_cached(sql)?;
    let mut runs = statement.query(params![key, RUN, last])?;
    let (mut dropped, mut keys) = (0, Vec::new());
    while dropped < most
        && let Some(row) = runs.next()?
    {
        dropped += usize::try_from(count(row, 1)?).unwrap_or_default();
        keys.push(row.get::<_, i64>(0)?);
    }
    for key in keys {
        on.prepare_cached("DELETE FROM entry WHERE key = ?1")?.execute([key])?;
    }
    Ok(dropped)
}

fn delete(connection: &mut Connection, id: &ConversationId, removed: &AtomicU64) -> rusqlite::Result<bool> {
    let transaction = connection.transaction()?;
    let sql = "DELETE FROM conversation WHERE id = ?1 RETURNING key, version";
    let columns = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, count(row, 1)?));
    let found = transaction.query_row(sql, [id.as_str()], columns).optional()?;
    if let Some((key, version)) = found {
        removed.fetch_max(version, Ordering::Relaxed);
        for table in ["entry", "running"] {
            transaction.execute(&format!("DELETE FROM {table} WHERE conversation = ?1"), [key])?;
        }
        // `0` is the character after `/`; ids contain neither.
        let (from, to) = (format!("conversation/{id}/"), format!("conversation/{id}0"));
        transaction.execute("DELETE FROM state WHERE name >= ?1 AND name < ?2", [from, to])?;
        // Its turns may have had instructions and tools of their own.
        tidy(&transaction)?;
    }
    transaction.commit()?;
    Ok(found.is_some())
}
