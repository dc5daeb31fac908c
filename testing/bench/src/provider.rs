//! A provider that never waits: four APIs over HTTP/1.1, as fast as the client reads.

mod script;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::interval,
};

use crate::{DELTAS, turns};
use script::Script;

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
/// A refusal that requires no wait.
const REFUSAL: &str = "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\ncontent-length: 55\r\n\r\n\
    {\"error\":{\"message\":\"slow down\",\"code\":\"rate_limited\"}}";
/// A refusal that requires a wait of an hour.
const LATER: &str = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 3600\r\ncontent-length: 0\r\n\r\n";
/// Interval between two deltas of a paced stream.
const PACE: Duration = Duration::from_millis(20);
/// Number of bytes per write.
const WRITE: usize = 32 << 10;

/// Serves until the process is killed. Prints its base URL first.
///
/// The path determines the load: `/flood/..` a saturated stream, `/one/..` a single delta, `/stall/..` a single delta
/// and then silence, `/later/..` a refusal, and the loads of [`mod@crate::turns`]. Its end determines the API.
pub(crate) fn serve() -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        let limited = Limited::default();
        loop {
            let (socket, _) = listener.accept().await?;
            let limited = limited.clone();
            tokio::spawn(async move {
                // A disconnect only ends that connection.
                let _ = connection(socket, limited).await;
            });
        }
    })
}

async fn connection(mut socket: TcpStream, limited: Limited) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut received = Vec::new();
    while let Some(Request { path, body }) = request(&mut socket, &mut received).await? {
        if path.starts_with("/limited") && limited.refuses(&body) {
            socket.write_all(REFUSAL.as_bytes()).await?;
            continue;
        }
        if path.starts_with("/later") {
            socket.write_all(LATER.as_bytes()).await?;
            continue;
        }
        let script = Script::of(&path);
        let deltas = if path.starts_with("/flood") { DELTAS } else { turns::deltas(&path).unwrap_or(1) };
        let mut pace = path.starts_with("/paced").then(|| interval(PACE));
        let mut out = HEAD.as_bytes().to_vec();
        chunk(&mut out, script.opening);
        for n in 0..deltas {
            chunk(&mut out, if n % 5 == 4 { &script.last_of_sentence } else { &script.delta });
            if let Some(pace) = &mut pace {
                pace.tick().await;
            }
            if pace.is_some() || out.len() >= WRITE {
                socket.write_all(&out).await?;
                out.clear();
            }
        }
        if path.starts_with("/stall") {
            socket.write_all(&out).await?;
            let _ = socket.read(&mut [0; 1]).await;
            return Ok(());
        }
        chunk(&mut out, script.closing);
        out.extend_from_slice(b"0\r\n\r\n");
        socket.write_all(&out).await?;
    }
    Ok(())
}

/// How often each request was refused.
#[derive(Clone, Default)]
struct Limited(Arc<Mutex<HashMap<Vec<u8>, u32>>>);

impl Limited {
    /// Refuses two of three times.
    fn refuses(&self, body: &[u8]) -> bool {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let times = refused.entry(body.to_vec()).or_default();
        *times += 1;
        let refuses = *times < 3;
        if !refuses {
            refused.remove(body);
        }
        refuses
    }
}

fn chunk(out: &mut Vec<u8>, events: &str) {
    if !events.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n{events}\r\n", events.len()).as_bytes());
    }
}

struct Request {
    path: String,
    body: Vec<u8>,
}

/// Reads a complete request.
async fn request(socket: &mut TcpStream, received: &mut Vec<u8>) -> Result<Option<Request>> {
    loop {
        if let Some(end) = memchr::memmem::find(received, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            let whole = end + 4 + length.unwrap_or(0usize);
            if received.len() >= whole {
                let body = received[end + 4..whole].to_vec();
                received.drain(..whole);
                let path = head.split_whitespace().nth(1);
                return Ok(path.map(|path| Request { path: path.to_owned(), body }));
            }
        }
        if socket.read_buf(received).await? == 0 {
            return Ok(None);
        }
    }
}
