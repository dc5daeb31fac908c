//! The health of targets, shared by all turns of the process and saved for the next one.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use everturn_kernel::{Health, Millis, StreamEvent, Target};
use everturn_wire::{Category, Failure};
use futures_util::{Stream, StreamExt as _, stream};
use http::{HeaderMap, StatusCode};
use tokio::sync::watch;

use crate::{
    JournalError, StateStore,
    notice::{Notice, NoticeSender, ago},
    state::save_changes,
};

/// The name of the health's document in the store.
const NAME: &str = "health";

/// A mark that ends at least this much later than one that is known is told to other nodes, in milliseconds.
const SAYS_MORE_MS: u64 = 1_000;

const MINUTE_MS: u64 = 60_000;

/// Whether a failure does not depend on the network, the keys or the configuration of the node that it happened to.
fn is_of_all_nodes(failure: &Failure) -> bool {
    use Category::{Overloaded, QuotaExhausted, RateLimited, ServerError};
    let is_of_target = matches!(failure.category, QuotaExhausted | Overloaded | ServerError | RateLimited);
    is_of_target && failure.unreached.is_none()
}

/// What a provider answered to a call that was passed through: status, headers and body.
pub(crate) type Refusal = (StatusCode, HeaderMap, Bytes);
type Rejection = (Failure, Option<Refusal>);

/// The health of targets, shared by all turns, and by all nodes as far as it does not depend on one of them.
#[derive(Debug, Default)]
pub(crate) struct SharedHealth {
    health: Mutex<Health>,
    /// What was said when a key was last rejected, by credential, and all of it if the call was passed through. Only valid while the key is marked.
    rejections: Mutex<HashMap<String, Rejection>>,
    /// Notified of every change.
    changed: watch::Sender<()>,
    pub(crate) notices: NoticeSender,
}

impl SharedHealth {
    /// Restores what an earlier process knew, and saves changes from now on.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn keep_in(
        self: &Arc<Self>,
        store: Arc<dyn StateStore>,
        now: Millis,
    ) -> Result<(), JournalError> {
        match store.read(NAME).await?.as_deref().map(serde_json::from_str::<Health>) {
            Some(Ok(mut known)) => {
                known.tidy(now);
                // The configuration may have changed.
                known.forget_rejected_keys();
                *self.lock() = known;
            }
            // From another version, or damaged. It is only valid for minutes, and will be found out again.
            Some(Err(error)) => tracing::warn!(%error, "what was known about targets cannot be read"),
            None => {}
        }
        let json = |health: &Self| serde_json::to_string(&health.copy());
        tokio::spawn(save_changes(NAME, Arc::downgrade(self), self.changed.subscribe(), store, json));
        Ok(())
    }

    pub(crate) fn failed(&self, now: Millis, target: &Target, failure: &Failure) {
        if failure.category == Category::Auth {
            self.rejections().insert(target.credential.clone(), (failure.clone(), None));
        }
        let is_new = self.note(now, target, failure);
        self.changed.send_replace(());
        if is_new && is_of_all_nodes(failure) {
            let (target, category) = (target.name.clone(), failure.category);
            self.notices.tell(&Notice::Failed { target, category, hint_ms: failure.hint_ms });
        }
    }

    /// Lets rejected keys be asked again, because something changed.
    pub(crate) fn forget_rejected_keys(&self) {
        if self.lock().forget_rejected_keys() {
            self.changed.send_replace(());
        }
    }

    /// Returns the refusal that a call would get because its key was rejected a short while ago, told as known from before.
    pub(crate) fn rejection(&self, now: Millis, target: &Target) -> Option<Failure> {
        let mark = *self.lock().rejected_key(now, target)?;
        let failure = self.rejections().get(&target.credential)?.0.clone();
        let ago = match now.since(mark.at) / MINUTE_MS {
            0 => "just now".to_owned(),
            minutes => format!("{minutes} min ago"),
        };
        let known = format!(
            "The key of {} was rejected {ago}. It is not sent again for {} min, unless it is replaced, its provider or the retry \
             settings are changed, the server restarts, or you ask to try again.",
            target.credential,
            mark.until.since(now).div_ceil(MINUTE_MS),
        );
        let advice = failure.advice.iter().map(String::as_str).chain([known.as_str()]);
        Some(Failure { advice: Some(advice.collect::<Vec<_>>().join(" ")), ..failure })
    }

    /// Returns the provider's own answer to the last call whose key it rejected.
    pub(crate) fn refusal(&self, target: &Target) -> Option<Refusal> {
        self.rejections().get(&target.credential)?.1.clone()
    }

    /// Keeps the provider's own answer to a call whose key it just rejected.
    pub(crate) fn keep_refusal(&self, target: &Target, refusal: Refusal) {
        if let Some(rejection) = self.rejections().get_mut(&target.credential) {
            rejection.1 = Some(refusal);
        }
    }

    /// `now`: when it answered.
    pub(crate) fn answered(&self, asked_at: Millis, target: &Target, now: Millis) {
        if self.lock().clear(asked_at, target) {
            self.changed.send_replace(());
            let asked_ms_ago = now.since(asked_at);
            self.notices.tell(&Notice::Answered { target: target.name.clone(), asked_ms_ago });
        }
    }

    /// Applies a notice of another node about this target.
    pub(crate) fn hear(&self, notice: &Notice, target: &Target, now: Millis) {
        match notice {
            Notice::Failed { category, hint_ms, .. } => {
                let failure = Failure { hint_ms: *hint_ms, ..Failure::new(*category, true, "") };
                if is_of_all_nodes(&failure) {
                    self.note(now, target, &failure);
                }
            }
            Notice::Answered { asked_ms_ago, .. } => _ = self.lock().clear(ago(now, *asked_ms_ago), target),
            Notice::Closed(_)
            | Notice::Caller(_)
            | Notice::Demand { .. }
            | Notice::Probing { .. }
            | Notice::Opened { .. } => {}
        }
    }

    /// Marks a target. Returns whether that says more than was known.
    fn note(&self, now: Millis, target: &Target, failure: &Failure) -> bool {
        let mut health = self.lock();
        health.tidy(now);
        let known = health.free_at(now, target);
        health.note(now, target, failure);
        health.free_at(now, target).since(known) >= SAYS_MORE_MS
    }

    /// Returns a copy of the current health.
    pub(crate) fn copy(&self) -> Health {
        self.lock().clone()
    }

    fn rejections(&self) -> MutexGuard<'_, HashMap<String, Rejection>> {
        self.rejections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        // Each change is one call, so a panic leaves the value consistent.
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes on a call's events, and records how its target does. Like the turn, treats an end without content and a
/// stream without a terminal event as failures.
pub(crate) fn watched<S>(
    events: S,
    target: Target,
    health: Arc<SharedHealth>,
    now: impl Fn() -> Millis + Send + 'static,
) -> impl Stream<Item = StreamEvent> + Send
where
    S: Stream<Item = StreamEvent> + Send + Unpin + 'static,
{
    let mut call = Call { asked_at: now(), has_content: false, is_over: false };
    let end = stream::once(async {}).map(|()| None);
    events.map(Some).chain(end).filter_map(move |event| {
        match &event {
            Some(StreamEvent::Failed(failure)) if !call.is_over => {
                call.is_over = true;
                health.failed(now(), &target, failure);
            }
            Some(StreamEvent::Finished(_)) if call.has_content => {
                call.is_over = true;
                health.answered(call.asked_at, &target, now());
            }
            Some(StreamEvent::Text(text) | StreamEvent::Reasoning(text)) => {
                call.has_content |= !text.is_empty();
            }
            Some(StreamEvent::ToolCall(_) | StreamEvent::Opaque) => call.has_content = true,
            Some(StreamEvent::Finished(_)) | None if !call.is_over => {
                call.is_over = true;
                let failure =
                    Failure::new(Category::InvalidResponse, true, "the answer had no content or no end");
                health.failed(now(), &target, &failure);
            }
            _ => {}
        }
        std::future::ready(event)
    })
}

/// The part of a call's state that its target's health depends on.
struct Call {
    asked_at: Millis,
    has_content: bool,
    is_over: bool,
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use everturn_kernel::FinishReason;

    use super::*;

    /// Returns what is known about a target after a call that took a millisecond per event; `known`: when a failure of
    /// another call was recorded.
    async fn after(events: Vec<StreamEvent>, known: Option<u64>) -> Option<(Millis, Category)> {
        let (health, clock) = (Arc::<SharedHealth>::default(), Arc::new(AtomicU64::new(100)));
        let target = Target::new("work", "m");
        let limited = Failure::new(Category::RateLimited, true, "HTTP 429");
        if let Some(at) = known {
            health.failed(Millis(at), &target, &limited);
        }
        let now = move || Millis(clock.fetch_add(1, Ordering::Relaxed));
        let events = watched(stream::iter(events), target.clone(), health.clone(), now);
        events.for_each(|_| async {}).await;
        health.copy().mark(Millis(200), &target).map(|mark| (mark.at, mark.category))
    }

    #[tokio::test]
    async fn a_mark_is_moved_back_with_the_clock() {
        let (store, target) = (Arc::new(crate::MemoryState::new()), Target::new("work", "m"));
        let mut known = Health::new();
        let failure =
            Failure { hint_ms: Some(60_000), ..Failure::new(Category::QuotaExhausted, true, "used up") };
        known.note(Millis(7_200_000), &target, &failure);
        store.write(NAME, serde_json::to_string(&known).unwrap()).await.unwrap();
        let health = Arc::<SharedHealth>::default();
        health.keep_in(store, Millis(100)).await.unwrap();
        assert_eq!(health.copy().free_at(Millis(100), &target), Millis(60_100));
        health.answered(Millis(101), &target, Millis(102));
        assert_eq!(health.copy().free_at(Millis(103), &target), Millis(103));
    }

    #[tokio::test]
    async fn an_answer_clears_what_was_known_before_its_call() {
        let answer = || vec![StreamEvent::Text("hi".into()), StreamEvent::Finished(FinishReason::Stop)];
        assert_eq!(after(answer(), Some(100)).await, None);
        let later = Some((Millis(101), Category::RateLimited));
        assert_eq!(after(answer(), Some(101)).await, later, "it says nothing about what came since");
    }

    #[tokio::test]
    async fn what_is_no_answer_is_a_failure() {
        let invalid = Some((Millis(101), Category::InvalidResponse));
        assert_eq!(
            after(vec![StreamEvent::Finished(FinishReason::Stop)], None).await,
            invalid,
            "nothing said"
        );
        assert_eq!(after(vec![StreamEvent::Text("hi".into())], None).await, invalid, "no end");
        let failure = Failure::new(Category::Overloaded, true, "HTTP 529");
        let failed = after(vec![StreamEvent::Failed(failure)], None).await;
        assert_eq!(failed, Some((Millis(101), Category::Overloaded)));
    }
}
