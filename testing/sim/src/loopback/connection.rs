//! One connection: reads requests and sends replies until one side ends it.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::net::TcpStream;

use super::Reply;
use super::http2;
use super::ledger::Ledger;
use super::playback::{self, After, Http1};
use super::reply::Ending;
use super::request_reader::{Refusal, RequestReader};
use super::secure::{Handshake, Stream};

pub(super) async fn serve(stream: TcpStream, handshake: Option<Handshake>, ledger: Arc<Ledger>) {
    let connected = ledger.connect();
    // Each write should be a separate packet, as far as the operating system allows.
    let _ = stream.set_nodelay(true);
    let greeted = match handshake {
        None => Ok((Stream::Plain(stream), None)),
        Some(handshake) => Stream::greet(stream, handshake).await,
    };
    let (mut stream, ending) = match greeted {
        Ok((stream, Some(http2))) => http2::serve(stream, http2, &ledger, connected.number).await,
        Ok((stream, None)) => speak(stream, &ledger, connected.number).await,
        Err(_) => return ledger.fail_handshake(),
    };
    match ending {
        Some(Ending::Reset) => {
            let _ = stream.tcp().set_zero_linger();
        }
        // Below TLS, which does not say goodbye.
        Some(Ending::Truncated) => drain(stream.tcp()).await,
        Some(_) => drain(&mut stream).await,
        None => {}
    }
}

/// Speaks HTTP/1.1 until one side ends it. Returns how the server does; `None` if the client did.
async fn speak(mut stream: Stream, ledger: &Ledger, connection: usize) -> (Stream, Option<Ending>) {
    let mut reader = RequestReader::default();
    loop {
        let (mut read, mut write) = tokio::io::split(stream);
        let ending = exchange(&mut read, &mut write, &mut reader, ledger, connection).await;
        stream = read.unsplit(write);
        match ending {
            Ok(None) => {}
            Ok(ending) => return (stream, ending),
            Err(Gone) => return (stream, None),
        }
    }
}

/// The client disconnected.
struct Gone;

/// Handles one request and its reply.
async fn exchange(
    read: &mut ReadHalf<Stream>,
    write: &mut WriteHalf<Stream>,
    reader: &mut RequestReader,
    ledger: &Ledger,
    connection: usize,
) -> Result<After, Gone> {
    let (reply, last) = match reader.next(read, connection).await {
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
    let mut wire = Http1(write);
    let played = tokio::select! {
        biased;
        played = playback::play(&reply, &mut wire) => played.map_err(|_| Gone),
        () = reader.hang_up(read) => Err(Gone),
    };
    match played {
        Ok(after) => Ok(after.or(last.then_some(Ending::Fin))),
        Err(Gone) => {
            ledger.abandon();
            Err(Gone)
        }
    }
}

/// Closes cleanly, because closing a socket with unread bytes would send RST instead of FIN.
async fn drain(stream: &mut (impl AsyncRead + tokio::io::AsyncWrite + Unpin)) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let mut scrap = [0; 4096];
    while let Ok(1..) = stream.read(&mut scrap).await {}
}
