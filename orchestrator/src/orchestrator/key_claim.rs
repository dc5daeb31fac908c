//! One key, one turn, whatever conversation a request names.
//!
//! A turn is found by its key in the conversations that the key gives a request without one. If the request names another, an empty
//! ephemeral conversation of the key says which: the claim. It has no turn, and the other conversation in place of its model.

use std::time::Duration;

use everturn_kernel::Millis;
use everturn_wire::{ConversationId, ConversationStatus};

use super::{Orchestrator, request_key::RequestKey, start::Begun};
use crate::{Commit, Cursor, Error, Head, JournalError, Version};

/// How long a claim is kept after its request. Turns may wait for days.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How long a claim without a turn is honoured: the turn may be starting at another node.
const STARTING: Duration = Duration::from_secs(30);

impl Orchestrator {
    /// Returns the turn that was started with this key, in this conversation or in any that the key may have been used for.
    ///
    /// # Errors
    /// When the key was used for another request.
    pub(super) async fn find_begun(&self, id: &ConversationId, key: &RequestKey) -> Result<Begun, Error> {
        let [lasting, ephemeral] = key.conversations();
        let claimed = self.claimed(&ephemeral).await?.map(|(claimed, ..)| claimed);
        for place in [Some(lasting), Some(ephemeral), claimed].into_iter().flatten() {
            if place != *id
                && let Begun::With(begun) = self.begun_with(&place, key).await?
            {
                return Ok(Begun::With(begun));
            }
        }
        self.begun_with(id, key).await
    }

    /// Claims the key for a turn in this conversation. Returns the claim.
    ///
    /// # Errors
    /// When another node is using it for another conversation.
    pub(super) async fn claim_key(
        &self,
        id: &ConversationId,
        key: &RequestKey,
    ) -> Result<ConversationId, Error> {
        let [_, place] = key.conversations();
        loop {
            let now = self.ports.clock.now();
            let claimed = self.claimed(&place).await?;
            let version = match &claimed {
                Some((claimed, ..)) if claimed == id => return Ok(place),
                Some((claimed, since, _)) if now.since(*since) < millis(STARTING) => {
                    let why = format!("which is starting in conversation {claimed}: try again in a minute");
                    return Err(Error::KeyUsed { turn_id: key.turn_id(), why });
                }
                Some((.., version)) => *version,
                None => {
                    self.ports.journal.load(&place).await?.map(|stored| stored.version).unwrap_or_default()
                }
            };
            match self.ports.journal.append(&place, version, Commit::new(claim(id, now))).await {
                Ok(_) => return Ok(place),
                // Another node claimed it first, so it is looked at again.
                Err(JournalError::Stale { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Gives up the claim of a turn that did not start. If that fails, the claim lapses soon.
    pub(super) async fn give_up_key(&self, claim: &ConversationId) {
        if let Err(error) = self.ports.journal.remove(claim).await {
            tracing::warn!(%error, "the claim of an idempotency key could not be removed: it lapses in {STARTING:?}");
        }
    }

    /// Returns the conversation that a claim is for, since when, and its version.
    async fn claimed(
        &self,
        place: &ConversationId,
    ) -> Result<Option<(ConversationId, Millis, Version)>, Error> {
        let Some(stored) = self.ports.journal.load(place).await? else { return Ok(None) };
        let is_claim =
            stored.turn.is_none() && stored.head.last_seq == 0 && stored.head.end == Cursor::default();
        let claimed =
            stored.head.model.filter(|_| is_claim).and_then(|id| ConversationId::parse_any(&id).ok());
        Ok(claimed.map(|claimed| (claimed, stored.head.created_at, stored.version)))
    }
}

/// The head of a claim. It is kept longer than other ephemeral conversations.
fn claim(id: &ConversationId, now: Millis) -> Head {
    Head {
        created_at: now,
        last_activity_at: now.plus(millis(KEPT)),
        title: "The claim of an idempotency key".to_owned(),
        status: ConversationStatus::Idle,
        end_reason: None,
        model: Some(id.as_str().to_owned()),
        end: Cursor::default(),
        last_seq: 0,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
