//! Documents stored beside the conversations.

use async_trait::async_trait;
use everturn_ports::{JournalError, StateStore};
use futures_util::FutureExt as _;

use crate::{PostgresJournal, error::Failure, pool::Kind, record::get};

#[async_trait]
impl StateStore for PostgresJournal {
    async fn read(&self, name: &str) -> Result<Option<String>, JournalError> {
        let name = name.to_owned();
        self.pool
            .run(Kind::Read, move |session| {
                let name = name.clone();
                async move {
                    let rows = session.query("SELECT json FROM state WHERE name = $1", &[&name]).await?;
                    rows.first().map(|row| get(row, 0)).transpose()
                }
                .boxed()
            })
            .await
    }

    async fn write(&self, name: &str, json: String) -> Result<(), JournalError> {
        let (name, epoch) = (name.to_owned(), self.keeper.epoch);
        self.pool
            .run(Kind::Write, move |session| {
                let (name, json) = (name.clone(), json.clone());
                async move {
                    let sql = "INSERT INTO state SELECT $1, $2 FROM format WHERE epoch = $3
                        ON CONFLICT (name) DO UPDATE SET json = excluded.json RETURNING 1";
                    let rows = session.query(sql, &[&name, &json, &epoch]).await?;
                    if rows.is_empty() { Err(Failure::Replaced) } else { Ok(()) }
                }
                .boxed()
            })
            .await
    }

    async fn delete(&self, name: &str) -> Result<(), JournalError> {
        let (name, epoch) = (name.to_owned(), self.keeper.epoch);
        self.pool
            .run(Kind::Write, move |session| {
                let name = name.clone();
                async move {
                    let sql =
                        "DELETE FROM state WHERE name = $1 AND EXISTS (SELECT FROM format WHERE epoch = $2)";
                    session.query(sql, &[&name, &epoch]).await.map(drop)
                }
                .boxed()
            })
            .await
    }
}
