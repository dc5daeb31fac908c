//! Encrypted connections.

use everturn_orchestrator::{Journal as _, Version};
use everturn_sim::{
    SelfSigned,
    postgres::{self, PostgresServer},
};
use everturn_store_postgres::{OpenError, Options, PostgresJournal};

use crate::support::{Server, id, numbered, texts};

#[tokio::test]
async fn a_certificate_is_verified() {
    let Some(programs) = postgres::programs() else { return };
    let directory = tempfile::tempdir().unwrap();
    let SelfSigned { certificate, .. } = SelfSigned::write(directory.path(), "server", "localhost");
    let settings = ["ssl=on", "ssl_cert_file=../server.crt", "ssl_key_file=../server.key"];
    let server = PostgresServer::start(&programs, directory.path(), &settings).await;

    let port = server.address().replace("127.0.0.1:", "");
    let at = |host: &str| format!("{}?sslmode=require", server.url_at(&format!("{host}:{port}")));
    let error = PostgresJournal::open(&Options::new(at("localhost"))).await.unwrap_err();
    assert!(matches!(error, OpenError::Tls { .. }), "{error}");
    assert!(error.to_string().contains("name the authority's certificate with `ca_file`"), "{error}");

    let trusting = |host| Options { authorities: Some(certificate.clone()), ..Options::new(at(host)) };
    let error = PostgresJournal::open(&trusting("127.0.0.1")).await.unwrap_err();
    assert!(matches!(error, OpenError::Tls { .. }), "the certificate is for another name: {error}");
    let journal = PostgresJournal::open(&trusting("localhost")).await.unwrap();
    journal.append(&id(), Version(0), numbered(1, "one")).await.unwrap();
    assert_eq!(texts(&journal).await, ["one"]);
    let encrypted = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name = 'everturn'";
    assert_eq!(server.sql(encrypted), "t");
}

#[tokio::test]
async fn a_server_without_tls_is_refused_if_it_is_required() {
    let Some(server) = Server::start().await else { return };
    let mut options = server.options();
    options.url.push_str("?sslmode=require");
    options.connect_within = std::time::Duration::ZERO;
    let error = PostgresJournal::open(&options).await.unwrap_err();
    assert!(error.to_string().contains("server does not support TLS"), "{error}");
}
