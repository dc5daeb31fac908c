//! The statement that writes a group of appends, all of it or nothing.

use std::collections::HashMap;

use everturn_ports::Version;
use everturn_store_rows::integer;

use super::append::{Append, HeadColumns, TurnColumns};
use crate::{
    error::Failure,
    session::{Parameters, Session},
};

/// One statement is one transaction, one round trip and one flush. Each conversation occurs at most once.
const APPEND: &str = "WITH given AS (
    SELECT * FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[],
        $8::smallint[], $9::text[], $10::text[], $11::bigint[], $12::bigint[], $13::text[], $14::bigint[],
        $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::boolean[])
    AS given (id, expected, append, created_at, last_activity_at, title, status, end_reason, model, ends, last_seq,
        turn, turn_begins, turn_seq, definition, wake_at, wait_ms, for_person)
    WHERE EXISTS (SELECT FROM format WHERE epoch = $1)
), moved AS (
    UPDATE conversation AS c SET version = c.version + 1, append = given.append, created_at = given.created_at,
        last_activity_at = given.last_activity_at,
        title = CASE WHEN c.title = '' THEN given.title ELSE c.title END, status = given.status,
        end_reason = given.end_reason, model = given.model, ends = given.ends, last_seq = given.last_seq,
        turn = given.turn, turn_begins = given.turn_begins, turn_seq = given.turn_seq,
        definition = given.definition, wake_at = given.wake_at, wait_ms = given.wait_ms,
        for_person = given.for_person
    FROM given WHERE c.id = given.id AND c.version = given.expected
    RETURNING c.id, c.key, c.version
), born AS (
    INSERT INTO conversation (id, version, append, created_at, last_activity_at, title, status, end_reason, model,
        ends, last_seq, turn, turn_begins, turn_seq, definition, wake_at, wait_ms, for_person)
    SELECT id, $30, append, created_at, last_activity_at, title, status, end_reason, model, ends, last_seq, turn,
        turn_begins, turn_seq, definition, wake_at, wait_ms, for_person FROM given WHERE expected = 0
    ON CONFLICT (id) DO NOTHING RETURNING id, key, version
), done AS (
    SELECT id, key, version FROM moved UNION ALL SELECT id, key, version FROM born
), added AS (
    INSERT INTO entry (conversation, kind, place, begins, events, role, supersedes, sealed_at, ends, text)
    SELECT done.key, e.kind, coalesce(e.place, done.version), e.begins, e.events, e.role, e.supersedes, e.sealed_at,
        CASE WHEN e.kind = 2 THEN coalesce(e.ends,
            (SELECT max(place) FROM entry WHERE conversation = done.key AND kind = 1), 0) END,
        e.text
    FROM unnest($20::text[], $21::smallint[], $22::bigint[], $23::bigint[], $24::bigint[], $25::smallint[],
        $26::bigint[], $27::bigint[], $28::bigint[], $29::text[])
    AS e (id, kind, place, begins, events, role, supersedes, sealed_at, ends, text)
    JOIN done ON done.id = e.id
)
SELECT id, version FROM done";

/// Writes the appends that are at their expected version, and returns their versions by id. `first_version`: of conversations that
/// begin. `definitions`: the key for each append.
pub(super) async fn write(
    session: &Session,
    (epoch, first_version): (i64, i64),
    group: &[Append],
    definitions: &[Option<i64>],
) -> Result<HashMap<String, Version>, Failure> {
    fn head<'a, T>(group: &'a [Append], of: impl Fn(&'a HeadColumns) -> T) -> Vec<T> {
        group.iter().map(|append| of(&append.head)).collect()
    }
    fn turn<'a, T>(group: &'a [Append], of: impl Fn(&'a TurnColumns) -> Option<T>) -> Vec<Option<T>> {
        group.iter().map(|append| append.turn.as_ref().and_then(&of)).collect()
    }
    let ids: Vec<&str> = group.iter().map(|append| append.id.as_str()).collect();
    let expected: Vec<i64> = group.iter().map(|append| integer(append.expected.0)).collect();
    let numbers: Vec<i64> = group.iter().map(|append| append.number).collect();
    let for_person: Vec<bool> =
        group.iter().map(|append| append.turn.as_ref().is_some_and(|turn| turn.for_person)).collect();
    let all = || group.iter().flat_map(|append| &append.added);
    let owners: Vec<&str> =
        group.iter().flat_map(|append| append.added.iter().map(|_| append.id.as_str())).collect();
    let parameters: Parameters<'_> = &[
        &epoch,
        &ids,
        &expected,
        &numbers,
        &head(group, |head| head.created_at),
        &head(group, |head| head.last_activity_at),
        &head(group, |head| head.title.as_str()),
        &head(group, |head| head.status),
        &head(group, |head| head.end_reason.as_deref()),
        &head(group, |head| head.model.as_deref()),
        &head(group, |head| head.ends),
        &head(group, |head| head.last_seq),
        &turn(group, |turn| Some(turn.json.as_str())),
        &turn(group, |turn| Some(turn.begins)),
        &turn(group, |turn| Some(turn.first_seq)),
        &definitions,
        &turn(group, |turn| turn.wake_at),
        &turn(group, |turn| turn.wait_ms),
        &for_person,
        &owners,
        &all().map(|row| row.kind).collect::<Vec<_>>(),
        &all().map(|row| row.place).collect::<Vec<_>>(),
        &all().map(|row| row.begins).collect::<Vec<_>>(),
        &all().map(|row| row.events).collect::<Vec<_>>(),
        &all().map(|row| row.role).collect::<Vec<_>>(),
        &all().map(|row| row.supersedes).collect::<Vec<_>>(),
        &all().map(|row| row.sealed_at).collect::<Vec<_>>(),
        &all().map(|row| row.ends).collect::<Vec<_>>(),
        &all().map(|row| row.text.as_str()).collect::<Vec<_>>(),
        &first_version,
    ];
    let bytes = group.iter().map(|append| append.bytes).sum();
    let rows = session.query_large(APPEND, parameters, bytes).await?;
    rows.iter().map(|row| Ok((row.get(0), version(row.get(1))?))).collect()
}

/// What is stored of a conversation.
pub(super) struct Found {
    pub(super) version: Version,
    /// The last append.
    pub(super) number: i64,
}

/// Returns what is stored of these conversations.
pub(super) async fn find(
    session: &Session,
    epoch: i64,
    ids: &[&str],
) -> Result<HashMap<String, Found>, Failure> {
    let sql = "SELECT c.id, c.version, c.append, format.epoch
        FROM format LEFT JOIN conversation AS c ON c.id = ANY($1)";
    let rows = session.query(sql, &[&ids]).await?;
    if rows.first().is_none_or(|row| row.get::<_, i64>(3) != epoch) {
        return Err(Failure::Replaced);
    }
    let found = rows.iter().filter(|row| row.get::<_, Option<&str>>(0).is_some());
    found.map(|row| Ok((row.get(0), Found { version: version(row.get(1))?, number: row.get(2) }))).collect()
}

pub(crate) fn version(stored: i64) -> Result<Version, Failure> {
    u64::try_from(stored).map(Version).map_err(Failure::damaged)
}
