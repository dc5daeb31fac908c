//! The state of the model: a log, three nodes, what is under way between them, and a person with one command.

use crate::turns::{Facts, Id};

/// The number of nodes.
pub const NODES: usize = 3;

/// The oldest age that is told apart, in ticks of 1.5 s: older than a proof may be, and long enough to take over.
pub const OLD: u8 = 2;

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// The journal.
    pub log: Log,
    /// The nodes.
    pub nodes: [Node; NODES],
    /// Appends on their way to the log.
    pub sent: Vec<Append>,
    /// Live events on their way to the last node.
    pub live: Vec<Live>,
    /// Commands on their way to a node, or their replies on the way back.
    pub posts: Vec<Post>,
    /// The person.
    pub client: Option<Client>,
    /// Whether the wait is over.
    pub is_due: bool,
    /// What may still go wrong.
    pub left: Budget,
    /// What has happened.
    pub seen: Seen,
}

/// The journal of one conversation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Log {
    /// The writer of each append: its node, and how many appends that node had given up.
    pub entries: Vec<(u8, u8)>,
    /// The unsealed turn.
    pub turn: Option<Id>,
    /// The number of the last turn.
    pub number: u8,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Node {
    /// Its process has ended.
    pub is_dead: bool,
    /// The conversation in its memory.
    pub held: Option<Held>,
    /// The version of a turn that it is about to take over, and how long ago it read it.
    pub undecided: Option<(u8, u8)>,
    /// How many appends it gave up.
    pub given_up: u8,
    /// The commands that have arrived, one bit each.
    pub heard: u8,
}

/// A conversation in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Held {
    /// Its version.
    pub version: u8,
    /// Its unsealed turn, as last saved.
    pub turn: Option<Id>,
    /// The number of its last turn.
    pub number: u8,
    /// The seat.
    pub driver: Driver,
}

/// Who drives a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Driver {
    /// Nobody: there is no unsealed turn.
    Empty,
    /// Another node.
    Elsewhere(u8),
    /// Nobody: the turn waits, or was just loaded.
    Parked,
    /// A session.
    Session(Session),
}

/// A session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Session {
    /// The age of its proof.
    pub proof: u8,
    /// Whether the tool was started.
    pub has_started: bool,
    /// Whether the tool is allowed for the conversation, as read when the session began.
    pub granted: bool,
    /// The append that it waits for.
    pub saving: Option<Saving>,
    /// What it does once it has saved the turn that it took up.
    pub then: Option<Then>,
}

/// Why a session took up a turn that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Then {
    /// To carry out the person's command.
    Command(Owed),
    /// Its call is no longer on hold.
    Release,
}

/// An append that a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Saving {
    /// How long ago it was sent.
    pub age: u8,
    /// The unsealed turn after it.
    pub next: Option<Id>,
    /// The number of that turn.
    pub number: u8,
    /// What it says.
    pub facts: Facts,
    /// The command that it carries out.
    pub owes: Option<Owed>,
    /// The log's answer: the version, or that it is stale.
    pub answer: Option<Result<u8, Stale>>,
}

/// An append that came too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stale;

/// Whom a session owes a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owed {
    /// The person at this node.
    Here,
    /// The node that sent this command.
    Post(u8),
}

/// An append on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Append {
    /// Its node.
    pub node: u8,
    /// How many appends that node had given up.
    pub given_up: u8,
    /// The version that it must follow.
    pub expected: u8,
    /// The turn that it is about.
    pub of: u8,
    /// The unsealed turn after it.
    pub next: Option<Id>,
    /// The number of the last turn after it.
    pub number: u8,
    /// What it says.
    pub facts: Facts,
}

/// An append as the last node hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Live {
    /// The version before it.
    pub previous: u8,
    /// Its version.
    pub version: u8,
    /// Its node.
    pub owner: u8,
    /// The unsealed turn after it.
    pub turn: Option<Id>,
    /// The number of the last turn after it.
    pub number: u8,
}

/// A command on its way, or its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Post {
    /// The node that it is for.
    pub to: u8,
    /// Which of the sender's requests it is.
    pub serial: u8,
    /// The turn that its sender saw.
    pub seen: Option<u8>,
    /// The wait that its sender saw.
    pub wait: Option<Id>,
    /// The version that its sender saw.
    pub version: u8,
    /// The reply.
    pub reply: Option<Reply>,
}

/// The reply of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reply {
    /// Whether it had an effect.
    Done(bool),
    /// Another node drives the conversation.
    NotHere,
    /// It is not known whether it had an effect.
    Unknown,
}

/// What a person does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Stops the turn.
    Stop,
    /// Sends a message.
    Enqueue,
    /// Allows the tool for the conversation.
    Allow,
    /// Skips the wait.
    RetryNow,
}

/// A person at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    /// The node.
    pub at: u8,
    /// What they do.
    pub command: Command,
    /// The turn that it is meant for, once it is known.
    pub meant: Option<Option<u8>>,
    /// The wait that it is meant to end, once it is known.
    pub meant_retry: Option<Option<Id>>,
    /// Whether it was sent to another node.
    pub has_sent: bool,
    /// Whether a node that is gone may have carried it out.
    pub is_unanswered: bool,
    /// How often it was tried.
    pub tries: u8,
    /// How far it is.
    pub stage: Stage,
}

/// How far a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// It is about to be tried.
    Ready,
    /// It is carried out at its own node.
    Here,
    /// It was sent to a node.
    Sent(u8),
    /// Its own node takes the turn of this one over.
    TakesOver(u8),
    /// The person was told that it had an effect, or none, or that this is not known.
    Told(Option<bool>),
}

/// What may still go wrong, or happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Processes that end.
    pub crashes: u8,
    /// Nodes that are taken for gone although they are not: frozen, or cut off.
    pub doubts: u8,
    /// Appends that a node gives up, although they may be stored later.
    pub give_ups: u8,
    /// Commands that arrive twice.
    pub doubles: u8,
    /// Replies that the person does not wait for.
    pub timeouts: u8,
    /// Live events that are lost.
    pub losses: u8,
    /// Turns that people begin.
    pub begins: u8,
    /// Calls on hold that are released early.
    pub releases: u8,
    /// Ticks between an append and what follows it: how slow nodes and the log may be.
    pub slow: u8,
}

/// What has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seen {
    /// Starts of the tool, by turn.
    pub starts: [u8; 2],
    /// Seals, by turn.
    pub seals: [u8; 2],
    /// Whether the log says that the call was interrupted, by turn.
    pub reported: [bool; 2],
    /// Whether it was stopped, by turn.
    pub stopped: [bool; 2],
    /// How often the message was added.
    pub added: u8,
    /// How often the message was said.
    pub said: u8,
    /// How often a person ended a wait.
    pub hurried: u8,
    /// A person allowed the tool for the conversation.
    pub allowed: bool,
    /// The permission is stored.
    pub granted: bool,
    /// What went wrong.
    pub wrong: Option<&'static str>,
}

impl Log {
    /// Its version.
    pub fn version(&self) -> u8 {
        u8::try_from(self.entries.len()).unwrap_or(u8::MAX)
    }

    /// The node that wrote the last append.
    pub fn owner(&self) -> u8 {
        self.entries.last().map_or(0, |(node, _)| *node)
    }
}

impl Driver {
    /// The session, if there is one.
    pub fn session(&self) -> Option<&Session> {
        match self {
            Self::Session(session) => Some(session),
            _ => None,
        }
    }

    /// The session, if it waits for no append.
    pub fn idle(&self) -> Option<&Session> {
        self.session().filter(|session| session.saving.is_none())
    }
}
