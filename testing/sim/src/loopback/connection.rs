//! One connection: reads requests and sends replies until one side ends it.

use std::future::pending;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::ReadHalf;

use super::Reply;
use super::ledger::Ledger;
use super::playback::{self, After};
use super::reply::Ending;
use super::request_reader::{Refusal, RequestReader};

pub(super) async fn serve(mut stream: TcpStream, ledger: Arc<Ledger>) {
    let connected = ledger.connect();
    // Each write should be a separate packet, as far as the operating system allows.
    let _ = stream.set_nodelay(true);
    let mut reader = RequestReader::default();
    loop {
        match exchange(&mut stream, &mut reader, &ledger, connected.number).await {
            Ok(None) => {}
            Ok(Some(Ending::Fin)) => return drain(stream).await,
            Ok(Some(Ending::Reset)) => {
                let _ = stream.set_zero_linger();
                return;
            }
            Err(Gone) => return,
        }
    }
}

/// The client disconnected.
struct Gone;

/// Handles one request and its reply.
async fn exchange(
    stream: &mut TcpStream,
    reader: &mut RequestReader,
    ledger: &Ledger,
    connection: usize,
) -> Result<After, Gone> {
    let (mut read, mut write) = stream.split();
    let (reply, last) = match reader.next(&mut read, connection).await {
        Ok(request) => {
            let last = request.closes();
            (ledger.answer(request), last)
        }
        Err(Refusal::Gone) => return Err(Gone),
        Err(Refusal::Rejected(status, why)) => {
            ledger.reject();
            (Reply::status(status).close_delimited().body(why), true)
        }
    };
    let played = tokio::select! {
        biased;
        played = playback::play(&reply, &mut write) => played.map_err(|_| Gone),
        () = hang_up(&mut read) => Err(Gone),
    };
    match played {
        Ok(after) => Ok(after.or(last.then_some(Ending::Fin))),
        Err(Gone) => {
            ledger.abandon();
            Err(Gone)
        }
    }
}

/// Returns when the client closed or reset the connection.
async fn hang_up(read: &mut ReadHalf<'_>) {
    let mut next = [0];
    if let Ok(1..) = read.peek(&mut next).await {
        // It sent its next request early. A disconnect will show when we write.
        pending::<()>().await;
    }
}

/// Closes cleanly, because closing a socket with unread bytes would send RST instead of FIN.
async fn drain(mut stream: TcpStream) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let mut scrap = [0; 4096];
    while let Ok(1..) = stream.read(&mut scrap).await {}
}
