//! Callers: each with its own connection, one call after the other.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, client::conn::http1::SendRequest, header::HOST};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{Instant as Later, sleep_until},
};

use super::Load;
use crate::{callers::token, child::Child, stream::block_on};

const PATH: &str = "/v1/chat/completions";
/// Number of calls that wait at once, and the size of the body of each, in bytes.
const WAITING: usize = 900;
const BODY: usize = 64 << 10;

/// How often it is looked whether they wait.
const MOST_LOOKS: u32 = 600;

type Connection = SendRequest<Full<Bytes>>;

pub(super) fn run(load: Load, host: &str) -> Result<()> {
    block_on(async {
        let mut callers = JoinSet::new();
        for n in 0..load.callers {
            let connection = connect(host).await?;
            callers.spawn(caller(load, n, connection, host.to_owned()));
        }
        let told = callers.join_all().await.into_iter().collect::<Result<Vec<_>>>()?;
        let bytes: usize = told.iter().map(|(bytes, _)| bytes).sum();
        let mut times: Vec<f64> = told.into_iter().flat_map(|(_, times)| times).collect();
        times.sort_by(f64::total_cmp);
        let part = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
        println!("{bytes} {} {}", part(0.5), part(0.99));
        Ok(())
    })
}

async fn connect(host: &str) -> Result<Connection> {
    let socket = TcpStream::connect(host).await?;
    socket.set_nodelay(true)?;
    let (connection, driver) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
    tokio::spawn(driver);
    Ok(connection)
}

/// Makes calls. Returns the number of bytes received, and the time of each call in microseconds.
async fn caller(load: Load, n: usize, mut connection: Connection, host: String) -> Result<(usize, Vec<f64>)> {
    let pause = Duration::from_millis(load.pause_ms);
    // Not all at the same moment.
    let mut at = Later::now() + pause * u32::try_from(n)? / u32::try_from(load.callers)?;
    let (mut bytes, mut times) = (0, Vec::new());
    for call in 0..load.calls {
        if !pause.is_zero() {
            sleep_until(at).await;
            at += pause;
        }
        let text = format!("{} {n} {call}", std::process::id());
        let started = Instant::now();
        let answer = send(&mut connection, &host, n, &text).await?;
        times.push(started.elapsed().as_secs_f64() * 1e6);
        ensure!(answer.ends_with(b"data: [DONE]\n\n"), "it ended early");
        bytes += answer.len();
    }
    Ok((bytes, times))
}

async fn send(connection: &mut Connection, host: &str, n: usize, text: &str) -> Result<Vec<u8>> {
    let body = format!(r#"{{"model":"m","stream":true,"messages":[{{"role":"user","content":"{text}"}}]}}"#);
    connection.ready().await?;
    let request = Request::post(PATH).header(HOST, host).header("content-type", "application/json");
    let request =
        request.header("authorization", format!("Bearer {}", token(n))).header("user-agent", "bench/1");
    let mut answer = connection.send_request(request.body(Full::new(Bytes::from(body)))?).await?;
    ensure!(answer.status().is_success(), "{}", answer.status());
    let mut bytes = Vec::new();
    while let Some(frame) = answer.frame().await {
        if let Ok(data) = frame?.into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes)
}

/// Returns the memory of each waiting call besides its body, in bytes, as the growth of the process.
pub(super) fn waiting(base: &str) -> Result<f64> {
    let mut between = Child::start(&["between", "everturn", &format!("{base}/later")])?;
    let host = between.line().context("the process in between did not say where it is")?;
    let _callers = Child::start(&["wait", &host, "50"])?;
    until_waiting(&host, 50)?;
    let before = between.resident()?;
    let _callers = Child::start(&["wait", &host, &WAITING.to_string()])?;
    until_waiting(&host, 50 + WAITING)?;
    Ok((between.resident()? - before) / WAITING as f64 - BODY as f64)
}

/// Makes calls that nobody answers, and waits for ever.
pub(super) fn wait(host: &str, calls: usize) -> Result<()> {
    block_on(async {
        let mut callers = JoinSet::new();
        for n in 0..calls {
            let (mut connection, host) = (connect(host).await?, host.to_owned());
            let text = format!("{n} {}", "x".repeat(BODY));
            callers.spawn(async move { send(&mut connection, &host, n, &text).await });
        }
        callers.join_all().await.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(())
    })
}

fn until_waiting(host: &str, calls: usize) -> Result<()> {
    block_on(async {
        let mut connection = connect(host).await?;
        for _ in 0..MOST_LOOKS {
            connection.ready().await?;
            let request = Request::get("/calls").header(HOST, host).body(Full::default())?;
            let told = connection.send_request(request).await?.collect().await?.to_bytes();
            if memchr::memmem::find_iter(&told, br#""phase":"waiting""#).count() >= calls {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bail!("the calls do not wait within a minute")
    })
}
