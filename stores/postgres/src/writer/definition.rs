//! What defines turns: each definition is stored once.

use std::sync::{Mutex, PoisonError};

use everturn_ports::Definition;
use everturn_store_rows::to_json;
use tokio::sync::{RwLock, RwLockReadGuard};

use crate::{error::Failure, session::Session};

/// Number of definitions whose keys are remembered. The turns of an orchestrator usually have the same, and looking one
/// up means serializing it, system prompt included.
const KNOWN: usize = 16;

/// The keys of definitions.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    /// Latest use last.
    known: Mutex<Vec<(Definition, i64)>>,
    /// Held while a key is used that no conversation may have yet.
    gate: RwLock<()>,
}

impl Definitions {
    /// Keeps definitions from being deleted until the guard is dropped.
    pub(super) async fn hold(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().await
    }

    /// Returns the key of a definition, inserting it if it is new. The guard of [`Self::hold`] must be held.
    pub(super) async fn key_of(&self, session: &Session, definition: &Definition) -> Result<i64, Failure> {
        if let Some(key) = self.recall(definition) {
            return Ok(key);
        }
        let json = to_json(definition)?;
        let sql = "INSERT INTO definition (digest, json) VALUES (sha256(convert_to($1, 'UTF8')), $1)
            ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest RETURNING key";
        let rows = session.query(sql, &[&json]).await?;
        let key = rows.first().map(|row| row.get(0)).ok_or_else(|| Failure::damaged("no definition"))?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() == KNOWN {
            known.remove(0);
        }
        known.push((definition.clone(), key));
        Ok(key)
    }

    fn recall(&self, definition: &Definition) -> Option<i64> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().rposition(|(known, _)| known == definition)?;
        let used = known.remove(at);
        let key = used.1;
        known.push(used);
        Some(key)
    }

    /// Deletes the definitions that no unsealed turn uses, unless another server has taken the database.
    pub(crate) async fn tidy(&self, session: &Session, epoch: i64) -> Result<(), Failure> {
        let _alone = self.gate.write().await;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let sql = "DELETE FROM definition WHERE EXISTS (SELECT FROM format WHERE epoch = $1) AND NOT EXISTS
            (SELECT FROM conversation WHERE turn IS NOT NULL AND definition = definition.key)";
        session.query_all(sql, &[&epoch]).await.map(drop)
    }
}
