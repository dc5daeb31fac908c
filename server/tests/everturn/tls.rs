//! TLS, with a real client and a certificate that is replaced while the server runs.

use std::{fs, net::SocketAddr, path::Path, sync::Arc};

use everturn_sim::SelfSigned;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    },
};

use crate::home::{DEADLINE, Home, Server, stderr};

/// Returns the response of a client that trusts this certificate alone; `None` if the handshake fails.
async fn ask(address: SocketAddr, trusted: &Path) -> Option<String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(trusted).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok()?;
    let request =
        format!("GET /models HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\n\r\n", address.port());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // The server may close without a goodbye.
    let _ = stream.read_to_string(&mut answer).await;
    Some(answer)
}

fn address(server: &Server) -> SocketAddr {
    server.url.strip_prefix("https://").unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_certificate_is_used_and_replaced_without_a_restart() {
    let home = Home::with("[server]\ntls_cert = \"tls.crt\"\ntls_key = \"tls.key\"\n");
    let directory = home.place("everturn");
    let first = SelfSigned::write(&directory, "tls", "localhost");
    let old = home.place("old.crt");
    fs::copy(&first.certificate, &old).unwrap();
    let server = home.serve().await;
    let answer = ask(address(&server), &old).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("demo/flaky"), "{answer}");
    let mut plain = TcpStream::connect(address(&server)).await.unwrap();
    plain.write_all(b"GET /models HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut told = Vec::new();
    let _ = plain.read_to_end(&mut told).await;
    assert!(!String::from_utf8_lossy(&told).contains("demo/flaky"), "nothing is served in the clear");

    // The certificate comes before its key, as with most tools that renew them.
    let renewed = SelfSigned::write(home.path(), "renewed", "localhost");
    fs::copy(&renewed.certificate, &first.certificate).unwrap();
    assert!(ask(address(&server), &old).await.is_some(), "without its key, the old one stays");
    fs::copy(&renewed.key, &first.key).unwrap();
    let replaced = async { while ask(address(&server), &renewed.certificate).await.is_none() {} };
    timeout(DEADLINE, replaced).await.expect("the new certificate in time");
    assert!(ask(address(&server), &old).await.is_none());
}

#[tokio::test]
async fn an_unusable_certificate_is_explained_at_the_start() {
    for (config, expected) in [
        ("tls_cert = \"tls.crt\"", "needs both `tls_cert` and `tls_key`"),
        ("tls_cert = \"none.crt\"\ntls_key = \"tls.key\"", "cannot read `tls_cert`"),
        ("tls_cert = \"tls.key\"\ntls_key = \"tls.key\"", "there is no certificate in it"),
        ("tls_cert = \"tls.crt\"\ntls_key = \"tls.crt\"", "there is no private key in it"),
        ("tls_cert = \"tls.crt\"\ntls_key = \"other.key\"", "they cannot be used together"),
    ] {
        let home = Home::with(&format!("[server]\n{config}\n"));
        SelfSigned::write(&home.place("everturn"), "tls", "localhost");
        SelfSigned::write(&home.place("everturn"), "other", "localhost");
        let output = home.run(&["--listen", "127.0.0.1:0"]).await;
        assert_eq!(output.status.code(), Some(1), "{config}");
        assert!(stderr(&output).contains(expected), "{expected}: {}", stderr(&output));
    }
}
