//! Running calls of a connection, and the delivery of progress and log messages to them.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use everturn_wire::{ConversationId, OutputStream};
use rmcp::model::{DEFAULT_MRTR_MAX_ROUNDS, ElicitRequestParams, ElicitResult, ProgressToken};
use tokio::sync::{mpsc, oneshot};

/// Maximum number of messages queued for display per call. Messages beyond that are dropped.
const PLACES: usize = 256;

/// Maximum number of progress messages kept before their call is registered.
const EARLY: usize = 64;

/// How often a server may ask during a call.
const MOST_QUESTIONS: usize = DEFAULT_MRTR_MAX_ROUNDS;

/// Maximum number of conversations that are remembered, because the server may still work for them.
const MOST_LEFT: usize = 64;

/// Shown when a question of a server cannot be put to anybody.
const AMBIGUOUS: &str =
    "The server asked a question that may have been for another conversation: it was declined.\n";

/// A message from a server during a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) stream: OutputStream,
    pub(crate) text: String,
}

/// A question of the server for the person behind a call.
pub(crate) struct Asked {
    pub(crate) params: ElicitRequestParams,
    pub(crate) reply: oneshot::Sender<ElicitResult>,
}

/// What a server says during a call.
pub(crate) struct Heard {
    pub(crate) pieces: mpsc::Receiver<Piece>,
    pub(crate) questions: mpsc::Receiver<Asked>,
}

/// The running calls of a connection.
#[derive(Default)]
pub(crate) struct Calls(Mutex<Running>);

#[derive(Default)]
struct Running {
    calls: HashMap<ProgressToken, Call>,
    /// How many calls have begun.
    begun: u64,
    /// Conversations of calls that ended without an answer: the server may still work on them, and ask. The latest ones.
    left: VecDeque<ConversationId>,
    /// Progress of calls that are not registered yet. The token of a call is known only after it was sent, when
    /// progress may already have arrived.
    early: VecDeque<(ProgressToken, Piece)>,
}

struct Call {
    /// Of all calls that have begun, its number.
    number: u64,
    conversation_id: ConversationId,
    pieces: mpsc::Sender<Piece>,
    questions: mpsc::Sender<Asked>,
    /// How often the server asked.
    asked: usize,
}

impl Calls {
    /// Registers a call. Returns what the server says about it from its beginning.
    pub(crate) fn begin(&self, token: ProgressToken, conversation_id: ConversationId) -> Heard {
        let (sender, pieces) = mpsc::channel(PLACES);
        let (asker, questions) = mpsc::channel(1);
        let mut running = self.running();
        running.begun += 1;
        running.early.retain(|(of, piece)| {
            let is_its = *of == token;
            if is_its {
                let _ = sender.try_send(piece.clone());
            }
            !is_its
        });
        let call =
            Call { number: running.begun, conversation_id, pieces: sender, questions: asker, asked: 0 };
        running.calls.insert(token, call);
        Heard { pieces, questions }
    }

    /// The call is over. `is_answered`: whether the server is done with it, too.
    pub(crate) fn end(&self, token: &ProgressToken, is_answered: bool) {
        let mut running = self.running();
        let Some(Call { conversation_id, .. }) = running.calls.remove(token).filter(|_| !is_answered) else {
            return;
        };
        if !running.left.contains(&conversation_id) {
            if running.left.len() == MOST_LEFT {
                running.left.pop_front();
            }
            running.left.push_back(conversation_id);
        }
    }

    /// Delivers progress of a call.
    pub(crate) fn progress(&self, token: ProgressToken, piece: Piece) {
        let mut running = self.running();
        if let Some(call) = running.calls.get(&token) {
            // If the reader cannot keep up, only outdated progress is lost.
            let _ = call.pieces.try_send(piece);
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
        for call in running.calls.values() {
            let _ = call.pieces.try_send(piece.clone());
        }
        !running.calls.is_empty()
    }

    /// Returns where to put a question that names no call: to the newest one, unless the question may be for another conversation;
    /// then all of them are told that it was declined.
    pub(crate) fn asker(&self) -> Option<mpsc::Sender<Asked>> {
        let mut running = self.running();
        let Running { calls, left, .. } = &mut *running;
        let newest = calls.values().max_by_key(|call| call.number)?.number;
        let of = |call: &&mut Call| call.number == newest;
        let id = calls.values().find(|call| call.number == newest)?.conversation_id.clone();
        if calls.values().all(|call| call.conversation_id == id) && left.iter().all(|left| *left == id) {
            let call = calls.values_mut().find(of)?;
            call.asked += 1;
            return (call.asked <= MOST_QUESTIONS).then(|| call.questions.clone());
        }
        for call in running.calls.values() {
            let piece = Piece { stream: OutputStream::Stderr, text: AMBIGUOUS.to_owned() };
            let _ = call.pieces.try_send(piece);
        }
        None
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
        let mut pieces = calls.begin(token(1), "a".into()).pieces;
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
        let mut pieces = calls.begin(token(5000), "a".into()).pieces;
        assert!(calls.log(&piece("all")));
        assert_eq!(pieces.try_recv(), Ok(piece("all")));
        calls.end(&token(5000), true);
        assert!(!calls.log(&piece("nobody")));
    }
    #[tokio::test]
    async fn a_question_goes_to_the_newest_call_unless_it_may_be_for_another_conversation() {
        let calls = Calls::default();
        assert!(calls.asker().is_none());
        let params: ElicitRequestParams = serde_json::from_value(serde_json::json!({
            "message": "Which?", "requestedSchema": { "type": "object", "properties": {} },
        }))
        .unwrap();
        let (mut first, mut second) = (calls.begin(token(1), "a".into()), calls.begin(token(2), "a".into()));
        let (reply, _answer) = oneshot::channel();
        assert!(calls.asker().unwrap().send(Asked { params, reply }).await.is_ok());
        assert!(second.questions.try_recv().is_ok() && first.questions.try_recv().is_err());
        let mut other = calls.begin(token(3), "b".into());
        assert!(calls.asker().is_none());
        for call in [&mut first, &mut second, &mut other] {
            assert_eq!(call.pieces.try_recv().unwrap().text, AMBIGUOUS);
        }
        calls.end(&token(3), true);
        for _ in 0..MOST_QUESTIONS - 1 {
            assert!(calls.asker().is_some());
        }
        assert!(calls.asker().is_none(), "it asks too often");
        // The server may still work for a call that nobody waits for any more.
        calls.begin(token(4), "b".into());
        calls.end(&token(4), false);
        calls.begin(token(5), "a".into());
        assert!(calls.asker().is_none());
    }
}
