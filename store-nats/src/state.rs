//! Documents stored beside the conversations, in a bucket.

use async_nats::jetstream::{
    kv::{Config, Store},
    stream::StorageType,
};
use async_trait::async_trait;
use everturn_orchestrator::{JournalError, StateStore};

use crate::{
    ConnectError, NatsJournal,
    error::{Place, failed},
    leader::Leader,
    names::token,
};

/// The documents that all nodes share, such as retry settings. The last writer wins.
#[derive(Debug)]
pub struct NatsState {
    bucket: Store,
    place: Place,
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
        Ok(NatsState { bucket, place: self.leader.place.clone() })
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

impl NatsState {
    fn failed(&self, error: &dyn std::fmt::Display) -> JournalError {
        failed(&self.place, &format!("the settings: {error}"))
    }
}

#[async_trait]
impl StateStore for NatsState {
    async fn read(&self, name: &str) -> Result<Option<String>, JournalError> {
        let json = self.bucket.get(token(&name.into())).await.map_err(|error| self.failed(&error))?;
        let text = json.map(|json| String::from_utf8(json.into()));
        text.transpose().map_err(|error| self.failed(&error))
    }

    async fn write(&self, name: &str, json: String) -> Result<(), JournalError> {
        let written = self.bucket.put(token(&name.into()), json.into()).await;
        written.map(drop).map_err(|error| self.failed(&error))
    }

    async fn delete(&self, name: &str) -> Result<(), JournalError> {
        self.bucket.purge(token(&name.into())).await.map_err(|error| self.failed(&error))
    }
}
