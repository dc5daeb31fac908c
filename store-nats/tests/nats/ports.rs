//! The ports between nodes do what every implementation does.

use std::sync::Arc;

use everturn_sim::{
    cluster::contract::{self, Node},
    nats::{self, NatsCluster, NatsConfig},
};
use everturn_store_nats::{NatsJournal, Options};

use crate::support::{CLUSTER, Server};

async fn node(options: &Options, name: &str) -> Node {
    let journal = NatsJournal::connect(options).await.unwrap();
    let cluster = journal.cluster(name).await.unwrap();
    Node { journal: Arc::new(journal), cluster }
}

async fn conforms(at_a: &Options, at_b: &Options) {
    let (a, b) = (node(at_a, "a").await, node(at_b, "b").await);
    contract::live_events(&a, &b).await;
    contract::commands(&a, &b).await;
    contract::membership(&a, &b).await;
    contract::list(&a, &b).await;
}

#[tokio::test]
async fn the_ports_conform_with_one_server() {
    let Some(server) = Server::start("").await else { return };
    let options = server.options();
    conforms(&options, &options).await;
}

#[tokio::test]
async fn the_ports_conform_with_nodes_at_different_servers() {
    let Some(program) = nats::program() else { return };
    let _alone = CLUSTER.lock().await;
    let directory = tempfile::tempdir().unwrap();
    let cluster = NatsCluster::start(&program, directory.path(), NatsConfig::default()).await;
    let [a, b, _] = &cluster.urls()[..] else { panic!("three servers") };
    conforms(&Options::new([a.clone()]), &Options::new([b.clone()])).await;
}
