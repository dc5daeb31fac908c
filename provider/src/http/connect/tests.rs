//! Direct connections, proxies that forward and proxies that tunnel, over real sockets and real TLS.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use everturn_sim::{Loopback, Reply};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::{Response, Version, server::conn::http2, service::service_fn};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{RootCertStore, ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use super::*;

const LIMIT: Duration = Duration::from_secs(10);

/// Listens on a free port and runs a task for each connection.
async fn listen<T: Future<Output = io::Result<()>> + Send + 'static>(
    serve: impl Fn(TcpStream) -> T + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// A proxy that tunnels to one server, and the heads of the requests it received.
async fn tunnelling(server: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let received = heads.clone();
    let address = listen(move |mut stream| {
        let received = received.clone();
        async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await?);
            }
            received.lock().unwrap().push(String::from_utf8(head).unwrap());
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            let mut server = TcpStream::connect(server).await?;
            copy_bidirectional(&mut stream, &mut server).await.map(drop)
        }
    });
    (address.await, heads)
}

/// Returns the configurations of a TLS server for `localhost` and of a client that trusts it.
fn identity() -> (ServerConfig, ClientConfig) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let provider = Arc::new(ring::default_provider());
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into())
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (server, client)
}

/// Speaks TLS for `localhost` in front of a server. Returns the client's configuration, too.
async fn secured(server: SocketAddr) -> (SocketAddr, ClientConfig) {
    let (config, client) = identity();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let address = listen(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let mut stream = acceptor.accept(stream).await?;
            let mut server = TcpStream::connect(server).await?;
            copy_bidirectional(&mut stream, &mut server).await.map(drop)
        }
    });
    (address.await, client)
}

async fn body(tls: ClientConfig, proxies: Proxies, uri: &str) -> Bytes {
    let client = Client::builder(TokioExecutor::new()).build(connector(tls, proxies, LIMIT));
    let response =
        client.request(hyper::Request::get(uri).body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
    response.into_body().collect().await.unwrap().to_bytes()
}

fn proxies(of: &str, proxy: SocketAddr, not_for: &str) -> Proxies {
    let proxy = format!("http://user:hush@{proxy}");
    let builder = Matcher::builder().no(not_for);
    Proxies::of(if of == "https" { builder.https(proxy) } else { builder.http(proxy) }.build())
}

#[tokio::test]
async fn a_tunnel_is_opened_for_https_with_its_own_credentials() {
    let server = Loopback::start([Reply::status(200).body("hello")]).await;
    let (secured, tls) = secured(server.address()).await;
    let (proxy, heads) = tunnelling(secured).await;
    let uri = format!("https://localhost:{}/path", secured.port());
    assert_eq!(body(tls.clone(), proxies("https", proxy, ""), &uri).await, "hello");
    let head = heads.lock().unwrap().join("");
    assert!(head.starts_with(&format!("CONNECT localhost:{} HTTP/1.1\r\n", secured.port())), "{head}");
    assert!(head.to_lowercase().contains("proxy-authorization: basic dxnlcjpodxno\r\n"), "{head}");
    let request = &server.requests()[0];
    assert_eq!((&*request.path, request.header("proxy-authorization")), ("/path", None));
}

#[tokio::test]
async fn a_proxy_forwards_http_and_only_such_requests_carry_its_credentials() {
    let proxy = Loopback::start([Reply::status(200).body("forwarded")]).await;
    let (_, tls) = secured(proxy.address()).await;
    let proxies = proxies("http", proxy.address(), "other.test");
    assert_eq!(body(tls, proxies.clone(), "http://provider.test/v1/chat").await, "forwarded");
    assert_eq!(proxy.requests()[0].path, "http://provider.test/v1/chat");
    let authorization = |uri: &'static str| {
        let value = proxies.authorization(&Uri::from_static(uri))?;
        assert!(value.is_sensitive());
        value.to_str().ok().map(str::to_owned)
    };
    assert_eq!(authorization("http://provider.test/v1").as_deref(), Some("Basic dXNlcjpodXNo"));
    assert_eq!(authorization("https://provider.test/v1"), None);
    assert_eq!(authorization("http://other.test/v1"), None);
}

#[tokio::test]
async fn no_proxy_is_used_for_an_address_that_is_exempt() {
    let server = Loopback::start([Reply::status(200).body("direct")]).await;
    let (secured, tls) = secured(server.address()).await;
    let (proxy, heads) = tunnelling(secured).await;
    let uri = format!("https://localhost:{}/", secured.port());
    assert_eq!(body(tls, proxies("https", proxy, "localhost"), &uri).await, "direct");
    assert!(heads.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_slow_connection_times_out() {
    let silent = listen(|stream| async move {
        let _open = stream;
        std::future::pending().await
    });
    let (silent, (_, tls)) = (silent.await, secured(([127, 0, 0, 1], 9).into()).await);
    let client = Client::builder(TokioExecutor::new()).build(connector(tls, Proxies::none(), LIMIT));
    let uri = format!("https://localhost:{}/", silent.port());
    let error =
        client.request(hyper::Request::get(uri).body(Empty::<Bytes>::new()).unwrap()).await.unwrap_err();
    let fault = super::super::ConnectionError::from(error);
    assert_eq!(fault.kind, everturn_diagnosis::Transport::ConnectTimeout, "{}", fault.text);
}

#[tokio::test]
async fn http_2_is_spoken_where_the_server_offers_it() {
    let (mut config, mut tls) = identity();
    config.alpn_protocols = vec![b"h2".to_vec()];
    // As the configuration of real clients has it.
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = listen(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let answer =
                service_fn(async |_| Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("hello")))));
            let stream = TokioIo::new(acceptor.accept(stream).await?);
            http2::Builder::new(TokioExecutor::new())
                .serve_connection(stream, answer)
                .await
                .map_err(io::Error::other)
        }
    });
    let client = Client::builder(TokioExecutor::new()).build(connector(tls, Proxies::none(), LIMIT));
    let uri = format!("https://localhost:{}/", server.await.port());
    let response =
        client.request(hyper::Request::get(uri).body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hello");
}
