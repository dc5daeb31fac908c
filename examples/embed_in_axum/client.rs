//! A client: one POST, one event per line.

use std::net::SocketAddr;

use anyhow::{Result, bail};
use axum::body::Body;
use futures_util::StreamExt as _;
use hyper::{Request, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Sends a message and prints the turn as it happens.
pub(crate) async fn one_turn(server: SocketAddr) -> Result<()> {
    let socket = TokioIo::new(TcpStream::connect(server).await?);
    let (mut sender, connection) = http1::handshake(socket).await?;
    tokio::spawn(connection);
    let request = Request::post("/chat")
        .header("host", server.to_string())
        .header("content-type", "application/json")
        .body(r#"{"message":"How warm is the lake?"}"#.to_owned())?;
    let response = sender.send_request(request).await?;
    if !response.status().is_success() {
        bail!("POST /chat: {}", response.status());
    }
    let mut pieces = Body::new(response.into_body()).into_data_stream();
    let mut text = Vec::new();
    while let Some(piece) = pieces.next().await {
        text.extend_from_slice(&piece?);
        // A chunk may end anywhere; an event ends with its line.
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            let event: serde_json::Value = serde_json::from_slice(&line)?;
            print!("{}", String::from_utf8_lossy(&line));
            if event["type"] == "turn-sealed" {
                return Ok(());
            }
        }
    }
    bail!("the stream ended before its turn did")
}
