//! Servers and streams that cannot be used.

use std::time::Duration;

use async_nats::jetstream::{self, stream::Config};
use everturn_store_nats::{ConnectError, Login, NatsJournal, Options};

use crate::support::Server;

#[tokio::test]
async fn a_stream_that_deletes_by_age_is_refused_and_left_alone() {
    let Some(server) = Server::start("").await else { return };
    let options = server.options();
    drop(NatsJournal::connect(&options).await.unwrap());
    let context = jetstream::new(async_nats::connect(server.server.url()).await.unwrap());
    let mut stream = context.get_stream("T1").await.unwrap();
    let fit = stream.info().await.unwrap().config.clone();
    let aging = Config { max_age: Duration::from_secs(3600), ..fit };
    context.update_stream(aging.clone()).await.unwrap();
    let error = NatsJournal::connect(&options).await.unwrap_err();
    assert!(matches!(error, ConnectError::Setting { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("T1 at 127.0.0.1:") && text.contains("max_age is 3600s and must be 0"), "{text}");
    assert_eq!(stream.info().await.unwrap().config.max_age, aging.max_age);
}

#[tokio::test]
async fn a_stream_with_a_limit_refuses_appends_when_it_is_full() {
    use everturn_orchestrator::{Journal, JournalError, Version};
    let Some(server) = Server::start("").await else { return };
    let options = server.options();
    drop(NatsJournal::connect(&options).await.unwrap());
    let context = jetstream::new(async_nats::connect(server.server.url()).await.unwrap());
    let mut stream = context.get_stream("T1").await.unwrap();
    let fit = stream.info().await.unwrap().config.clone();
    context.update_stream(Config { max_bytes: 4096, ..fit }).await.unwrap();
    let journal = NatsJournal::connect(&options).await.unwrap();
    let (mut version, mut number) = (Version(0), 0);
    let error = loop {
        number += 1;
        match journal.append(&"c".into(), version, crate::support::numbered(number, "text")).await {
            Ok(next) => version = next,
            Err(error) => break error,
        }
        assert!(number < 100, "it is full at some time");
    };
    assert!(matches!(error, JournalError::Storage(_)), "{error}");
    assert!(error.to_string().contains("maximum bytes exceeded"), "{error}");
    let stored = journal.load(&"c".into()).await.unwrap().unwrap();
    assert_eq!((stored.version, stored.head.last_seq), (version, number - 1), "nothing was lost");
}

#[tokio::test]
async fn wrong_credentials_are_refused_without_repeating_them() {
    let Some(server) = Server::start("authorization { user: me, password: right-7 }").await else { return };
    let mut options = server.options();
    options.login = Login::UserPassword { user: "me".to_owned(), password: "wrong-7".to_owned() };
    let error = NatsJournal::connect(&options).await.unwrap_err();
    assert!(matches!(error, ConnectError::Refused { .. }), "{error:?}");
    assert!(!format!("{error} {error:?} {options:?}").contains("wrong-7"));
    options.login = Login::UserPassword { user: "me".to_owned(), password: "right-7".to_owned() };
    NatsJournal::connect(&options).await.unwrap();
    let address = server.server.url().replace("nats://", "nats://me:wrong-7@");
    let error = NatsJournal::connect(&Options::new([address])).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("wrong-7"), "{error}");
}

#[tokio::test]
async fn what_cannot_be_reached_is_named() {
    let mut options = Options::new(["nats://me:secret-7@127.0.0.1:1"]);
    options.connect_within = Duration::ZERO;
    let error = NatsJournal::connect(&options).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot connect to NATS at 127.0.0.1:1: "), "{error}");
    assert!(!format!("{error} {options:?}").contains("secret-7"), "{error} {options:?}");
    for (servers, part) in
        [(vec![], "no NATS server"), (vec!["nats://a:secret-7@b:x"], "server 1 of the list")]
    {
        let error = NatsJournal::connect(&Options::new(servers)).await.unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains("secret-7"), "{error}");
    }
    options.prefix = "a b".to_owned();
    let error = NatsJournal::connect(&options).await.unwrap_err().to_string();
    assert!(error.contains("prefix \"a b\" is not valid"), "{error}");
}
