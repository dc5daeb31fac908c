//! What can go wrong between a node and the log, and between nodes.

use std::time::Duration;

use everturn_orchestrator::NodeId;

use super::State;

/// How long a client repeats a request to the log or to the membership before it gives up.
pub(super) const GIVE_UP: Duration = Duration::from_secs(10);

/// How much later an append or a command may arrive, at most, in milliseconds.
pub(super) const LATE_MS: u64 = 4_000;

/// What happens to messages on their way, each with this probability.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noise {
    /// A live event is lost.
    pub lost: f64,
    /// A live event arrives twice.
    pub doubled: f64,
    /// A live event arrives after the next one.
    pub late: f64,
    /// An append is stored, but its answer is lost.
    pub unknown: f64,
    /// An append is not stored, and its node does not learn that.
    pub unsent: f64,
    /// An append is stored up to 4 s after its node was told that its outcome is unknown, if it still can be.
    pub delayed: f64,
    /// What happens to commands.
    pub commands: Carriage,
}

/// What happens to commands and their replies, each with this probability.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Carriage {
    /// It is lost.
    pub lost: f64,
    /// A command arrives twice; the first reply counts.
    pub doubled: f64,
    /// It arrives up to 4 s late.
    pub late: f64,
}

/// What a node cannot reach, and what does not reach it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Between it and the log.
    pub log: Way,
    /// Between it and other nodes: streamed text, commands and live appends.
    pub bus: Way,
    /// Between it and the membership.
    pub members: Way,
    /// Commands to it are refused at once, as if the node did not exist. Otherwise they arrive when it is connected again.
    pub refuses: bool,
}

/// A way that is blocked, as seen from the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// None.
    #[default]
    Open,
    /// What the node sends does not arrive.
    Out,
    /// What is sent to the node does not arrive.
    In,
    /// Neither arrives.
    Both,
}

/// A period in which the log has no leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Election {
    /// Requests fail at once. Otherwise they wait for its end; what was just being appended is stored or not.
    pub fails: bool,
    /// The membership is not available either.
    pub members: bool,
}

/// What became of an append, as shown to a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is stored.
    Stored,
    /// It is stored. Its node may not be told.
    Lost,
    /// It is stored, after its node was told that its outcome is unknown.
    Late,
    /// It is not stored, at least not now, and its node was told that it failed or that its outcome is unknown.
    Failed,
}

/// The course that an append takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    Direct,
    /// It is stored, and its answer is lost.
    Lost,
    /// It is lost.
    Unsent,
    /// It is lost for now, and stored later.
    Delayed,
    /// It is stored at once, but its answer only arrives once the log can be reached.
    Unanswered,
    /// It is stored once the log can be reached.
    Held,
    /// It fails at once.
    Refused,
}

impl Way {
    pub(super) fn blocks_out(self) -> bool {
        matches!(self, Self::Out | Self::Both)
    }

    pub(super) fn blocks_in(self) -> bool {
        matches!(self, Self::In | Self::Both)
    }
}

impl State {
    /// What a node is cut off from, apart from everything.
    pub(super) fn cut(&self, node: &NodeId) -> Cut {
        self.cuts.get(node).copied().unwrap_or_default()
    }

    /// Whether a node can use the log.
    pub(super) fn log_is_open(&self, node: &NodeId) -> bool {
        self.election.is_none() && self.cut(node).log == Way::Open
    }

    /// The blocked way between a node and the membership.
    pub(super) fn way_to_members(&self, node: &NodeId) -> Way {
        match self.election {
            Some(Election { members: true, .. }) => Way::Both,
            _ => self.cut(node).members,
        }
    }

    /// Chooses the course of an append by this node.
    pub(super) fn course(&mut self, node: &NodeId) -> Course {
        match (self.election, self.cut(node).log) {
            (Some(Election { fails: true, .. }), _) => Course::Refused,
            // Some were already stored when the leader was lost.
            (Some(_), _) if self.random.u8(0..4) == 0 => Course::Unanswered,
            (Some(_), _) | (None, Way::Out | Way::Both) => Course::Held,
            (None, Way::In) => Course::Unanswered,
            (None, Way::Open) => {
                let Noise { unknown, unsent, delayed, .. } = self.noise;
                let mut left = self.random.f64();
                for (chance, course) in
                    [(unknown, Course::Lost), (unsent, Course::Unsent), (delayed, Course::Delayed)]
                {
                    if left < chance {
                        return course;
                    }
                    left -= chance;
                }
                Course::Direct
            }
        }
    }

    /// Returns after how many milliseconds each copy of a command arrives.
    pub(super) fn copies(&mut self) -> Vec<u64> {
        let Carriage { lost, doubled, .. } = self.noise.commands;
        if self.random.f64() < lost {
            return Vec::new();
        }
        let count = if self.random.f64() < doubled { 2 } else { 1 };
        (0..count).map(|_| self.delay()).collect()
    }

    /// Returns after how many milliseconds a reply arrives; `None` = it is lost.
    pub(super) fn reply(&mut self) -> Option<u64> {
        let lost = self.noise.commands.lost;
        (self.random.f64() >= lost).then(|| self.delay())
    }

    fn delay(&mut self) -> u64 {
        if self.random.f64() < self.noise.commands.late { self.random.u64(0..LATE_MS) } else { 0 }
    }
}
