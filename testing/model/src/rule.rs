//! The rules of the protocol. Each can be broken, to see that the checker notices.

use crate::setting::Setting;

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// An append is stored only at the version that it expects.
    AppendCompares,
    /// Of an append whose answer is not known, the log says whether it is this one: by its id, not by its node.
    LooksForOwnAppend,
    /// An append whose outcome is not known is neither taken for stored nor repeated: the conversation is loaded anew.
    UnknownIsLoadedAnew,
    /// A node whose append is stale drops its copy.
    StaleDropsTheCopy,
    /// Whoever takes a turn over loads it anew.
    AdoptsFromTheLog,
    /// Whoever takes a turn up decides what the crash means for it (`Input::Recover`).
    Recovers,
    /// A call is saved before it starts.
    SavesBeforeTheTool,
    /// A call starts only soon after an append.
    ProofIsRecent,
    /// The age of a proof is counted from when its append was sent.
    ProofAgesFromSending,
    /// Whoever takes over waits before it decides about calls that may be starting.
    WaitsForCalls,
    /// That wait begins anew if something was saved meanwhile.
    WaitsPerVersion,
    /// A command that names a turn does nothing to another one, at the owner.
    OwnerComparesTurns,
    /// Nor at its sender, after it has changed hands.
    SenderComparesTurns,
    /// A command is not judged before its node knows what the sender saw.
    KnowsWhatTheSenderSaw,
    /// A *retry now* ends no other wait than its sender saw, at the owner.
    OwnerComparesWaits,
    /// Nor, at its sender, another wait than the one that it was meant for.
    SenderComparesWaits,
    /// Its sender does not say that it had no effect if a node that is gone may have carried it out.
    UnansweredIsUnknown,
    /// A node carries out and answers a command once, although it arrives twice.
    RepeatedCommandsOnce,
    /// The owner looks in the events whether a message came before.
    OwnerLooksForMessage,
    /// So does its sender, after it has changed hands.
    SenderLooksForMessage,
    /// A reply comes after the append that makes it true.
    RepliesAfterSaving,
    /// What a person allowed is stored after the append with their answer.
    GrantsAfterSaving,
    /// A queued message begins the next turn in the append that seals the last one.
    NextTurnInTheSeal,
    /// A follower that misses an append reads the journal.
    GapsAreRead,
    /// A follower ignores what it knows.
    KnownIsIgnored,
    /// Turns of nodes that are gone are taken over.
    HeirsTakeOver,
    /// A node finds a turn that was stored after it gave the append up.
    FindsOwnTurns,
    /// Whoever takes a waiting turn over keeps its wait.
    KeepsWaits,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 28] = [
        Self::AppendCompares,
        Self::LooksForOwnAppend,
        Self::UnknownIsLoadedAnew,
        Self::StaleDropsTheCopy,
        Self::AdoptsFromTheLog,
        Self::Recovers,
        Self::SavesBeforeTheTool,
        Self::ProofIsRecent,
        Self::ProofAgesFromSending,
        Self::WaitsForCalls,
        Self::WaitsPerVersion,
        Self::OwnerComparesTurns,
        Self::SenderComparesTurns,
        Self::KnowsWhatTheSenderSaw,
        Self::OwnerComparesWaits,
        Self::SenderComparesWaits,
        Self::UnansweredIsUnknown,
        Self::RepeatedCommandsOnce,
        Self::OwnerLooksForMessage,
        Self::SenderLooksForMessage,
        Self::RepliesAfterSaving,
        Self::GrantsAfterSaving,
        Self::NextTurnInTheSeal,
        Self::GapsAreRead,
        Self::KnownIsIgnored,
        Self::HeirsTakeOver,
        Self::FindsOwnTurns,
        Self::KeepsWaits,
    ];

    /// The setting in which breaking it is noticed soonest.
    pub fn shows_in(self) -> &'static str {
        match self {
            Self::AppendCompares
            | Self::StaleDropsTheCopy
            | Self::AdoptsFromTheLog
            | Self::Recovers
            | Self::SavesBeforeTheTool
            | Self::ProofIsRecent
            | Self::ProofAgesFromSending
            | Self::WaitsForCalls
            | Self::WaitsPerVersion
            | Self::HeirsTakeOver => "a tool, a freeze",
            Self::LooksForOwnAppend | Self::UnknownIsLoadedAnew | Self::FindsOwnTurns => {
                "a tool, a late append"
            }
            Self::OwnerComparesTurns
            | Self::SenderComparesTurns
            | Self::KnowsWhatTheSenderSaw
            | Self::UnansweredIsUnknown => "a stop, a freeze",
            Self::OwnerLooksForMessage => "a message that arrives twice",
            Self::SenderLooksForMessage => "a message, a freeze",
            Self::RepliesAfterSaving | Self::NextTurnInTheSeal => "a message, a crash",
            Self::RepeatedCommandsOnce => "an approval that arrives twice",
            Self::GrantsAfterSaving => "an approval, a crash",
            Self::OwnerComparesWaits | Self::SenderComparesWaits => Setting::LONG,
            Self::KeepsWaits => "a wait, a freeze",
            Self::GapsAreRead | Self::KnownIsIgnored => "a watcher",
        }
    }
}
