//! A thread that reads the keyboard. Dropping it waits for the thread to end, so that it takes no input from others.
//!
//! `crossterm::event::EventStream` does not wait for its thread, which could swallow a line typed at the next prompt.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crossterm::event::{self, Event};
use tokio::sync::mpsc;

/// Poll interval, and so the longest wait for the thread to end.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub(super) struct Listener {
    /// Unbounded, so that no keypress is lost.
    events: mpsc::UnboundedReceiver<io::Result<Event>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    pub(super) fn start() -> io::Result<Self> {
        let (sender, events) = mpsc::unbounded_channel();
        let ends = Arc::new(AtomicBool::new(false));
        let is_over = ends.clone();
        let thread = thread::Builder::new().name("keys".to_owned()).spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let event = match event::poll(LOOK_AGAIN) {
                    Ok(false) => continue,
                    Ok(true) => event::read(),
                    Err(error) => Err(error),
                };
                let is_gone = event.is_err();
                let _ = sender.send(event);
                if is_gone {
                    return;
                }
            }
        })?;
        Ok(Self { events, ends, thread: Some(thread) })
    }

    /// The next event; `None` if the terminal is gone. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<io::Result<Event>> {
        self.events.recv().await
    }
}

impl Listener {
    /// Stops the thread and returns the events that were not consumed.
    pub(super) fn rest(&mut self) -> Vec<Event> {
        self.end();
        std::iter::from_fn(|| self.events.try_recv().ok()).flatten().collect()
    }

    fn end(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.end();
    }
}
