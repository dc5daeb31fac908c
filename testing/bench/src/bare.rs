//! The bare client: the minimum that a client of this API must do, with hyper and serde.

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode, body::Incoming, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

/// A persistent connection.
pub(crate) struct Bare {
    connection: SendRequest<Full<Bytes>>,
    path: String,
    host: String,
}

/// Only the visible part of a chunk.
#[derive(Deserialize)]
struct Chunk {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Delta,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
}

impl Bare {
    pub(crate) async fn connect(base: &str) -> Result<Self> {
        let rest = base.strip_prefix("http://").context("not an http URL")?;
        let (host, path) = rest.split_once('/').context("no path")?;
        let socket = TcpStream::connect(host).await?;
        socket.set_nodelay(true)?;
        let (connection, driver) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
        tokio::spawn(driver);
        Ok(Self { connection, path: format!("/{path}/chat/completions"), host: host.to_owned() })
    }

    /// Repeats the request until it is not refused, and passes each delta's text on.
    pub(crate) async fn stream(&mut self, text: &str, mut delta: impl FnMut(&str)) -> Result<()> {
        let body =
            format!(r#"{{"model":"m","stream":true,"messages":[{{"role":"user","content":"{text}"}}]}}"#);
        loop {
            let request = Request::post(&self.path)
                .header("host", &self.host)
                .header("content-type", "application/json")
                .body(Full::new(Bytes::from(body.clone())))?;
            self.connection.ready().await?;
            let response = self.connection.send_request(request).await?;
            if response.status() != StatusCode::TOO_MANY_REQUESTS {
                return read(response.into_body(), &mut delta).await;
            }
            response.into_body().collect().await?;
        }
    }
}

async fn read(mut body: Incoming, delta: &mut impl FnMut(&str)) -> Result<()> {
    let mut rest = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(bytes) = frame?.into_data() else { continue };
        rest.extend_from_slice(&bytes);
        let mut from = 0;
        while let Some(at) = memchr::memmem::find(&rest[from..], b"\n\n") {
            let event = rest[from..from + at].strip_prefix(b"data: ");
            if let Some(json) = event.filter(|json| *json != b"[DONE]") {
                let chunk: Chunk = serde_json::from_slice(json)?;
                chunk
                    .choices
                    .iter()
                    .filter_map(|choice| choice.delta.content.as_deref())
                    .for_each(&mut *delta);
            }
            from += at + 2;
        }
        rest.drain(..from);
    }
    Ok(())
}
