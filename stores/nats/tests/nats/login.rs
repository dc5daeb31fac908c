//! How clients identify themselves, and encrypted connections.

use std::{fs, path::Path, time::Duration};

use everturn_orchestrator::{Journal as _, Version};
use everturn_sim::{SelfSigned, nats::NatsConfig};
use everturn_store_nats::{ConnectError, Login, NatsJournal, Options};
use nkeys::KeyPair;

use crate::{
    jwt,
    support::{Server, numbered},
};

/// Checks that a journal can be written and read.
async fn works(options: &Options) {
    let journal = NatsJournal::connect(options).await.unwrap();
    let id = format!("c-{}", fastrand::u64(..)).into();
    let version = journal.append(&id, Version(0), numbered(1, "text")).await.unwrap();
    assert_eq!(journal.load(&id).await.unwrap().unwrap().version, version);
}

/// Checks that these options are refused, and that no error has any of these secrets.
async fn is_refused(options: &Options, secrets: &[&str]) {
    let error = NatsJournal::connect(options).await.unwrap_err();
    assert!(matches!(error, ConnectError::Refused { .. }), "{error:?}");
    let shown = format!("{error} {error:?} {options:?}");
    assert!(!secrets.iter().any(|secret| shown.contains(secret)), "{shown}");
}

#[tokio::test]
async fn a_token_identifies_a_client() {
    let Some(server) = Server::start("authorization { token: right-7 }").await else { return };
    let mut options = server.options();
    is_refused(&options, &[]).await;
    options.login = Login::Token("wrong-7".to_owned());
    is_refused(&options, &["wrong-7"]).await;
    options.login = Login::Token("right-7".to_owned());
    works(&options).await;
}

#[tokio::test]
async fn a_seed_identifies_a_client() {
    let (known, stranger) = (KeyPair::new_user(), KeyPair::new_user());
    let users = format!("authorization {{ users: [{{ nkey: {} }}] }}", known.public_key());
    let Some(server) = Server::start(&users).await else { return };
    let mut options = server.options();
    let wrong = stranger.seed().unwrap();
    options.login = Login::NkeySeed(wrong.clone());
    is_refused(&options, &[&wrong]).await;
    options.login = Login::NkeySeed(known.seed().unwrap());
    works(&options).await;
}

#[tokio::test]
async fn a_credentials_file_identifies_a_client() {
    let operator = jwt::Operator::new();
    let Some(server) = Server::start(&operator.config()).await else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("everturn.creds");
    let mut options = server.options();
    options.login = Login::CredentialsFile(path.clone());

    let error = NatsJournal::connect(&options).await.unwrap_err();
    assert!(matches!(&error, ConnectError::File { path: named, .. } if *named == path), "{error}");
    let stranger = jwt::Operator::new().credentials();
    fs::write(&path, &stranger).unwrap();
    let seed = stranger.lines().find(|line| line.starts_with("SU")).unwrap();
    is_refused(&options, &[seed]).await;
    fs::write(&path, operator.credentials()).unwrap();
    works(&options).await;
}

/// Starts a server with TLS that checks the certificates of clients.
async fn encrypted(server: &SelfSigned, client: &SelfSigned) -> Option<Server> {
    let path = |path: &Path| path.display().to_string();
    let tls = format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: true }}",
        path(&server.certificate),
        path(&server.key),
        path(&client.certificate)
    );
    Server::start_with(NatsConfig { server: &tls, ..NatsConfig::default() }).await
}

#[tokio::test]
async fn certificates_are_verified_by_both_sides() {
    let directory = tempfile::tempdir().unwrap();
    let certificate = |name, host| SelfSigned::write(directory.path(), name, host);
    let (ours, client) = (certificate("server", "127.0.0.1"), certificate("client", "client"));
    let Some(server) = encrypted(&ours, &client).await else { return };
    let mut options = server.options();
    options.connect_within = Duration::ZERO;
    let fails = async |options: &Options| {
        let error = NatsJournal::connect(options).await.unwrap_err();
        assert!(matches!(error, ConnectError::Unreachable { .. }), "{error:?}");
        error.to_string()
    };

    options.tls.certificate = Some((client.certificate.clone(), client.key.clone()));
    let error = fails(&options).await;
    assert!(error.contains("UnknownIssuer"), "the authority is not trusted: {error}");
    options.tls.authorities = Some(ours.certificate.clone());
    works(&options).await;
    options.tls.required = true;
    works(&options).await;

    let stranger = certificate("stranger", "stranger");
    options.tls.certificate = Some((stranger.certificate, stranger.key));
    fails(&options).await;
    options.tls.certificate = None;
    fails(&options).await;
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let certificate = |name, host| SelfSigned::write(directory.path(), name, host);
    let (other, client) = (certificate("server", "elsewhere.example"), certificate("client", "client"));
    let Some(server) = encrypted(&other, &client).await else { return };
    let mut options = server.options();
    options.connect_within = Duration::ZERO;
    options.tls.certificate = Some((client.certificate, client.key));
    options.tls.authorities = Some(other.certificate);
    let error = NatsJournal::connect(&options).await.unwrap_err().to_string();
    assert!(error.contains("not valid for name"), "{error}");
}

#[tokio::test]
async fn a_server_without_tls_is_refused_if_it_is_required() {
    let Some(server) = Server::start("").await else { return };
    let mut options = server.options();
    options.connect_within = Duration::ZERO;
    options.tls.required = true;
    let error = NatsJournal::connect(&options).await.unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error:?}");
}
