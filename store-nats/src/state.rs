//! Documents stored beside the conversations, in a bucket.

use async_nats::jetstream::{
    kv::{Config, Store},
    stream::StorageType,
};
use async_trait::async_trait;
use bytes::Bytes;
use everturn_orchestrator::{JournalError, StateStore};

use crate::{ConnectError, NatsJournal, error::failed, leader::Leader, names::token};

/// The documents that all nodes share, such as retry settings. The last writer wins.
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

/// Returns a bucket, which is created unless it exists, with as many copies as the journal.
pub(crate) async fn bucket(leader: &Leader, name: &str, config: Config) -> Result<Store, ConnectError> {
    let failed =
        |error: &dyn std::fmt::Display| ConnectError::JetStream(leader.place.clone(), error.to_string());
    let name = format!("{}_{name}", leader.names().stream());
    if let Ok(bucket) = leader.context.get_key_value(&name).await {
        return Ok(bucket);
    }
    let info = leader.stream.get_info().await.map_err(|error| failed(&error))?;
    let config = Config { bucket: name, num_replicas: info.config.num_replicas, ..config };
    leader.context.create_key_value(config).await.map_err(|error| failed(&error))
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
}
