//! Protocols spoken over a socket.

use axum::extract::ws::Message;
use everturn_wire::ConversationId;

/// A protocol over sockets: how to read a frame, carry out its command, and produce the messages for the peer.
///
/// The sockets handle everything else: their number, the number of concurrent commands, and the peer's pace.
pub trait Protocol: Clone + Send + Sync + 'static {
    /// The command of a frame.
    type Command: Clone + Send + 'static;
    /// Identifies a command in a rejection, so that the peer knows which one was rejected.
    type About: Send + 'static;
    /// The result of a command, to be applied to the socket.
    type Outcome: Send + 'static;
    /// The messages for the peer of one socket.
    type News: News;

    /// The close reason when the server shuts down, with advice for the peer.
    const GOODBYE: &'static str;

    /// Returns the messages for the peer of a new socket.
    fn news(&self) -> Self::News;

    /// Reads a text frame.
    fn read(&self, frame: &str, news: &mut Self::News) -> Read<Self::Command, Self::About>;

    /// Carries out a command, in its own task.
    fn carry_out(&self, command: Self::Command)
    -> impl Future<Output = Result<Self::Outcome, String>> + Send;

    /// Whether an urgent command took effect. Otherwise, it is repeated once the commands before it have ended.
    fn has_reached(outcome: &Self::Outcome) -> bool;

    /// Applies a result to the socket. Returns an answer if the peer gets one.
    fn settle(outcome: Self::Outcome, news: &mut Self::News) -> Option<Message>;

    /// Returns the answer to a rejected command.
    fn refuse(about: Self::About, why: &str, news: &mut Self::News) -> Message;

    /// Returns the message that the socket has reached its limit of streams, with advice.
    fn full(limit: usize) -> String;

    /// Returns the answer to an invalid frame. `None` closes the socket, because the protocol has no such answer.
    fn complaint(why: &str) -> Option<Message>;
}

/// The messages for the peer of one socket, except answers to commands.
pub trait News: Send {
    /// Returns the next message; pending while there is none. Cancel-safe: dropping the future loses no message.
    fn next(&mut self, streams_first: bool) -> impl Future<Output = Message> + Send;

    /// Returns the number of streams sent to the peer.
    fn streams(&self) -> usize;
}

/// The result of reading a frame.
#[derive(Debug)]
pub enum Read<C, A> {
    /// A command to carry out.
    Command(Asked<C, A>),
    /// Already carried out.
    Done,
    /// Rejected with this answer.
    Refused(Message),
    /// Invalid, with the reason.
    NotUnderstood(String),
}

/// A command with its requirements.
#[derive(Debug)]
pub struct Asked<C, A> {
    /// The command.
    pub command: C,
    /// Identifies the command in a rejection.
    pub about: A,
    /// The conversation whose commands are carried out in order.
    pub conversation: Option<ConversationId>,
    /// Its order relative to earlier commands.
    pub urgency: Urgency,
    /// Whether it adds a stream.
    pub adds_stream: bool,
}

/// The order of a command relative to earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// It waits for all earlier commands of its conversation.
    Ordered,
    /// Like `Ordered`, and it starts a turn.
    Starts,
    /// It waits for none. If it had no effect, it is repeated once an earlier command has started a turn.
    Urgent,
}
