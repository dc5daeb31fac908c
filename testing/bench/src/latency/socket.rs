//! Time to the first delta over reused sockets.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use everturn_orchestrator::Orchestrator;
use everturn_transport_http::{ConnectionLimits, Metrics};
use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Full};
use hyper::{Request, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, tungstenite::Message};

const DELTA: &[u8] = br#""type":"text-delta""#;
const SEALED: &[u8] = br#""type":"turn-sealed""#;

/// One server, and one client of each kind with a persistent connection.
pub(super) struct Clients {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    post: SendRequest<Full<Bytes>>,
    host: String,
}

impl Clients {
    pub(super) async fn connect(orchestrator: Orchestrator) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let host = listener.local_addr()?.to_string();
        let sockets = everturn_transport_ws::router(orchestrator.clone(), Default::default());
        let calls = everturn_transport_http::router(orchestrator, Default::default(), Metrics::none());
        let app = calls.merge(sockets);
        let limits = ConnectionLimits::default();
        tokio::spawn(everturn_transport_http::serve(listener, app, limits, std::future::pending()));
        let (socket, _) = tokio_tungstenite::connect_async(format!("ws://{host}/ws")).await?;
        let stream = TcpStream::connect(&host).await?;
        stream.set_nodelay(true)?;
        let (post, driver) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(driver);
        Ok(Self { socket, post, host })
    }

    /// Returns microseconds from a command to the first delta of its turn.
    pub(super) async fn over_socket(&mut self) -> Result<f64> {
        let started = Instant::now();
        self.socket.send(Message::text(r#"{"type":"chat.send","message":"Hi"}"#)).await?;
        let mut first = None;
        while let Some(message) = self.socket.next().await {
            let Message::Text(text) = message? else { continue };
            if first.is_none() && has(text.as_bytes(), DELTA) {
                first = Some(started.elapsed());
            }
            if has(text.as_bytes(), SEALED) {
                let event: serde_json::Value = serde_json::from_str(&text)?;
                let id = &event["event"]["conversationId"];
                let leave = format!(r#"{{"type":"chat.unsubscribe","conversationId":{id}}}"#);
                self.socket.send(Message::text(leave)).await?;
                return Ok(first.context("a turn without a delta")?.as_secs_f64() * 1e6);
            }
        }
        bail!("the socket ended")
    }

    /// Returns microseconds from a `POST /chat` to the first delta of its turn.
    pub(super) async fn over_post(&mut self) -> Result<f64> {
        let request = Request::post("/chat")
            .header("host", &self.host)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from_static(br#"{"message":"Hi"}"#)))?;
        self.post.ready().await?;
        let started = Instant::now();
        let mut body = self.post.send_request(request).await?.into_body();
        let mut first = None;
        while let Some(frame) = body.frame().await {
            let Ok(bytes) = frame?.into_data() else { continue };
            if first.is_none() && has(&bytes, DELTA) {
                first = Some(started.elapsed());
            }
        }
        Ok(first.context("a turn without a delta")?.as_secs_f64() * 1e6)
    }
}

fn has(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}
