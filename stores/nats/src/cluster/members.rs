//! Membership: a key for each node in a bucket that forgets keys that are not renewed.

use std::{error::Error, time::Duration};

use async_nats::jetstream::{
    kv::{Config, Store},
    stream::StorageType,
};
use async_trait::async_trait;
use bytes::Bytes;
use everturn_ports::{JournalError, Member, Membership, NodeId};
use futures_util::{StreamExt as _, TryStreamExt as _};

use crate::{ConnectError, leader::Leader, state::bucket};

/// How long a lease lasts after its last renewal. Longer than an election of the servers (4 to 9 s), during which nobody
/// can renew.
const LEASE: Duration = Duration::from_secs(15);

pub(super) struct NatsMembers {
    bucket: Store,
    node: NodeId,
    leader: Leader,
}

/// The beginning of errors.
const MEMBERS: &str = "the members";

impl NatsMembers {
    pub(super) async fn new(leader: &Leader, node: NodeId) -> Result<Self, ConnectError> {
        let config = Config {
            description: "The nodes of Everturn that are alive".to_owned(),
            history: 1,
            max_age: LEASE,
            // Nodes renew their leases anyway.
            storage: StorageType::Memory,
            ..Config::default()
        };
        let bucket = bucket(leader, "NODES", config).await?;
        Ok(Self { bucket, node, leader: leader.clone() })
    }

    async fn list(&self) -> Result<Vec<Member>, Box<dyn Error + Send + Sync>> {
        let mut keys: Vec<String> = self.bucket.keys().await?.try_collect().await?;
        keys.sort();
        let members = futures_util::stream::iter(keys).then(|key| self.bucket.get(key));
        let members: Vec<_> = members.try_collect().await?;
        // One that a newer version wrote in another form is not known here.
        Ok(members.into_iter().flatten().filter_map(|json| serde_json::from_slice(&json).ok()).collect())
    }
}

#[async_trait]
impl Membership for NatsMembers {
    async fn renew(&self, member: &Member) -> Result<(), JournalError> {
        // Cannot fail: string keys and finite numbers only.
        let json = Bytes::from(serde_json::to_vec(member).unwrap_or_default());
        self.leader.repeat(MEMBERS, || self.bucket.put(&self.node.0, json.clone())).await.map(drop)
    }

    async fn leave(&self) -> Result<(), JournalError> {
        self.leader.repeat(MEMBERS, || self.bucket.delete(&self.node.0)).await
    }

    async fn members(&self) -> Result<Vec<Member>, JournalError> {
        self.leader.repeat(MEMBERS, || self.list()).await
    }
}
