//! The steps of the model.

/// A step. Numbers are nodes, or places in a list of what is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An append arrives at the log.
    Arrive(usize),
    /// A node learns what became of its append.
    Learn(usize),
    /// A node gives its append up.
    GiveUp(usize),
    /// A node loads the conversation.
    Load(usize),
    /// A node follows what it has not heard of.
    CatchUp(usize),
    /// A live event arrives at the last node.
    Hear(usize),
    /// A live event is lost.
    Lose(usize),
    /// A node takes up the turn that is parked there.
    Resume(usize),
    /// The provider answers.
    Provider(usize),
    /// The turn's own alarm rings.
    Alarm(usize),
    /// A gate lets go of a call on hold.
    Release(usize),
    /// The tool starts.
    Start(usize),
    /// A session saves its turn again, to prove that it drives it.
    SaveAgain(usize),
    /// The tool is done.
    ToolDone(usize),
    /// A node takes over the turn of one that is gone.
    TakeOver(usize),
    /// A node takes over from one that is only frozen or cut off.
    TakeOverInDoubt(usize),
    /// A person begins a turn.
    Begin(usize),
    /// A process ends.
    Crash(usize),
    /// Time passes: 1.5 s.
    Tick,
    /// The turn's wait is over.
    Due,
    /// The person's command is tried.
    Command,
    /// A command arrives.
    Deliver(usize),
    /// A command arrives, and will arrive again.
    DeliverTwice(usize),
    /// A reply arrives.
    Reply(usize),
    /// The node that a command was sent to is gone.
    NoOwner,
    /// It was gone before the command arrived, and its sender knows.
    NoNode,
    /// It is taken for gone.
    NoOwnerInDoubt,
    /// The person waits no longer.
    Timeout,
}
