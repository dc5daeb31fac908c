//! Running calls of a connection, and the delivery of progress and log messages to them.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use everturn_wire::OutputStream;
use rmcp::model::ProgressToken;
use tokio::sync::mpsc;

/// Maximum number of messages queued for display per call. Messages beyond that are dropped.
const PLACES: usize = 256;

/// Maximum number of progress messages kept before their call is registered.
const EARLY: usize = 64;

/// A message from a server during a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) stream: OutputStream,
    pub(crate) text: String,
}

/// The running calls of a connection.
#[derive(Default)]
pub(crate) struct Calls(Mutex<Running>);

#[derive(Default)]
struct Running {
    pieces: HashMap<ProgressToken, mpsc::Sender<Piece>>,
    /// Progress of calls that are not registered yet. The token of a call is known only after it was sent, when
    /// progress may already have arrived.
    early: VecDeque<(ProgressToken, Piece)>,
}

impl Calls {
    /// Registers a call. Returns its messages from its beginning.
    pub(crate) fn begin(&self, token: ProgressToken) -> mpsc::Receiver<Piece> {
        let (sender, receiver) = mpsc::channel(PLACES);
        let mut running = self.running();
        running.early.retain(|(of, piece)| {
            let is_its = *of == token;
            if is_its {
                let _ = sender.try_send(piece.clone());
            }
            !is_its
        });
        running.pieces.insert(token, sender);
        receiver
    }

    pub(crate) fn end(&self, token: &ProgressToken) {
        self.running().pieces.remove(token);
    }

    /// Delivers progress of a call.
    pub(crate) fn progress(&self, token: ProgressToken, piece: Piece) {
        let mut running = self.running();
        if let Some(call) = running.pieces.get(&token) {
            // If the reader cannot keep up, only outdated progress is lost.
            let _ = call.try_send(piece);
            return;
        }
        if running.early.len() == EARLY {
            running.early.pop_front();
        }
        running.early.push_back((token, piece));
    }

    /// Delivers a log message, which names no call, to all running calls. Returns whether there are any.
    pub(crate) fn log(&self, piece: &Piece) -> bool {
        let running = self.running();
        for call in running.pieces.values() {
            let _ = call.try_send(piece.clone());
        }
        !running.pieces.is_empty()
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;

    use super::*;

    fn token(number: i64) -> ProgressToken {
        ProgressToken(NumberOrString::Number(number))
    }

    fn piece(text: &str) -> Piece {
        Piece { stream: OutputStream::Stdout, text: text.to_owned() }
    }

    #[test]
    fn progress_that_arrives_before_its_call_is_registered_is_kept() {
        let calls = Calls::default();
        calls.progress(token(1), piece("early"));
        calls.progress(token(2), piece("of another"));
        let mut pieces = calls.begin(token(1));
        calls.progress(token(1), piece("late"));
        assert_eq!((pieces.try_recv(), pieces.try_recv()), (Ok(piece("early")), Ok(piece("late"))));
        assert!(pieces.try_recv().is_err());
    }

    #[test]
    fn notifications_without_a_call_are_bounded() {
        let calls = Calls::default();
        for number in 0..1000 {
            calls.progress(token(number), piece("unknown"));
        }
        assert_eq!(calls.running().early.len(), EARLY);
        assert!(!calls.log(&piece("nobody")));
        let mut pieces = calls.begin(token(5000));
        assert!(calls.log(&piece("all")));
        assert_eq!(pieces.try_recv(), Ok(piece("all")));
        calls.end(&token(5000));
        assert!(!calls.log(&piece("nobody")));
    }
}
