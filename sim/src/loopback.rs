//! A scripted HTTP/1.1 server on the loopback interface, byte by byte under the test's control.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket};
use tokio::task::{AbortHandle, JoinSet};

mod connection;
mod gate;
mod intake;
mod ledger;
mod playback;
mod reply;
mod request;

pub use gate::Gate;
pub use ledger::Counts;
pub use reply::Reply;
pub use request::Request;

use ledger::Ledger;

/// A running server. Dropping it closes the port and every connection.
///
/// It runs as tasks of the tokio runtime it was started in, so that a paused clock stays in step with it.
#[derive(Debug)]
pub struct Loopback {
    address: SocketAddr,
    ledger: Arc<Ledger>,
    accepting: AbortHandle,
}

impl Loopback {
    /// Starts a server that answers with the replies in their order, over all connections, then repeats the last one.
    /// An empty script answers every request with a 500 that says so.
    ///
    /// # Panics
    /// When no port of 127.0.0.1 can be bound, or outside a tokio runtime.
    pub async fn start(script: impl IntoIterator<Item = Reply>) -> Self {
        Self::with(in_order(script)).await
    }

    /// Starts a server that asks a closure for each reply. Requests reach it one at a time, in the order of counting.
    ///
    /// # Panics
    /// As [`Loopback::start`].
    pub async fn with(choose: impl FnMut(&Request) -> Reply + Send + 'static) -> Self {
        Self::bind(0, choose).await.expect("a free port on 127.0.0.1")
    }

    /// As [`Loopback::with`], on a port of the caller's choice; 0 is any free one.
    ///
    /// # Errors
    /// When the port cannot be bound.
    pub async fn bind(port: u16, choose: impl FnMut(&Request) -> Reply + Send + 'static) -> io::Result<Self> {
        Self::serve(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?, choose)
    }

    fn serve(
        listener: TcpListener,
        choose: impl FnMut(&Request) -> Reply + Send + 'static,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let ledger = Arc::new(Ledger::new(choose));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&ledger))).abort_handle();
        Ok(Self { address, ledger, accepting })
    }

    /// Where it listens: `http://127.0.0.1:PORT`, without a slash at the end.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests received so far, in the order of counting. The oldest are forgotten once all of them together
    /// take more than 64 MiB; [`Counts::requests`] goes on counting.
    pub fn requests(&self) -> Vec<Request> {
        self.ledger.requests()
    }

    /// The connections accepted so far.
    pub fn connections(&self) -> usize {
        self.counts().connections
    }

    /// What was counted at the socket so far.
    pub fn counts(&self) -> Counts {
        self.ledger.counts()
    }

    /// Waits until what was counted satisfies the test, and tells the counts that did.
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

/// A port of 127.0.0.1 that refuses connections, and that no other process can take meanwhile.
#[derive(Debug)]
pub struct ClosedPort {
    socket: TcpSocket,
    address: SocketAddr,
}

impl ClosedPort {
    /// Takes a free port without listening on it.
    ///
    /// # Errors
    /// When no port can be bound.
    pub fn reserve() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address })
    }

    /// The address where connections are refused: `http://127.0.0.1:PORT`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Begins to listen on the same port, with a script as for [`Loopback::start`].
    ///
    /// # Errors
    /// When the operating system refuses to listen.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open(self, script: impl IntoIterator<Item = Reply>) -> io::Result<Loopback> {
        Loopback::serve(self.socket.listen(1024)?, in_order(script))
    }
}

/// A closure that goes through a script once and then repeats its last reply.
fn in_order(script: impl IntoIterator<Item = Reply>) -> impl FnMut(&Request) -> Reply + Send + 'static {
    let script: Vec<Reply> = script.into_iter().collect();
    let mut turn = 0;
    move |_| {
        let reply = script.get(turn).or(script.last()).cloned();
        turn += 1;
        reply.unwrap_or_else(|| Reply::status(500).body("the script of this loopback server has no reply"))
    }
}

async fn accept(listener: TcpListener, ledger: Arc<Ledger>) {
    // The set owns the connections: aborting this task drops it, and with it every socket.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection::serve(stream, Arc::clone(&ledger)));
                }
                // Out of descriptors, or the peer was quicker than us: let others run, then go on.
                Err(_) => tokio::task::yield_now().await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

#[cfg(test)]
mod tests;
