//! Who drives unsealed turns, for journals that several processes share.

use std::fmt;

use everturn_kernel::Wait;
use everturn_wire::ConversationId;

/// A process that shares a journal with others. Each start of a process is a node of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub String);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<&str> for NodeId {
    fn from(id: &str) -> Self {
        Self(id.to_owned())
    }
}

/// A conversation with an unsealed turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsealed {
    /// The conversation.
    pub id: ConversationId,
    /// What its turn waits for.
    pub wait: Wait,
    /// The node that drives it. `None`: the journal is not shared.
    pub owner: Option<NodeId>,
}

impl Unsealed {
    /// An unsealed turn in a journal that is not shared.
    pub fn new(id: ConversationId, wait: Wait) -> Self {
        Self { id, wait, owner: None }
    }
}
