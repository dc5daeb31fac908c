//! The events of a subscription, for dialects.

use std::collections::VecDeque;

use everturn_dialect::Event;
use everturn_orchestrator::{Error, Frame, SubscribeFrom, Subscription, View};
use everturn_wire::{AgentEvent, ConversationId, EventBody, TurnId};
use futures_util::{
    FutureExt as _, StreamExt as _,
    stream::{self, BoxStream},
};

/// The events of a subscription. Waiting for the next one is cancel-safe.
pub(crate) struct Events {
    rest: BoxStream<'static, Result<Frame, Error>>,
    /// Events that were taken and put back.
    first: VecDeque<Frame>,
}

/// The turn that was running when it was subscribed to.
pub(crate) struct Running {
    pub(crate) turn_id: TurnId,
    /// The `seq` from which on it supersedes the conversation.
    pub(crate) supersedes: Option<u64>,
    /// Its events, from its start.
    pub(crate) events: Events,
}

impl Events {
    pub(crate) fn of(subscription: Subscription) -> Self {
        let rest = stream::unfold(subscription, async |mut subscription| {
            let event = subscription.next().await;
            Some((event, subscription))
        });
        Self { rest: rest.boxed(), first: VecDeque::new() }
    }

    /// Subscribes to the running turn from its start; `None` if none is running.
    pub(crate) async fn of_running(
        orchestrator: &View,
        id: &ConversationId,
    ) -> Result<Option<Running>, Error> {
        let mut events = Self::of(orchestrator.subscribe(id, SubscribeFrom::RunningTurn, true).await?);
        // After subscribing, so that the events of a turn that begins in between are not missed.
        if !orchestrator.status(id).await?.is_active {
            return Ok(None);
        }
        let mut first = VecDeque::new();
        loop {
            let frame = events.next().await?;
            let event = serde_json::from_slice::<AgentEvent>(&frame.event()).ok();
            let Some((turn_id, body)) = event.and_then(|event| Some((event.turn_id?, event.body))) else {
                continue;
            };
            first.push_back(frame);
            let supersedes = match body {
                // The start of its turn follows.
                EventBody::UserMessage { .. } => continue,
                EventBody::TurnStart { supersedes, .. } => supersedes,
                _ => None,
            };
            events.first = first;
            return Ok(Some(Running { turn_id, supersedes, events }));
        }
    }

    pub(crate) async fn next(&mut self) -> Result<Frame, Error> {
        match self.first.pop_front() {
            Some(first) => Ok(first),
            // A subscription ends only with an error.
            None => self.rest.next().await.unwrap_or(Err(Error::ShuttingDown)),
        }
    }

    /// Returns the next event if it is already available.
    pub(crate) fn ready(&mut self) -> Option<Result<Frame, Error>> {
        self.next().now_or_never()
    }
}

/// Passes a frame on as an event.
pub(crate) fn translate(frame: &Frame, push: impl FnOnce(&Event<'_>)) {
    if let Some((text, is_reasoning)) = frame.delta() {
        let Ok(text) = str::from_utf8(&text) else { return };
        return push(&if is_reasoning { Event::Reasoning(text) } else { Event::Text(text) });
    }
    match serde_json::from_slice::<AgentEvent>(&frame.event()) {
        Ok(event) => push(&Event::Other(&event.body)),
        Err(error) => tracing::error!(%error, "an event cannot be read"),
    }
}
