//! Being asked to end: Ctrl-C, and where there is such a thing, SIGTERM.

use std::io;

/// Notices every request to end from its making on; they no longer end the process by themselves.
pub struct Interrupt {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 2],
    #[cfg(windows)]
    signal: tokio::signal::windows::CtrlC,
}

#[cfg(unix)]
impl Interrupt {
    /// Listens from now on.
    ///
    /// # Errors
    /// When the system refuses that.
    pub fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { signals: [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?] })
    }

    /// The next request to end. May be dropped at any time.
    pub async fn next(&mut self) {
        let [interrupt, terminate] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

#[cfg(windows)]
impl Interrupt {
    /// Listens from now on.
    ///
    /// # Errors
    /// When the system refuses that.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { signal: tokio::signal::windows::ctrl_c()? })
    }

    /// The next request to end. May be dropped at any time.
    pub async fn next(&mut self) {
        self.signal.recv().await;
    }
}
