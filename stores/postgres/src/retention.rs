//! Deletes the events of old turns, and expired conversations.

use everturn_ports::{JournalError, Retention, kernel::Millis};
use everturn_store_rows::{RUN, SEAL, integer};
use everturn_wire::ConversationId;
use futures_util::FutureExt as _;

use crate::{
    PostgresJournal,
    error::Failure,
    pool::Kind,
    record::get,
    session::{Parameters, Session},
};

/// Number of conversations visited, and of runs of events deleted, per statement.
const CONVERSATIONS: i64 = 64;
const RUNS: i64 = 1024;

impl PostgresJournal {
    /// Deletes events, batch by batch.
    pub(crate) async fn compact(&self, retention: Retention) -> Result<usize, JournalError> {
        let (mut dropped, mut next) = (0, Some(0));
        while let Some(after) = next {
            let (epoch, part);
            epoch = self.keeper.epoch;
            (part, next) = self
                .pool
                .run(Kind::Write, move |session| {
                    async move { compact(&session, epoch, retention, after).await }.boxed()
                })
                .await?;
            dropped += part;
        }
        Ok(dropped)
    }

    /// Removes the ephemeral conversations that have been idle since this moment, and definitions that only their turns used.
    pub(crate) async fn remove_ephemeral(
        &self,
        idle_since: Millis,
    ) -> Result<Vec<ConversationId>, JournalError> {
        let mut removed = Vec::new();
        loop {
            let (epoch, definitions) = (self.keeper.epoch, self.definitions.clone());
            let part = self.pool.run(Kind::Write, move |session| {
                let definitions = definitions.clone();
                async move {
                    let part = drop_ephemeral(&session, epoch, idle_since).await?;
                    if !part.is_empty() {
                        definitions.tidy(&session, epoch).await?;
                    }
                    Ok(part)
                }
                .boxed()
            });
            match part.await? {
                some if some.is_empty() => return Ok(removed),
                some => removed.extend(some),
            }
        }
    }
}

/// Compacts one batch of the conversations after the key `after`. Returns the number of deleted events, and the key to
/// continue after, unless all conversations are done.
async fn compact(
    session: &Session,
    epoch: i64,
    retention: Retention,
    after: i64,
) -> Result<(usize, Option<i64>), Failure> {
    let sql = "WITH batch AS (
            SELECT key FROM conversation WHERE key > $1 AND EXISTS (SELECT FROM format WHERE epoch = $8)
            ORDER BY key LIMIT $2
        ), last AS (
            SELECT key, greatest(
                (SELECT max(ends) FROM entry WHERE conversation = key AND kind = $3 AND sealed_at < $4),
                CASE WHEN $5::bigint IS NOT NULL THEN (SELECT ends FROM entry
                    WHERE conversation = key AND kind = $3 ORDER BY place DESC OFFSET $5 LIMIT 1) END) AS ends
            FROM batch
        ), old AS (
            SELECT conversation, place FROM last JOIN entry ON conversation = key AND kind = $6 AND place <= last.ends
            LIMIT $7
        ), gone AS (
            DELETE FROM entry USING old
            WHERE entry.conversation = old.conversation AND entry.kind = $6 AND entry.place = old.place
            RETURNING events
        )
        SELECT (SELECT count(*) FROM gone), (SELECT sum(events)::bigint FROM gone), (SELECT max(key) FROM batch)";
    let sealed_before = retention.sealed_before.map(|before| integer(before.0));
    let newest = retention.newest_turns.map(i64::from);
    let parameters: Parameters<'_> =
        &[&after, &CONVERSATIONS, &SEAL, &sealed_before, &newest, &RUN, &RUNS, &epoch];
    let rows = session.query_all(sql, parameters).await?;
    let row = rows.first().ok_or_else(|| Failure::damaged("no count"))?;
    let events = get::<Option<i64>>(row, 1)?.unwrap_or_default();
    // These conversations may have more.
    let next = if get::<i64>(row, 0)? == RUNS { Some(after) } else { get(row, 2)? };
    Ok((usize::try_from(events).unwrap_or_default(), next))
}

/// Removes a batch of the ephemeral conversations that have no unsealed turn and were last active before this moment.
/// Those that are being written are left for another time.
async fn drop_ephemeral(
    session: &Session,
    epoch: i64,
    idle_since: Millis,
) -> Result<Vec<ConversationId>, Failure> {
    let sql = "WITH old AS (
            SELECT key FROM conversation
            WHERE id LIKE 'ephemeral:%' AND turn IS NULL AND last_activity_at < $1
                AND EXISTS (SELECT FROM format WHERE epoch = $3)
            LIMIT $2 FOR UPDATE OF conversation SKIP LOCKED
        ), gone AS (
            DELETE FROM conversation USING old WHERE conversation.key = old.key RETURNING conversation.key, id
        ), entries AS (
            DELETE FROM entry USING gone WHERE entry.conversation = gone.key
        ), documents AS (
            DELETE FROM state USING gone
            WHERE name >= 'conversation/' || id || '/' AND name < 'conversation/' || id || '0'
        )
        SELECT id FROM gone";
    let rows = session.query(sql, &[&integer(idle_since.0), &CONVERSATIONS, &epoch]).await?;
    rows.iter().map(|row| get::<&str>(row, 0).map(ConversationId::from)).collect()
}
