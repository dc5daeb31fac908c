//! A connection to the database.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{task::JoinHandle, time::timeout};
use tokio_postgres::{Client, Error, Row, SimpleQueryMessage, Statement, types::ToSql};

use crate::error::Failure;

/// How much longer than for other answers the database may work on a statement: a long list takes its time.
pub(crate) const LONG: u32 = 6;

/// What statements are given as parameters.
pub(crate) type Parameters<'p> = &'p [&'p (dyn ToSql + Sync)];

/// A connection.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    driver: JoinHandle<()>,
    statements: Mutex<HashMap<&'static str, Statement>>,
    answer_within: Duration,
}

impl Session {
    pub(crate) fn new(client: Client, driver: JoinHandle<()>, answer_within: Duration) -> Self {
        Self { client, driver, statements: Mutex::default(), answer_within }
    }

    /// Prepares a new connection.
    pub(crate) async fn set_up(&self, sql: &str) -> Result<(), Error> {
        self.client.batch_execute(sql).await
    }

    /// Runs a statement. It is committed when this returns: the answer is read up to the database's readiness for the next
    /// statement, which follows the commit.
    pub(crate) async fn query(
        &self,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, Failure> {
        self.query_within(self.answer_within, sql, parameters).await
    }

    /// Runs a statement that reads of all conversations.
    pub(crate) async fn query_all(
        &self,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, Failure> {
        self.query_within(self.answer_within * LONG, sql, parameters).await
    }

    /// Runs a statement that sends this many bytes.
    pub(crate) async fn query_large(
        &self,
        sql: &'static str,
        parameters: Parameters<'_>,
        bytes: usize,
    ) -> Result<Vec<Row>, Failure> {
        // At least 1 MiB per second.
        let time = self.answer_within + Duration::from_secs(bytes as u64 >> 20);
        self.query_within(time, sql, parameters).await
    }

    async fn query_within(
        &self,
        time: Duration,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, Failure> {
        let work = async {
            let statement = self.prepared(sql).await?;
            self.client.query(&statement, parameters).await
        };
        self.within(time, work).await
    }

    async fn within<T>(
        &self,
        time: Duration,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        match timeout(time, work).await {
            Ok(answer) => Ok(answer?),
            Err(_) => {
                // Its answer may come when nobody expects it any more.
                self.driver.abort();
                Err(Failure::Lost(format!("no answer for {:.1} s", time.as_secs_f32())))
            }
        }
    }

    /// Runs statements without parameters.
    pub(crate) async fn execute(&self, sql: &str) -> Result<(), Failure> {
        self.within(self.answer_within, self.client.batch_execute(sql)).await
    }

    /// Returns the name of the database's process that serves it now.
    pub(crate) async fn process(&self) -> Result<Option<String>, Failure> {
        self.unprepared("SELECT pg_backend_pid()").await
    }

    /// Returns the number of the server's timeline; 0 = it does not say.
    pub(crate) async fn timeline(&self) -> Result<u32, Failure> {
        let sql = "SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_walfile_name(pg_current_wal_lsn()) END";
        match self.unprepared(sql).await {
            // It begins with the timeline.
            Ok(file) => {
                Ok(file.and_then(|file| u32::from_str_radix(file.get(..8)?, 16).ok()).unwrap_or_default())
            }
            Err(lost @ Failure::Lost(_)) => Err(lost),
            // A service that does not let its users ask.
            Err(_) => Ok(0),
        }
    }

    /// Returns one value, without preparing a statement.
    async fn unprepared(&self, sql: &str) -> Result<Option<String>, Failure> {
        let messages = self.within(self.answer_within, self.client.simple_query(sql)).await?;
        Ok(messages.into_iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        }))
    }

    async fn prepared(&self, sql: &'static str) -> Result<Statement, Error> {
        let known = self.statements().get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements().insert(sql, statement.clone());
        Ok(statement)
    }

    fn statements(&self) -> std::sync::MutexGuard<'_, HashMap<&'static str, Statement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is over.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Waits until it is over.
    pub(crate) async fn closed(&mut self) {
        let _ = (&mut self.driver).await;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Otherwise it would wait for an answer that nobody wants any more.
        self.driver.abort();
    }
}
