//! Documents stored beside the conversations, in a bucket.

use std::error::Error;

use async_nats::jetstream::{
    kv::{Config, Operation, Store, UpdateError, UpdateErrorKind},
    stream::StorageType,
};
use async_trait::async_trait;
use bytes::Bytes;
use everturn_ports::{JournalError, StateStore};

use crate::{ConnectError, NatsJournal, error::failed, leader::Leader, names::token};

/// The documents that all nodes share, such as retry settings.
#[derive(Debug)]
pub struct NatsState {
    bucket: Store,
    leader: Leader,
}

impl NatsJournal {
    /// Returns the documents that are stored beside the journal.
    ///
    /// # Errors
    /// When their bucket cannot be created.
    pub async fn state(&self) -> Result<NatsState, ConnectError> {
        let config = Config {
            description: "Settings of Everturn".to_owned(),
            history: 1,
            storage: StorageType::File,
            ..Config::default()
        };
        let bucket = bucket(&self.leader, "STATE", config).await?;
        Ok(NatsState { bucket, leader: self.leader.clone() })
    }
}

/// Returns a bucket, which is created unless it exists, with as many copies as the journal. Repeats what fails, as servers
/// that have just started may still be electing a leader.
pub(crate) async fn bucket(leader: &Leader, name: &str, config: Config) -> Result<Store, ConnectError> {
    let bucket = format!("{}_{name}", leader.names().stream());
    let mut patience = leader.patience();
    loop {
        match find_or_create(leader, Config { bucket: bucket.clone(), ..config.clone() }).await {
            Ok(bucket) => return Ok(bucket),
            Err(what) if !patience.pause().await => {
                return Err(ConnectError::JetStream(leader.place.clone(), what));
            }
            Err(_) => {}
        }
    }
}

async fn find_or_create(leader: &Leader, config: Config) -> Result<Store, String> {
    if let Ok(bucket) = leader.context.get_key_value(&config.bucket).await {
        return Ok(bucket);
    }
    let info = leader.stream.get_info().await.map_err(|error| error.to_string())?;
    let config = Config { num_replicas: info.config.num_replicas, ..config };
    leader.context.create_key_value(config).await.map_err(|error| error.to_string())
}

/// The beginning of errors.
const SETTINGS: &str = "the settings";

#[async_trait]
impl StateStore for NatsState {
    async fn read(&self, name: &str) -> Result<Option<String>, JournalError> {
        let key = token(&name.into());
        let json = self.leader.repeat(SETTINGS, || self.bucket.get(key.clone())).await?;
        let text = json.map(|json| String::from_utf8(json.into()));
        text.transpose().map_err(|error| failed(&self.leader.place, &format!("{SETTINGS}: {error}")))
    }

    async fn write(&self, name: &str, json: String) -> Result<(), JournalError> {
        let (key, json) = (token(&name.into()), Bytes::from(json));
        self.leader.repeat(SETTINGS, || self.bucket.put(key.clone(), json.clone())).await.map(drop)
    }

    async fn delete(&self, name: &str) -> Result<(), JournalError> {
        let key = token(&name.into());
        self.leader.repeat(SETTINGS, || self.bucket.purge(key.clone())).await
    }

    async fn replace(
        &self,
        name: &str,
        expected: Option<&str>,
        json: Option<String>,
    ) -> Result<bool, JournalError> {
        let key = token(&name.into());
        let entry = self.leader.repeat(SETTINGS, || self.bucket.entry(key.clone())).await?;
        // A removed document leaves a marker, which has a revision too.
        let revision = entry.as_ref().map_or(0, |entry| entry.revision);
        let found = entry.filter(|entry| entry.operation == Operation::Put).map(|entry| entry.value);
        if found.as_deref() != expected.map(str::as_bytes) {
            return Ok(false);
        }
        let replaced = match json {
            Some(json) => self.bucket.update(&key, json.into(), revision).await.map(drop),
            None if found.is_none() => Ok(()),
            None => self.bucket.purge_expect_revision(&key, Some(revision)).await,
        };
        match replaced {
            Ok(()) => Ok(true),
            Err(error) if is_conflict(&error) => Ok(false),
            Err(error) => Err(failed(&self.leader.place, &format!("{SETTINGS}: {error}"))),
        }
    }
}

/// Whether another node was faster. In a cluster of servers, that can be told in two ways.
fn is_conflict(error: &UpdateError) -> bool {
    let mut source = Some(error as &(dyn Error + 'static));
    while let Some(error) = source {
        if let Some(told) = error.downcast_ref::<async_nats::jetstream::Error>() {
            return matches!(told.error_code().0, 10071 | 10164);
        }
        source = error.source();
    }
    error.kind() == UpdateErrorKind::WrongLastRevision
}
