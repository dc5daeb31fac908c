//! Databases that cannot be used.

use std::time::Duration;

use everturn_sim::postgres::PASSWORD;
use everturn_store_postgres::{OpenError, Options, PostgresJournal};

use crate::support::Server;

async fn refusal(options: &Options) -> OpenError {
    let error = PostgresJournal::open(options).await.unwrap_err();
    let shown = format!("{error} {error:?} {options:?}");
    assert!(!shown.contains(PASSWORD) && !shown.contains("wrong-8"), "{shown}");
    error
}

#[tokio::test]
async fn errors_say_what_is_wrong_and_never_the_password() {
    let Some(server) = Server::start().await else { return };
    let options = server.options();
    let at = |url: String| Options { url, ..options.clone() };
    let url = server.server.url();

    let error = refusal(&at(url.replace(PASSWORD, "wrong-8"))).await;
    assert!(matches!(error, OpenError::Refused { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("refuses the login: password authentication failed for user \"everturn\""),
        "{text}"
    );
    let error = refusal(&at(url.replace(&format!(":{PASSWORD}"), ""))).await;
    assert!(matches!(error, OpenError::Refused { .. }), "{error:?}");
    let with = Options { password: Some("wrong-8".to_owned()), ..at(url.clone()) };
    let error = refusal(&with).await.to_string();
    assert!(error.contains("given twice"), "{error}");

    let error = refusal(&at(url.replace("/postgres", "/none"))).await.to_string();
    assert!(
        error.contains("database \"none\" does not exist") && error.contains("CREATE DATABASE"),
        "{error}"
    );

    server.server.sql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    let error = refusal(&at(url.replace("/postgres", "/latin"))).await.to_string();
    assert!(error.contains("its encoding is LATIN1"), "{error}");

    server.server.sql("CREATE DATABASE fixed");
    server.server.sql("ALTER DATABASE fixed SET default_transaction_read_only = on");
    let error = refusal(&at(url.replace("/postgres", "/fixed"))).await.to_string();
    assert!(error.contains("Postgres database fixed at 127.0.0.1:"), "{error}");
    assert!(error.contains("cannot hold a journal: it is read-only"), "{error}");

    server.server.sql("CREATE ROLE guest LOGIN PASSWORD 'guest-9'");
    let guest = url.replace("everturn:", "guest:").replace(PASSWORD, "guest-9");
    let error = refusal(&at(guest)).await.to_string();
    assert!(error.contains("permission denied for database postgres"), "{error}");
    assert!(error.contains("let this user create"), "{error}");
}

#[tokio::test]
async fn a_password_beside_the_url_works() {
    let Some(server) = Server::start().await else { return };
    let url = server.server.url().replace(&format!(":{PASSWORD}"), "");
    let options = Options { url, password: Some(PASSWORD.to_owned()), ..server.options() };
    PostgresJournal::open(&options).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_reached_is_named() {
    let mut options = Options::new("postgres://me:wrong-8@127.0.0.1:1/db?application_name=wrong-8");
    options.connect_within = Duration::ZERO;
    let error = refusal(&options).await.to_string();
    let expected =
        "cannot connect to Postgres database db at 127.0.0.1:1, schema everturn: error connecting to server";
    assert!(error.starts_with(expected) && error.contains("refused"), "{error}");
    for (url, part) in [
        ("mysql://me:wrong-8@host/db", "is not valid: write it as postgres://"),
        ("postgres://me:wrong-8@host:x/db", "is not valid"),
        ("postgres://me@host/db?pass=wrong-8", "is not valid"),
        ("postgres://me:wrong-8@host/db?sslmode=wrong-8", "invalid value for option `sslmode`"),
        ("postgres:///db", "it has no host"),
    ] {
        let error = refusal(&Options::new(url)).await.to_string();
        assert!(error.contains(part), "{url}: {error}");
    }
    options.schema = "No such".to_owned();
    let error = refusal(&options).await.to_string();
    assert!(error.contains("the Postgres schema \"No such\" is not valid"), "{error}");
    let mut options = Options::new("postgres://127.0.0.1:1");
    options.authorities = Some("/nowhere/ca.pem".into());
    let error = refusal(&options).await.to_string();
    assert!(error.contains("cannot use /nowhere/ca.pem"), "{error}");
}
