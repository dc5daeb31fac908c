//! Requests to end the process: Ctrl-C and, where available, SIGTERM.

use std::io;

/// Receives all requests to end, from its creation on. They no longer end the process by themselves.
pub struct Interrupt {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 2],
    #[cfg(windows)]
    signal: tokio::signal::windows::CtrlC,
}

#[cfg(unix)]
impl Interrupt {
    /// Starts to listen.
    ///
    /// # Errors
    /// Returns the system's error if listening is not possible.
    pub fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { signals: [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?] })
    }

    /// Waits for the next request. Cancel-safe.
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
    /// Starts to listen.
    ///
    /// # Errors
    /// Returns the system's error if listening is not possible.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { signal: tokio::signal::windows::ctrl_c()? })
    }

    /// Waits for the next request. Cancel-safe.
    pub async fn next(&mut self) {
        self.signal.recv().await;
    }
}
