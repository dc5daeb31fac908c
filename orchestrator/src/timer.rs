//! The one timer index: who is parked, and until when.

use std::{
    collections::BTreeMap,
    future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use everturn_kernel::{Millis, Wait};
use everturn_wire::ConversationId;
use tokio::sync::Notify;

use crate::{Clock, Error, Orchestrator, orchestrator::Shared, telemetry::Present};

/// Before every other moment: the place in the index of a turn that is to go on as soon as it may.
pub(crate) const AT_ONCE: Millis = Millis(0);

/// A turn under which the journal failed is tried again at the next whole multiple of this, in milliseconds: so it has
/// one place in the index then, however often it is tried in between as somebody asks for it.
const TRY_AGAIN_MS: u64 = 10_000;

/// The longest sleep: then the clock is looked at again, as it may have been set, or the machine suspended.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// So many turns are woken in a row, then the timer pauses: a thousand in a second, however many are due. After a long
/// suspend that may be all of them, and they ask the same few providers.
const IN_A_ROW: u32 = 50;
const PAUSE: Duration = Duration::from_millis(50);

/// How often one turn is woken while the journal fails, however many are due: it shows whether the journal works again.
const PROBE: Duration = Duration::from_secs(1);

/// Conversations whose turn is parked, the earliest first. A hint: the journal knows what is true.
#[derive(Default)]
pub(crate) struct Timers {
    parked: Mutex<BTreeMap<(Millis, ConversationId), Parked>>,
    /// Told when there is an earlier one, or no orchestrator any more.
    changed: Arc<Notify>,
    runs: AtomicBool,
    journal_fails: AtomicBool,
}

/// A parked turn counts as one that is active and waits.
struct Parked {
    _active: Present,
    _waiting: Present,
}

impl Timers {
    /// It is awake already.
    pub(crate) fn remove(&self, wait: Wait, id: &ConversationId) {
        let places = [Some(AT_ONCE), wait.due_at()];
        let mut parked = self.lock();
        for at in places.into_iter().flatten() {
            parked.remove(&(at, id.clone()));
        }
    }

    /// Whether the journal failed when it was used last.
    pub(crate) fn journal_fails(&self, fails: bool) {
        self.journal_fails.store(fails, Ordering::Relaxed);
    }

    /// How many may be woken in a row, and for how long it pauses then.
    fn pace(&self) -> (u32, Duration) {
        if self.journal_fails.load(Ordering::Relaxed) { (1, PROBE) } else { (IN_A_ROW, PAUSE) }
    }

    fn insert(&self, at: Millis, id: ConversationId) {
        let mut parked = self.lock();
        let is_first = parked.first_key_value().is_none_or(|((first, _), _)| at < *first);
        parked
            .insert((at, id), Parked { _active: Present::active_turn(), _waiting: Present::waiting_turn() });
        drop(parked);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// The first one if its time has come; else how long there is until then.
    fn due(&self, now: Millis) -> Result<ConversationId, Option<Duration>> {
        let mut parked = self.lock();
        match parked.first_entry() {
            Some(first) if first.key().0 <= now => Ok(first.remove_entry().0.1),
            Some(first) => Err(Some(Duration::from_millis(first.key().0.since(now)))),
            None => Err(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Millis, ConversationId), Parked>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

/// Wakes the conversation then.
pub(crate) fn wake_at(shared: &Arc<Shared>, at: Millis, id: ConversationId) {
    shared.timers.insert(at, id);
    if !shared.timers.runs.swap(true, Ordering::Relaxed) {
        tokio::spawn(run(Arc::downgrade(shared), shared.clock.clone(), shared.timers.changed.clone()));
    }
}

/// Wakes the conversation when the journal may work again.
pub(crate) fn try_again(shared: &Arc<Shared>, id: ConversationId) {
    let times = shared.clock.now().0 / TRY_AGAIN_MS;
    wake_at(shared, Millis((times + 1).saturating_mul(TRY_AGAIN_MS)), id);
}

/// Wakes parked turns when their time has come, for as long as there is an orchestrator.
async fn run(shared: Weak<Shared>, clock: Arc<dyn Clock>, changed: Arc<Notify>) {
    let mut in_a_row = 0;
    while let Some(strong) = shared.upgrade() {
        let (most, pause) = strong.timers.pace();
        if in_a_row >= most {
            drop(strong);
            clock.sleep(pause).await;
            in_a_row = 0;
            continue;
        }
        match strong.timers.due(clock.now()) {
            Ok(id) => {
                wake(strong, id).await;
                in_a_row += 1;
            }
            Err(left) => {
                drop(strong);
                in_a_row = 0;
                idle(left, clock.as_ref(), &changed).await;
            }
        }
    }
}

/// Until the first turn may be due, the clock should be looked at again, or there is an earlier turn.
async fn idle(left: Option<Duration>, clock: &dyn Clock, changed: &Notify) {
    let sleep = async {
        match left {
            Some(left) => clock.sleep(left.min(LOOK_AGAIN)).await,
            None => future::pending().await,
        }
    };
    tokio::select! {
        // In a fixed order, so that a simulation replays.
        biased;
        () = changed.notified() => {}
        () = sleep => {}
    }
}

async fn wake(shared: Arc<Shared>, id: ConversationId) {
    let orchestrator = Orchestrator::of(shared);
    match orchestrator.find(&id).await {
        Ok(conversation) => {
            // Too early: the journal failed as it was taken up, and its wait goes on.
            let shared = orchestrator.shared();
            let wait = conversation.parked().filter(|wait| wait.lasts(shared.clock.now()));
            if let Some(at) = wait.and_then(Wait::due_at) {
                shared.timers.insert(at, id);
            }
        }
        Err(error @ Error::Journal(_)) => {
            tracing::error!(conversation = %id, %error, "a parked turn could not be woken yet");
            orchestrator.shared().timers.journal_fails(true);
            try_again(orchestrator.shared(), id);
        }
        // Somebody deleted it, or another version of this program must go on with it.
        Err(error) => tracing::error!(conversation = %id, %error, "a parked turn cannot be woken"),
    }
}
