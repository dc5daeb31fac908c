//! Documents stored beside the conversations.

use async_trait::async_trait;
use everturn_ports::{JournalError, StateStore};
use rusqlite::OptionalExtension as _;

use crate::SqliteJournal;

#[async_trait]
impl StateStore for SqliteJournal {
    async fn read(&self, name: &str) -> Result<Option<String>, JournalError> {
        let name = name.to_owned();
        self.read_only(move |connection| {
            let sql = "SELECT json FROM state WHERE name = ?1";
            connection.query_row(sql, [name], |row| row.get(0)).optional()
        })
        .await
    }

    async fn write(&self, name: &str, json: String) -> Result<(), JournalError> {
        let name = name.to_owned();
        self.alone(move |connection| {
            let sql = "INSERT INTO state VALUES (?1, ?2) ON CONFLICT DO UPDATE SET json = excluded.json";
            connection.execute(sql, [name, json]).map(drop)
        })
        .await
    }

    async fn delete(&self, name: &str) -> Result<(), JournalError> {
        let name = name.to_owned();
        self.alone(move |connection| {
            connection.execute("DELETE FROM state WHERE name = ?1", [name]).map(drop)
        })
        .await
    }
}
