//! What nodes learn of changes to the list of conversations. No event is lost, but a node that was cut off only learns that
//! it missed some.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use everturn_orchestrator::{
    Head, Journal as _, JournalError, ListBus, ListEvent, Listed, NodeId, Wait, kernel::Millis,
};
use everturn_wire::ConversationId;
use futures_util::{FutureExt as _, stream::BoxStream};
use tokio::sync::mpsc;

use super::{Shared, State, ports::stream};

/// A node's receiver of changes.
pub(super) struct ListFollower {
    node: NodeId,
    sender: mpsc::UnboundedSender<ListEvent>,
    /// Whether something changed while it was cut off.
    missed: bool,
}

impl ListFollower {
    pub(super) fn is_of(&self, node: &NodeId) -> bool {
        self.node == *node
    }
}

/// A node's view of the list.
pub(super) struct NodeList {
    pub(super) node: NodeId,
    pub(super) shared: Arc<Shared>,
}

#[async_trait]
impl ListBus for NodeList {
    async fn follow(&self) -> Result<BoxStream<'static, ListEvent>, JournalError> {
        self.shared.reach(&self.node).await;
        let (sender, receiver) = mpsc::unbounded_channel();
        let follower = ListFollower { node: self.node.clone(), sender, missed: false };
        self.shared.lock().list.push(follower);
        Ok(stream(receiver))
    }

    fn waits(&self, ids: &[&ConversationId]) -> Vec<(ConversationId, Wait)> {
        let unsealed = self.shared.journal.unsealed(Millis(u64::MAX)).now_or_never();
        let unsealed = unsealed.expect("memory does not wait").expect("memory does not fail");
        let waits: HashMap<_, _> = unsealed.into_iter().map(|turn| (turn.id, turn.wait)).collect();
        ids.iter().filter_map(|id| Some(((*id).clone(), *waits.get(id)?))).collect()
    }
}

impl Shared {
    /// Returns what the list shows of a conversation.
    pub(super) fn listed(&self, id: &ConversationId) -> Option<Listed> {
        let stored = self.journal.load(id).now_or_never().expect("memory does not wait");
        let stored = stored.expect("memory does not fail")?;
        Some(Listed { id: id.clone(), head: stored.head, wait: stored.turn.map(|turn| turn.wait) })
    }

    /// Tells a node that is connected again that it missed something, if it did.
    pub(super) fn tell_missed(&self, node: &NodeId) {
        for follower in self.lock().list.iter_mut().filter(|follower| follower.node == *node) {
            if std::mem::take(&mut follower.missed) {
                let _ = follower.sender.send(ListEvent::Missed);
            }
        }
    }
}

impl State {
    /// Tells all other nodes what a node has changed, if the list shows it. `was`: before the change.
    pub(super) fn list_changed(
        &mut self,
        id: &ConversationId,
        from: &NodeId,
        was: Option<&Listed>,
        is: Option<Listed>,
    ) {
        let shown =
            |head: &Head| (head.status, head.title.clone(), head.model.clone(), head.end_reason.clone());
        let event = match (was, is) {
            _ if id.is_ephemeral() => return,
            (None, None) => return,
            (Some(was), Some(is)) if shown(&was.head) == shown(&is.head) => return,
            (_, Some(is)) => ListEvent::Changed(is),
            (Some(_), None) => ListEvent::Removed(id.clone()),
        };
        let Self { list, cut_off, cuts, .. } = self;
        list.retain_mut(|follower| {
            if follower.node == *from {
                return !follower.sender.is_closed();
            }
            let cut = cuts.get(&follower.node).copied().unwrap_or_default();
            if cut_off.contains(&follower.node) || cut.bus.blocks_in() {
                follower.missed = true;
                return true;
            }
            follower.sender.send(event.clone()).is_ok()
        });
    }
}
