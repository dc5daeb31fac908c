//! Calls that run on a connection, and where what the server says meanwhile belongs.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use everturn_wire::OutputStream;
use rmcp::model::ProgressToken;
use tokio::sync::mpsc;

/// Pieces that may wait to be shown for a call. What a server says beyond that, faster than it is shown, is dropped.
const PLACES: usize = 256;

/// Progress that may come before its call is known here.
const EARLY: usize = 64;

/// What a server says while it runs a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) stream: OutputStream,
    pub(crate) text: String,
}

/// The calls that run on a connection.
#[derive(Default)]
pub(crate) struct Calls(Mutex<Running>);

#[derive(Default)]
struct Running {
    pieces: HashMap<ProgressToken, mpsc::Sender<Piece>>,
    /// A call's token is known only after it was sent, when progress may have come already.
    early: VecDeque<(ProgressToken, Piece)>,
}

impl Calls {
    /// What is said about the call with that token, from its beginning.
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

    /// Progress of a call.
    pub(crate) fn progress(&self, token: ProgressToken, piece: Piece) {
        let mut running = self.running();
        if let Some(call) = running.pieces.get(&token) {
            // Who watches cannot follow: what is lost is progress that is over.
            let _ = call.try_send(piece);
            return;
        }
        if running.early.len() == EARLY {
            running.early.pop_front();
        }
        running.early.push_back((token, piece));
    }

    /// A log message, which names no call: it is shown with all that run. Says whether any does.
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
    fn progress_that_comes_before_its_call_is_known_is_not_lost() {
        let calls = Calls::default();
        calls.progress(token(1), piece("early"));
        calls.progress(token(2), piece("of another"));
        let mut pieces = calls.begin(token(1));
        calls.progress(token(1), piece("late"));
        assert_eq!((pieces.try_recv(), pieces.try_recv()), (Ok(piece("early")), Ok(piece("late"))));
        assert!(pieces.try_recv().is_err());
    }

    #[test]
    fn what_belongs_to_no_call_is_bounded() {
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
