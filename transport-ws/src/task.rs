//! Runs a command in its own task. Others may wait for what it holds, so it must not wait for its own peer.

use std::{any::Any, panic::AssertUnwindSafe};

use everturn_wire::ConversationId;
use futures_util::FutureExt as _;
use tokio::{
    sync::{mpsc::UnboundedSender, oneshot},
    time::{Duration, sleep},
};

/// How long commands may continue after their socket has ended.
const AFTERWARDS: Duration = Duration::from_secs(30);
const BROKE: &str = "the command broke off; the server's log says why";

/// A command as counted by its socket.
pub(crate) struct Begun<A> {
    pub(crate) number: u64,
    /// Identifies the command in a rejection.
    pub(crate) about: A,
    pub(crate) id: Option<ConversationId>,
    /// Whether it adds a stream.
    pub(crate) promised: bool,
    pub(crate) bytes: usize,
}

/// A command that has ended.
pub(crate) struct Done<O, A> {
    pub(crate) begun: Begun<A>,
    /// The outcome, or the error message for the peer.
    pub(crate) outcome: Result<O, String>,
}

/// Executes a command, even if its socket ends meanwhile. Reports its success to the socket, then to the commands that
/// wait for it.
pub(crate) fn begin<O: Send + 'static, A: Send + 'static>(
    command: impl Future<Output = Result<O, String>> + Send + 'static,
    begun: Begun<A>,
    socket: UnboundedSender<Done<O, A>>,
    ended: oneshot::Sender<bool>,
) {
    let mut command = AssertUnwindSafe(command).catch_unwind().boxed();
    // Poll once here, because tasks start in any order, but commands must start in the order they were read.
    if let Some(outcome) = command.as_mut().now_or_never() {
        return end(outcome, begun, &socket, ended);
    }
    tokio::spawn(async move {
        let given_up = async {
            socket.closed().await;
            sleep(AFTERWARDS).await;
        };
        tokio::select! {
            outcome = command => end(outcome, begun, &socket, ended),
            () = given_up => {}
        }
    });
}

fn end<O, A>(
    outcome: Result<Result<O, String>, Box<dyn Any + Send>>,
    begun: Begun<A>,
    socket: &UnboundedSender<Done<O, A>>,
    ended: oneshot::Sender<bool>,
) {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(_) => {
            tracing::error!(
                conversation = begun.id.as_ref().map(ConversationId::as_str),
                "a command panicked"
            );
            Err(BROKE.to_owned())
        }
    };
    let is_ok = outcome.is_ok();
    // The socket first, so that it learns of the commands of a conversation in order. The socket may have ended, and
    // nobody may be waiting.
    let _ = socket.send(Done { begun, outcome });
    let _ = ended.send(is_ok);
}

#[cfg(test)]
mod tests {
    use tokio::{sync::mpsc::unbounded_channel, task::yield_now};

    use super::*;

    #[tokio::test]
    async fn a_command_that_panics_has_ended_like_any_other() {
        for turns in [0, 1] {
            let (socket, mut dones) = unbounded_channel();
            let (ended, is_ended) = oneshot::channel();
            let begun = Begun { number: 7, about: (), id: Some("c".into()), promised: true, bytes: 5 };
            let command = async move {
                for _ in 0..turns {
                    yield_now().await;
                }
                panic!("it broke")
            };
            begin::<(), ()>(command, begun, socket, ended);
            let Done { begun, outcome } = dones.recv().await.unwrap();
            assert_eq!((begun.number, begun.id, begun.promised, begun.bytes), (7, Some("c".into()), true, 5));
            assert_eq!(outcome.err().as_deref(), Some(BROKE));
            assert_eq!(is_ended.await, Ok(false));
        }
    }
}
