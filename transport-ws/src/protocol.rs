//! What is spoken over a socket.

use axum::extract::ws::Message;
use everturn_wire::ConversationId;

/// A protocol over sockets: what a frame asks for, how that is carried out, and what the peer is told.
///
/// The sockets own the rest: how many there are, how much of what a peer asks for is under way, and its pace.
pub trait Protocol: Clone + Send + Sync + 'static {
    /// What a frame asks for.
    type Command: Clone + Send + 'static;
    /// What a refusal names, so that the peer knows what was refused.
    type About: Send + 'static;
    /// What is left to do for the socket when a command has been carried out.
    type Outcome: Send + 'static;
    /// What the peer of one socket is told.
    type News: News;

    /// Why the socket ends when the server shuts down, and what the peer should do.
    const GOODBYE: &'static str;

    /// Returns what the peer of a new socket is told.
    fn news(&self) -> Self::News;

    /// Understands a text frame.
    fn read(&self, frame: &str, news: &mut Self::News) -> Read<Self::Command, Self::About>;

    /// Carries out a command, in a task of its own.
    fn carry_out(&self, command: Self::Command)
    -> impl Future<Output = Result<Self::Outcome, String>> + Send;

    /// Whether an urgent command reached what it was meant for. Otherwise it is carried out again when those before it
    /// have ended.
    fn has_reached(outcome: &Self::Outcome) -> bool;

    /// Does for the socket what is left to do, and returns an answer if the peer gets one.
    fn settle(outcome: Self::Outcome, news: &mut Self::News) -> Option<Message>;

    /// Returns the answer to a command that was not carried out.
    fn refuse(about: Self::About, why: &str, news: &mut Self::News) -> Message;

    /// Says that the socket has as many streams as it may have, and what to do.
    fn full(limit: usize) -> String;

    /// Returns the answer to a frame that was not understood. `None` closes the socket: the protocol has no such answer.
    fn complaint(why: &str) -> Option<Message>;
}

/// What the peer of one socket is told beside answers.
pub trait News: Send {
    /// Returns the next message; pending while there is none. May be dropped at any time without losing one.
    fn next(&mut self, streams_first: bool) -> impl Future<Output = Message> + Send;

    /// Returns the number of streams that the peer is sent.
    fn streams(&self) -> usize;
}

/// A frame, understood.
#[derive(Debug)]
pub enum Read<C, A> {
    /// Carry this out.
    Command(Asked<C, A>),
    /// It was carried out at once.
    Done,
    /// It is refused with this answer.
    Refused(Message),
    /// It makes no sense.
    NotUnderstood(String),
}

/// A command, and what it needs.
#[derive(Debug)]
pub struct Asked<C, A> {
    /// The command.
    pub command: C,
    /// What a refusal names.
    pub about: A,
    /// The conversation whose commands are carried out one after the other.
    pub conversation: Option<ConversationId>,
    /// How it stands to the commands before it.
    pub urgency: Urgency,
    /// Whether it adds a stream.
    pub adds_stream: bool,
}

/// How a command stands to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// It waits for all before it of its conversation.
    Ordered,
    /// The same, and it starts a turn.
    Starts,
    /// It waits for none; where it reached nobody, it is carried out again when one before it has started a turn.
    Urgent,
}
