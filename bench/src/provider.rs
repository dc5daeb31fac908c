//! A provider that never waits: four APIs over HTTP/1.1, as fast as the reader reads.

mod script;

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::DELTAS;
use script::Script;

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
/// Bytes written at once.
const WRITE: usize = 32 << 10;

/// Serves until the process is ended; prints its base URL first.
///
/// The path says what is wanted: `/flood/..` a saturated stream, `/one/..` a single delta, `/stall/..` a single delta
/// and then silence; its end says in which API.
pub(crate) fn serve() -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        loop {
            let (socket, _) = listener.accept().await?;
            tokio::spawn(async move {
                // A client that goes away ends its connection, no more.
                let _ = connection(socket).await;
            });
        }
    })
}

async fn connection(mut socket: TcpStream) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut received = Vec::new();
    while let Some(path) = request(&mut socket, &mut received).await? {
        let script = Script::of(&path);
        let deltas = if path.starts_with("/flood") { DELTAS } else { 1 };
        let mut out = HEAD.as_bytes().to_vec();
        chunk(&mut out, script.opening);
        for n in 0..deltas {
            chunk(&mut out, if n % 5 == 4 { &script.last_of_sentence } else { &script.delta });
            if out.len() >= WRITE {
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

fn chunk(out: &mut Vec<u8>, events: &str) {
    if !events.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n{events}\r\n", events.len()).as_bytes());
    }
}

/// Reads a request whole; its path.
async fn request(socket: &mut TcpStream, received: &mut Vec<u8>) -> Result<Option<String>> {
    loop {
        if let Some(end) = memchr::memmem::find(received, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            let whole = end + 4 + length.unwrap_or(0usize);
            if received.len() >= whole {
                received.drain(..whole);
                return Ok(head.split_whitespace().nth(1).map(str::to_owned));
            }
        }
        if socket.read_buf(received).await? == 0 {
            return Ok(None);
        }
    }
}
