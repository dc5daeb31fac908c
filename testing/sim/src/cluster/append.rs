//! Appends to the shared log, on all the courses that they can take.

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::{Appended, Commit, Journal as _, JournalError, LiveEvent, NodeId, Version};
use everturn_wire::ConversationId;
use futures_util::FutureExt as _;

use super::{
    Shared, State,
    fault::{Course, Fate, LATE_MS},
};

/// An append.
pub(super) struct Append {
    pub(super) node: NodeId,
    pub(super) id: ConversationId,
    pub(super) expected: Version,
    pub(super) commit: Commit,
}

impl Append {
    /// Sends it. Returns what its node is told.
    pub(super) async fn send(self, shared: &Arc<Shared>) -> Result<Version, JournalError> {
        shared.reach(&self.node).await;
        let course = shared.lock().course(&self.node);
        match course {
            Course::Direct => self.store(&mut shared.lock(), shared, Fate::Stored),
            Course::Lost => match self.store(&mut shared.lock(), shared, Fate::Lost) {
                Ok(_) => Err(unknown()),
                // A stale one is told so when it is sent again.
                stale => stale,
            },
            Course::Unsent => Err(self.fails(&shared.lock(), unknown())),
            Course::Delayed => Err(self.arrives_late(shared)),
            Course::Refused => {
                let no_leader = JournalError::Storage("there is no leader".to_owned());
                Err(self.fails(&shared.lock(), no_leader))
            }
            Course::Unanswered => {
                let stored = self.store(&mut shared.lock(), shared, Fate::Lost);
                if shared.log_opens(&self.node).await { stored } else { Err(unknown()) }
            }
            Course::Held => {
                if shared.log_opens(&self.node).await {
                    return self.store(&mut shared.lock(), shared, Fate::Stored);
                }
                let arrives = shared.lock().random.bool();
                if arrives {
                    return Err(self.arrives_late(shared));
                }
                Err(self.fails(&shared.lock(), unknown()))
            }
        }
    }

    /// Stores it and announces it, under one lock, so that all are announced in order.
    fn store(&self, state: &mut State, shared: &Shared, fate: Fate) -> Result<Version, JournalError> {
        let Self { node, id, expected, commit } = self;
        let was = shared.listed(id);
        let appended = shared.journal.append(id, *expected, commit.clone()).now_or_never();
        let appended = appended.expect("memory does not wait");
        let Ok(version) = appended else {
            state.appends.stale += 1;
            return appended;
        };
        state.owners.insert(id.clone(), node.clone());
        state.witnessed(self, fate);
        *match fate {
            Fate::Stored => &mut state.appends.stored,
            Fate::Lost => &mut state.appends.unknown,
            Fate::Late | Fate::Failed => &mut state.appends.late,
        } += 1;
        let event =
            Appended { previous: *expected, version, owner: node.clone(), commit: Box::new(commit.clone()) };
        if fate == Fate::Stored {
            state.freeze(node, commit);
        }
        state.publish(id, node, &LiveEvent::Appended(event));
        state.list_changed(id, node, was.as_ref(), shared.listed(id));
        Ok(version)
    }

    /// Has it stored some time after the log can be reached, if it can still be stored. Returns what its node is told now.
    fn arrives_late(self, shared: &Arc<Shared>) -> JournalError {
        let error = self.fails(&shared.lock(), unknown());
        let shared = shared.clone();
        tokio::spawn(async move {
            shared.until(|state| state.log_is_open(&self.node)).await;
            let (ms, has_left) = {
                let mut state = shared.lock();
                (state.random.u64(0..LATE_MS), state.random.bool())
            };
            shared.clock.sleep(Duration::from_millis(ms)).await;
            let mut state = shared.lock();
            // What its process had not sent ends with it.
            if has_left || !state.dead.contains(&self.node) {
                let _ = self.store(&mut state, &shared, Fate::Late);
            }
        });
        error
    }

    fn fails(&self, state: &State, error: JournalError) -> JournalError {
        state.witnessed(self, Fate::Failed);
        error
    }
}

impl State {
    fn witnessed(&self, append: &Append, fate: Fate) {
        if let Some(witness) = &self.witness {
            witness(&append.node, &append.id, &append.commit, fate);
        }
    }
}

fn unknown() -> JournalError {
    JournalError::Unknown("the answer was lost".to_owned())
}
