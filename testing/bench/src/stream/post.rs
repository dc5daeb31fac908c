//! A saturated stream as the response to a request, in the native format or a dialect.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use cpu_time::ProcessTime;
use everturn_transport_http::{CallLimits, Metrics, router};
use http_body_util::{BodyExt, Full};
use hyper::{Request, header::HOST};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use super::{block_on, orchestrator, print};
use crate::{DELTAS, child::Child};

/// Prints CPU nanoseconds per delta of a server whose client, in its own process, posts to this path.
pub(crate) fn served(base: &str, path: &str) -> Result<()> {
    block_on(async {
        let app = router(orchestrator(&format!("{base}/flood"))?, CallLimits::default(), Metrics::none());
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let host = listener.local_addr()?.to_string();
        tokio::spawn(async move { axum::serve(listener, app).await });
        let started = ProcessTime::now();
        let mut client = Child::start(&["post", &host, path])?;
        let line = tokio::task::spawn_blocking(move || client.line());
        let bytes: usize = line.await??.parse().context("the client failed")?;
        ensure!(bytes > DELTAS as usize);
        print(started, DELTAS, 6)
    })
}

/// Posts a request and reads the response. Prints the number of bytes received.
pub(crate) fn client(host: &str, path: &str) -> Result<()> {
    let body = match path {
        "/chat" => r#"{"message":"Go"}"#,
        "/api/chat" => {
            r#"{"id":"c","messages":[{"id":"u","role":"user","parts":[{"type":"text","text":"Go"}]}]}"#
        }
        "/ag-ui" => r#"{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"Go"}]}"#,
        _ => r#"{"model":"bench/m","stream":true,"messages":[{"role":"user","content":"Go"}]}"#,
    };
    block_on(async {
        let socket = TcpStream::connect(host).await?;
        let (mut connection, driver) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
        tokio::spawn(driver);
        let request = Request::post(path).header(HOST, host).header("content-type", "application/json");
        let body = Full::new(Bytes::from_static(body.as_bytes()));
        let mut answer = connection.send_request(request.body(body)?).await?;
        ensure!(answer.status().is_success(), "{}", answer.status());
        let (mut bytes, mut last) = (0, Bytes::new());
        while let Some(frame) = answer.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            bytes += data.len();
            last = data;
        }
        let last = String::from_utf8_lossy(&last);
        let is_whole =
            ["turn-sealed", "data: [DONE]\n\n", "RUN_FINISHED"].iter().any(|end| last.contains(end));
        ensure!(is_whole, "it ended with {last}");
        println!("{bytes}");
        Ok(())
    })
}
