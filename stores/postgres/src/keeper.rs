//! Ensures that each journal is used by one server only.
//!
//! Who opens a journal takes an advisory lock, which ends with its connection, and raises the epoch in the table `format`.
//! Every write names its epoch. So if the connection with the lock breaks and another server takes the lock, the first
//! one cannot write any more.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use tokio::{
    task::JoinHandle,
    time::{Duration, Instant, sleep},
};

use crate::{
    OpenError, Options,
    error::Failure,
    pooler, schema,
    session::Session,
    target::{PAUSE, Target},
};

/// "EvTn": tells our locks from those of other programs.
const CLASS: i64 = 0x4576_546e;

/// Pause between attempts to take the lock again.
const AGAIN: Duration = Duration::from_secs(1);

/// Holds the lock as long as possible. Dropping it gives the lock back.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) epoch: i64,
    /// The highest version that appends of this process expected.
    expected: AtomicI64,
    /// The highest version that a conversation which was deleted may have had.
    removed: AtomicI64,
    task: JoinHandle<()>,
}

impl Keeper {
    /// Takes the lock, brings the tables up to date and begins an epoch.
    pub(crate) async fn take(target: &Arc<Target>, options: &Options) -> Result<Self, OpenError> {
        let place = &target.place;
        let session = target.connect_within(options.connect_within).await?;
        pooler::refuse(&session, target, options.connect_within).await?;
        schema::check(&session, place).await?;
        let error = |failure: Failure| schema::failed(place, &failure);
        let until = Instant::now() + options.lock_within;
        while !lock(&session, &place.schema).await.map_err(error)? {
            if Instant::now() >= until {
                let by = holder(&session, &place.schema).await.map_err(error)?;
                return Err(OpenError::InUse { place: place.clone(), by });
            }
            sleep(PAUSE).await;
        }
        schema::migrate(&session, place).await?;
        let sql = "UPDATE format SET epoch = epoch + 1 RETURNING epoch";
        let rows = session.query(sql, &[]).await.map_err(error)?;
        let epoch = rows.first().map(|row| row.get(0));
        let epoch = epoch.ok_or_else(|| OpenError::Foreign { place: place.clone() })?;
        Ok(Self {
            epoch,
            expected: AtomicI64::default(),
            removed: AtomicI64::default(),
            task: tokio::spawn(keep(session, target.clone(), epoch)),
        })
    }
}

impl Keeper {
    /// Notes that an append expects this version.
    pub(crate) fn expects(&self, version: i64) {
        self.expected.fetch_max(version, Ordering::Relaxed);
    }

    /// Notes that a conversation is deleted, which had this version; `None` = it is not known.
    pub(crate) fn removes(&self, version: Option<i64>) {
        let version = version.unwrap_or_else(|| self.expected.load(Ordering::Relaxed) + 1);
        self.removed.fetch_max(version, Ordering::Relaxed);
    }

    /// Returns the first version of conversations that begin now: none that a late append to a deleted one may expect.
    pub(crate) fn first_version(&self) -> i64 {
        self.removed.load(Ordering::Relaxed) + 1
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Takes the lock again whenever its connection is lost, until another server has used the database.
async fn keep(mut session: Session, target: Arc<Target>, epoch: i64) {
    let place = &target.place;
    loop {
        session.closed().await;
        tracing::warn!("lost a connection to {place}; connecting again");
        session = loop {
            sleep(AGAIN).await;
            let Ok(fresh) = target.connect_once().await else { continue };
            match take_again(&fresh, &place.schema, epoch).await {
                Ok(true) => break fresh,
                Ok(false) | Err(Failure::Lost(_) | Failure::Busy(_)) => {}
                Err(failure) => {
                    tracing::error!("cannot write to {place} any more: {}", failure.text());
                    return;
                }
            }
        };
        tracing::info!("connected to {place} again");
    }
}

async fn take_again(session: &Session, schema: &str, epoch: i64) -> Result<bool, Failure> {
    let is_held = lock(session, schema).await?;
    let rows = session.query("SELECT epoch FROM format", &[]).await?;
    match rows.first().map(|row| row.get::<_, i64>(0)) {
        Some(current) if current == epoch => Ok(is_held),
        _ => Err(Failure::Replaced),
    }
}

async fn lock(session: &Session, schema: &str) -> Result<bool, Failure> {
    let rows = session.query("SELECT pg_try_advisory_lock($1)", &[&key(schema)]).await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

/// Says who has the lock.
async fn holder(session: &Session, schema: &str) -> Result<String, Failure> {
    let sql = "SELECT 'connected from ' || coalesce(host(client_addr), 'this machine') || ' since '
            || to_char(backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC, Postgres process ' || pid
        FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE locktype = 'advisory' AND granted AND objsubid = 1
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND classid = ($1::bigint >> 32)::oid AND objid = ($1::bigint & 4294967295)::oid";
    let rows = session.query(sql, &[&key(schema)]).await?;
    let found = rows.first().and_then(|row| row.get::<_, Option<String>>(0));
    Ok(found.unwrap_or_else(|| "it has just gone".to_owned()))
}

/// Returns the lock's key: the class, and a hash (FNV-1a) of the schema.
fn key(schema: &str) -> i64 {
    let hash =
        schema.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    CLASS << 32 | i64::from(hash)
}
