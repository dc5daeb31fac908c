//! A scripted HTTP server on the loopback interface, controlled by the test byte by byte.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket};
use tokio::task::{AbortHandle, JoinSet};

mod connection;
mod gate;
mod http2;
mod ledger;
mod playback;
mod reply;
mod request;
mod request_reader;
mod secure;
mod settings;
mod window;

pub use gate::Gate;
pub use ledger::Counts;
pub use reply::Reply;
pub use request::Request;
pub use secure::{Handshake, Tls};

use ledger::Ledger;

/// A running server. Dropping it closes the port and every connection.
///
/// It runs as tasks of the current tokio runtime, so that a paused clock stays in step with it.
#[derive(Debug)]
pub struct Loopback {
    address: SocketAddr,
    scheme: &'static str,
    ledger: Arc<Ledger>,
    accepting: AbortHandle,
}

/// Chooses how the connection with this number is greeted; `None` if it is not encrypted.
type Greet = Box<dyn FnMut(usize) -> Option<Handshake> + Send>;

impl Loopback {
    /// Starts a server that answers with the replies in order, over all connections, then repeats the last one. With an
    /// empty script, every request gets a 500.
    ///
    /// # Panics
    /// If no port of 127.0.0.1 can be bound, or outside a tokio runtime.
    pub async fn start(script: impl IntoIterator<Item = Reply>) -> Self {
        Self::with(in_order(script)).await
    }

    /// Starts a server that calls a closure for each reply. Requests are passed to it one at a time, in the order of
    /// their index.
    ///
    /// # Panics
    /// Like [`Loopback::start`].
    pub async fn with(choose: impl FnMut(&Request) -> Reply + Send + 'static) -> Self {
        Self::bind(0, choose).await.expect("a free port on 127.0.0.1")
    }

    /// Like [`Loopback::with`], on this port; 0 selects a free one.
    ///
    /// # Errors
    /// Returns an error if the port cannot be bound.
    pub async fn bind(port: u16, choose: impl FnMut(&Request) -> Reply + Send + 'static) -> io::Result<Self> {
        Self::serve(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?, choose)
    }

    /// Like [`Loopback::with`], for `https`. The first closure chooses how a connection is greeted, given its number, from 0.
    ///
    /// Over HTTP/2, requests are counted and read as over HTTP/1.1, except that their headers are not decoded: the method is
    /// `POST` if there is a body and `GET` otherwise, and the path is empty. A reply's framing has no effect there.
    ///
    /// # Panics
    /// Like [`Loopback::start`].
    pub async fn secured(
        mut greet: impl FnMut(usize) -> Handshake + Send + 'static,
        choose: impl FnMut(&Request) -> Reply + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port on 127.0.0.1");
        let greet = Box::new(move |number| Some(greet(number)));
        let mut served = Self::serve_with(listener, greet, choose).expect("the address of the port");
        served.scheme = "https";
        served
    }

    fn serve(
        listener: TcpListener,
        choose: impl FnMut(&Request) -> Reply + Send + 'static,
    ) -> io::Result<Self> {
        Self::serve_with(listener, Box::new(|_| None), choose)
    }

    fn serve_with(
        listener: TcpListener,
        greet: Greet,
        choose: impl FnMut(&Request) -> Reply + Send + 'static,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let ledger = Arc::new(Ledger::new(choose));
        let accepting = tokio::spawn(accept(listener, greet, Arc::clone(&ledger)));
        Ok(Self { address, scheme: "http", ledger, accepting: accepting.abort_handle() })
    }

    /// Returns the base URL, such as `http://127.0.0.1:PORT`, without a trailing slash.
    pub fn base_url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the requests received so far, by index. The oldest are dropped once all of them together exceed 64 MiB;
    /// [`Counts::requests`] still counts them.
    pub fn requests(&self) -> Vec<Request> {
        self.ledger.requests()
    }

    /// Returns the number of connections accepted so far.
    pub fn connections(&self) -> usize {
        self.counts().connections
    }

    /// Returns the counts at the socket so far.
    pub fn counts(&self) -> Counts {
        self.ledger.counts()
    }

    /// Waits until the counts satisfy the predicate, and returns them.
    pub async fn until(&self, reached: impl FnMut(&Counts) -> bool) -> Counts {
        self.ledger.until(reached).await
    }

    /// Waits until `n` requests have arrived.
    pub async fn arrived(&self, n: usize) {
        self.until(|seen| seen.requests >= n).await;
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A reserved port of 127.0.0.1 that refuses connections.
#[derive(Debug)]
pub struct ClosedPort {
    socket: TcpSocket,
    address: SocketAddr,
}

impl ClosedPort {
    /// Reserves a free port without listening on it.
    ///
    /// # Errors
    /// Returns an error if no port can be bound.
    pub fn reserve() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address })
    }

    /// Returns the URL at which connections are refused: `http://127.0.0.1:PORT`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Starts to listen on the same port, with a script like [`Loopback::start`].
    ///
    /// # Errors
    /// Returns an error if the operating system refuses to listen.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open(self, script: impl IntoIterator<Item = Reply>) -> io::Result<Loopback> {
        Loopback::serve(self.socket.listen(1024)?, in_order(script))
    }
}

/// Returns a closure that plays a script once and then repeats its last reply.
fn in_order(script: impl IntoIterator<Item = Reply>) -> impl FnMut(&Request) -> Reply + Send + 'static {
    let script: Vec<Reply> = script.into_iter().collect();
    let mut turn = 0;
    move |_| {
        let reply = script.get(turn).or(script.last()).cloned();
        turn += 1;
        reply.unwrap_or_else(|| Reply::status(500).body("the script of this loopback server has no reply"))
    }
}

async fn accept(listener: TcpListener, mut greet: Greet, ledger: Arc<Ledger>) {
    // The set owns the connections, so aborting this task drops every socket.
    let mut connections = JoinSet::new();
    let mut numbers = 0..;
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let handshake = numbers.next().and_then(&mut greet);
                    connections.spawn(connection::serve(stream, handshake, Arc::clone(&ledger)));
                }
                // Out of descriptors, or the peer has already left: let others run, then continue.
                Err(_) => tokio::task::yield_now().await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

#[cfg(test)]
mod tests;
