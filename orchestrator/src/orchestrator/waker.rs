//! Resumes turns for the timer.

use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use everturn_kernel::{Input, Wait};
use everturn_wire::{ConversationId, TurnId};

use super::elsewhere::try_adopt;
use crate::{
    Error,
    conversation::{Control, Conversation, Parked},
    registry::{Adopted, Registry},
    relay::Calls,
    session::{self, Ports},
    timer::{Wakes, Woken},
};

/// After how long a turn is looked at again if there is no model yet, in milliseconds.
const WITHOUT_MODELS_MS: u64 = 60_000;

/// Finds conversations for the timer and resumes their turns, as long as the orchestrator or a subscription exists.
#[derive(Clone, Default)]
pub(super) struct Waker(Arc<OnceLock<Parts>>);

type Parts = (Weak<Registry>, Weak<Ports>, Weak<Calls>);

/// The parts that are left. Calls end with the orchestrator, turns only with its subscriptions.
type Left = (Arc<Registry>, Arc<Ports>, Option<Arc<Calls>>);

impl Waker {
    /// Sets the orchestrator's parts. Call it once, before the first wake-up.
    pub(super) fn set(&self, registry: &Arc<Registry>, ports: &Arc<Ports>, calls: &Arc<Calls>) {
        let _ = self.0.set((Arc::downgrade(registry), Arc::downgrade(ports), Arc::downgrade(calls)));
    }

    fn get(&self) -> Option<Left> {
        let (registry, ports, calls) = self.0.get()?;
        Some((registry.upgrade()?, ports.upgrade()?, calls.upgrade()))
    }
}

/// Returns the parked turn if its call was put off by a process that is gone: nobody here lets it go.
fn left_over(ports: &Ports, conversation: &Conversation) -> Option<TurnId> {
    let held = |parked: &Parked| parked.turn.is_held().then(|| parked.turn.id().clone());
    conversation.read_parked(held).flatten().filter(|turn| !ports.pacing.has(turn))
}

#[async_trait]
impl Wakes for Waker {
    async fn wake(&self, id: &ConversationId) -> Woken {
        let Some((registry, ports, calls)) = self.get() else { return Woken::Done };
        let released = ports.pacing.take_released(id);
        if calls.is_some_and(|calls| calls.release(id, released.is_some())) {
            return Woken::Done;
        }
        let found = match registry.get(id).await {
            Ok(conversation) => match (conversation.elsewhere(), &ports.peers) {
                // Its owner wakes it.
                (Some((owner, _)), Some(peers)) if !peers.is_gone(&owner).await => return Woken::Done,
                (Some((owner, _)), _) => match try_adopt(&registry, &ports, id, &owner).await {
                    Ok(Adopted::Now(conversation)) => Ok(conversation),
                    Ok(Adopted::After(left)) => {
                        let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
                        return Woken::Early(ports.clock.now().plus(left));
                    }
                    Err(error) => Err(error),
                },
                (None, _) => Ok(conversation),
            },
            error => error,
        };
        let is_parked = |conversation: &Arc<Conversation>| conversation.parked().is_some();
        if ports.models.now().is_empty() && found.as_ref().is_ok_and(is_parked) {
            return Woken::Early(ports.clock.now().plus(WITHOUT_MODELS_MS));
        }
        let found = found.and_then(|conversation| {
            session::go_on_if_due(&ports, &conversation)?;
            if let Some(turn) = released.or_else(|| left_over(&ports, &conversation))
                && !matches!(conversation.parked(), Some(Wait::Person { .. }))
            {
                let release = Control { turn: Some(turn), ..Control::from(Input::Release) };
                session::send(&ports, &conversation, release)?;
            }
            Ok(conversation)
        });
        match found {
            Ok(conversation) => {
                // Too early: the journal failed when the turn was resumed, or it was only looked at.
                conversation.wake_later(ports.clock.now());
                Woken::Done
            }
            Err(error @ (Error::Journal(_) | Error::NoMemory { .. })) => {
                tracing::error!(conversation = %id, %error, "a parked turn could not be woken yet");
                Woken::NotYet
            }
            Err(error @ Error::Lacks { .. }) => {
                let is_continued = match &ports.peers {
                    Some(peers) => peers.hand_on(id).await,
                    None => false,
                };
                if is_continued {
                    tracing::info!(conversation = %id, %error, "a turn was left to another server");
                } else {
                    tracing::warn!(conversation = %id, %error, "no server can continue a turn");
                }
                Woken::Done
            }
            // The conversation was deleted, or never saved.
            Err(Error::UnknownConversation { .. }) => Woken::Done,
            // Only another version of this program can continue the turn.
            Err(error) => {
                tracing::error!(conversation = %id, %error, "a parked turn cannot be woken");
                Woken::Done
            }
        }
    }
}
