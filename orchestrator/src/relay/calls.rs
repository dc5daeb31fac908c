//! All calls: begins them, joins repeated requests to them, and keeps answers that nobody was there to take.

use std::{
    collections::HashMap,
    future,
    path::PathBuf,
    sync::{Arc, MutexGuard, Weak},
    time::Duration,
};

use everturn_wire::{CallInfo, CallPhase, ConversationId};
use tokio::sync::{broadcast, mpsc};

use super::{
    Listener, RelayCall, RelayError,
    body::Room,
    call::{Call, ORDERS, Order},
    choice::{self, Chosen},
    kept::Kept,
    key::CallKey,
    run::{self, Task},
};
use crate::{
    caller::Ended, clock::Clock, memory::Memory, names::Names, new_id, observer::Observers, session::Ports,
    shutdown::Stage, sync::Mutex,
};

/// How long a call goes on while nobody listens, and how long an answer is kept that nobody took.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// How long the end of a body may take after the provider's own end of its answer, if nobody listens any more.
const REST: Duration = Duration::from_secs(5);

/// Maximum size of all answers that are kept, in bytes.
const MOST_KEPT: usize = 64 << 20;

/// Number of changes that a subscriber may be behind. It misses older ones.
const CHANGES: usize = 256;

/// Maximum number of calls, those included whose answer is kept.
const MOST_CALLS: usize = 16_384;

/// All calls of the process.
pub(crate) struct Calls {
    /// Answers count towards the memory of all conversations.
    memory: Arc<Memory>,
    names: Names,
    kept: Arc<Kept>,
    observers: Observers,
    changes: broadcast::Sender<Arc<CallInfo>>,
    room: Arc<Room>,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    /// The latest call for each request.
    by_key: HashMap<CallKey, Arc<Call>>,
    by_id: HashMap<ConversationId, Arc<Call>>,
}

impl Calls {
    /// `spool`: where bodies are put while their calls wait and memory is short.
    pub(crate) fn new(memory: Arc<Memory>, observers: Observers, spool: Option<PathBuf>) -> Self {
        let changes = broadcast::Sender::new(CHANGES);
        let (names, kept, book) = (Names::default(), Arc::default(), Mutex::default());
        Self { memory, names, kept, observers, changes, room: Arc::new(Room::new(spool)), book }
    }

    pub(crate) fn changes(&self) -> broadcast::Receiver<Arc<CallInfo>> {
        self.changes.subscribe()
    }

    /// Begins a call, or joins the one that this request repeats. The call goes on if the listener is dropped,
    /// and ends with its caller.
    ///
    /// # Errors
    /// When nobody can be asked, or the bodies of waiting calls take too much memory.
    pub(crate) fn relay(
        self: &Arc<Self>,
        ports: &Arc<Ports>,
        asked: RelayCall,
        ended: Option<&Ended>,
    ) -> Result<Listener, RelayError> {
        if ports.shutdown.stage() != Stage::Open {
            return Err(RelayError::ShuttingDown);
        }
        let (key, has_session) = (CallKey::of(&asked), asked.session.is_some());
        if let Some(listener) = self.join(&self.lock(), &key, has_session) {
            return Ok(listener.until(ended));
        }
        let now = ports.clock.now();
        let chosen = choice::choose(ports, &self.names, &asked, now)?;
        let (orders, inbox) = mpsc::channel(ORDERS);
        let id = asked.caller.as_ref().map_or_else(new_id::call, |name| new_id::call().of(name));
        let Chosen { legs, model, .. } = &chosen;
        let state = CallInfo {
            id: id.to_string(),
            caller: asked.caller.as_ref().map(|name| name.as_str().to_owned()),
            program: asked.program.clone(),
            session: asked.session.clone(),
            model: model.clone(),
            target: legs.first().map(|leg| leg.target.name.clone()).unwrap_or_default(),
            phase: CallPhase::Asking,
            started_at: now.0,
            next_at: None,
            retries: 0,
            waited_ms: 0,
            because: None,
            category: None,
            shared: None,
            listeners: 1,
        };
        let (clock, changes) = (ports.clock.clone(), self.changes.clone());
        let call = Arc::new(Call::new(id.clone(), key, self.memory.open(), orders, state, clock, changes));
        let (listener, stored) = {
            let mut book = self.lock();
            // The same request may have begun a call meanwhile.
            if let Some(listener) = self.join(&book, &key, has_session) {
                return Ok(listener.until(ended));
            }
            if book.by_id.len() >= MOST_CALLS {
                return Err(RelayError::NoRoom(format!(
                    "{MOST_CALLS} calls wait or run already: try again later"
                )));
            }
            let Some(stored) = self.room.take(&asked.request.body) else {
                return Err(RelayError::NoRoom(
                    "the bodies of calls take all the memory that they may: try again later".to_owned(),
                ));
            };
            book.by_key.insert(key, call.clone());
            book.by_id.insert(id, call.clone());
            // Under the lock, so that a repetition without a session sees that somebody listens.
            (self.listener(&call), stored)
        };
        call.tell();
        let (ports, kept, observers) = (ports.clone(), self.kept.clone(), self.observers.clone());
        let task =
            Task { ports: ports.clone(), call: call.clone(), asked, stored, chosen, inbox, kept, observers };
        let (calls, present) = (Arc::downgrade(self), ports.shutdown.present());
        let clock = ports.clock.clone();
        let listener = listener.map(|listener| listener.until(ended));
        let ended = ended.cloned();
        tokio::spawn(async move {
            let ends = async {
                match ended {
                    Some(ended) => ended.over().await,
                    None => future::pending().await,
                }
                // Also of a call that nobody listens to.
                let _ = call.orders.send(Order::GiveUp).await;
                future::pending().await
            };
            let is_answered = tokio::select! {
                answered = run::run(task) => answered,
                never = ends => never,
            };
            let waits = calls.upgrade().is_some_and(|calls| calls.ended(&call, is_answered));
            drop(present);
            if waits {
                tokio::spawn(forget(calls, Arc::downgrade(&call), clock));
            }
        });
        listener.ok_or(RelayError::ShuttingDown)
    }

    /// Joins the call that a request repeats. Without a session, a request counts as a repetition only if nobody listens
    /// any more: equal requests may be meant to be answered separately.
    fn join(self: &Arc<Self>, book: &Book, key: &CallKey, has_session: bool) -> Option<Listener> {
        let call = book.by_key.get(key)?;
        let may = has_session || !call.tape.is_listened_to();
        if may { self.listener(call) } else { None }
    }

    fn listener(self: &Arc<Self>, call: &Arc<Call>) -> Option<Listener> {
        let (calls, left) = (Arc::downgrade(self), Arc::downgrade(call));
        call.tape.listen(&call.id, move || leave(&calls, &left))
    }

    /// Called when a call has ended. Returns whether its answer waits for somebody.
    fn ended(&self, call: &Arc<Call>, is_answered: bool) -> bool {
        let mut book = self.lock();
        // A refusal is not kept: whoever repeats the request wants to ask again.
        if !is_answered || call.tape.is_delivered() {
            book.remove(call);
            return false;
        }
        book.trim(call);
        call.tell();
        !call.tape.is_listened_to()
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock()
    }

    /// Returns all calls, the oldest first.
    pub(crate) fn list(&self) -> Vec<CallInfo> {
        let mut all: Vec<CallInfo> = self.lock().by_id.values().map(|call| call.state()).collect();
        all.sort_by(|a, b| (a.started_at, &a.id).cmp(&(b.started_at, &b.id)));
        all
    }

    fn find(&self, id: &str) -> Option<Arc<Call>> {
        self.lock().by_id.get(&ConversationId::from(id.to_owned())).cloned()
    }

    /// Ends the wait of a call. Returns false if there is no such call.
    pub(crate) fn retry_now(&self, id: &str) -> bool {
        self.find(id).is_some_and(|call| call.order(Order::RetryNow))
    }

    /// Ends a call with its last refusal. Returns false if there is no such call.
    pub(crate) fn give_up(&self, id: &str) -> bool {
        self.find(id).is_some_and(|call| call.order(Order::GiveUp))
    }

    /// Lets a call end its wait early, because the limit it waits for is gone. Returns whether it is a call.
    /// `is_released`: it may; otherwise only tells whether it is a call.
    pub(crate) fn release(&self, id: &ConversationId, is_released: bool) -> bool {
        let Some(call) = self.lock().by_id.get(id).cloned() else { return false };
        if is_released {
            call.order(Order::Release);
        }
        true
    }

    /// Makes every call check whether the process is ending.
    pub(crate) fn checkpoint(&self) {
        for call in self.lock().by_id.values() {
            call.order(Order::Leave);
        }
    }
}

impl Book {
    fn remove(&mut self, call: &Arc<Call>) {
        if self.by_id.remove(&call.id).is_some() {
            call.tell_end();
        }
        if self.by_key.get(&call.key).is_some_and(|known| Arc::ptr_eq(known, call)) {
            self.by_key.remove(&call.key);
        }
    }

    /// Removes the oldest kept answers until the others fit. `newest` goes last.
    fn trim(&mut self, newest: &Arc<Call>) {
        let mut kept: Vec<_> = self
            .by_id
            .values()
            .filter(|call| call.tape.is_over() && !call.tape.is_listened_to())
            .cloned()
            .collect();
        kept.sort_by_key(|call| (Arc::ptr_eq(call, newest), call.lock().started_at));
        let mut size: usize = kept.iter().map(|call| call.tape.size()).sum();
        for call in kept {
            if size <= MOST_KEPT {
                break;
            }
            size -= call.tape.size();
            self.remove(&call);
        }
    }
}

/// Forgets an answer that nobody took in time. Most are taken at once.
async fn forget(calls: Weak<Calls>, call: Weak<Call>, clock: Arc<dyn Clock>) {
    if let Some(call) = unheard(&call, PATIENCE, &*clock).await
        && let Some(calls) = calls.upgrade()
    {
        calls.lock().remove(&call);
    }
}

/// Waits. Returns the call if nobody listens to it, or has since.
async fn unheard(call: &Weak<Call>, patience: Duration, clock: &dyn Clock) -> Option<Arc<Call>> {
    let joined = call.upgrade()?.tape.joined();
    clock.sleep(patience).await;
    call.upgrade().filter(|call| !call.tape.is_listened_to() && call.tape.joined() == joined)
}

/// What follows when a listener has left a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follows {
    Nothing,
    /// The call is told at once.
    Order(Order),
    /// The call is told, unless somebody listens within that time.
    OrderLater(Duration, Order),
    /// The answer is forgotten, unless somebody listens within [`PATIENCE`].
    Forget,
}

impl Calls {
    /// Decides what becomes of a call that a listener has left. Removes it if nobody can take its answer any more.
    fn left(&self, call: &Arc<Call>) -> Follows {
        let tape = &call.tape;
        if tape.is_listened_to() {
            return Follows::Nothing;
        }
        if tape.is_over() {
            let mut book = self.lock();
            if tape.is_delivered() || !tape.is_kept() {
                book.remove(call);
                return Follows::Nothing;
            }
            book.trim(call);
            return Follows::Forget;
        }
        match (tape.is_shown() && tape.was_heard(), tape.has_last()) {
            // It took a part of the answer, and no longer wants the rest: as if it had called the provider itself.
            (true, false) => Follows::Order(Order::Stop),
            // What the call used is still to come, or the end of the body.
            (true, true) => Follows::OrderLater(REST, Order::Stop),
            (false, _) => Follows::OrderLater(PATIENCE, Order::Leave),
        }
    }
}

/// Called when a listener has left.
fn leave(calls: &Weak<Calls>, call: &Weak<Call>) {
    let (Some(calls), Some(call)) = (calls.upgrade(), call.upgrade()) else { return };
    let follows = calls.left(&call);
    if let Follows::Order(order) = follows {
        call.order(order);
    }
    // No runtime: the process is ending.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let clock = call.clock.clone();
    let (calls, call) = (Arc::downgrade(&calls), Arc::downgrade(&call));
    match follows {
        Follows::Nothing | Follows::Order(_) => {}
        Follows::Forget => drop(runtime.spawn(forget(calls, call, clock))),
        Follows::OrderLater(patience, order) => drop(runtime.spawn(async move {
            if let Some(call) = unheard(&call, patience, &*clock).await
                && !call.tape.is_over()
            {
                call.order(order);
            }
        })),
    }
}

#[cfg(test)]
mod model;
