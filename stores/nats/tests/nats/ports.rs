//! The ports between nodes do what every implementation does.

use std::sync::Arc;

use everturn_orchestrator::StateStore;
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
    contract::notices(&a, &b).await;
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

#[tokio::test]
async fn documents_are_replaced_only_as_they_were_read() {
    let Some(server) = Server::start("").await else { return };
    let options = server.options();
    let journal = NatsJournal::connect(&options).await.unwrap();
    let (a, b) = (journal.state().await.unwrap(), journal.state().await.unwrap());
    let name = "conversation/a b/x";
    assert!(a.replace(name, None, Some("1".to_owned())).await.unwrap());
    assert!(!b.replace(name, None, Some("2".to_owned())).await.unwrap());
    assert!(!b.replace(name, Some("0"), None).await.unwrap());
    assert_eq!(b.read(name).await.unwrap().as_deref(), Some("1"));
    assert!(b.replace(name, Some("1"), None).await.unwrap());
    assert_eq!(a.read(name).await.unwrap(), None);
    // One that was removed counts as absent.
    assert!(!a.replace(name, Some("1"), Some("2".to_owned())).await.unwrap());
    assert!(a.replace(name, None, None).await.unwrap());
    // Each of many at once adds to what the others have written.
    let add = async |state: &dyn StateStore, n: usize| {
        loop {
            let read = state.read("sum").await.unwrap();
            let sum = read.as_deref().map_or(0, |sum| sum.parse::<usize>().unwrap()) + n;
            if state.replace("sum", read.as_deref(), Some(sum.to_string())).await.unwrap() {
                return;
            }
        }
    };
    futures_util::future::join_all((1..=20).map(|n| add(if n % 2 == 0 { &a } else { &b }, n))).await;
    assert_eq!(a.read("sum").await.unwrap().as_deref(), Some("210"));
}
