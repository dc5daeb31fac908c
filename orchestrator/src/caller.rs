//! Who asks: the administrator, or one of the callers behind a server.

use std::{
    fmt,
    pin::{Pin, pin},
    sync::{Arc, OnceLock},
    task::{Context, Poll, Waker},
};

use everturn_wire::{CallerName, ConversationId};
use futures_util::future;
use tokio::sync::Notify;

/// What a caller may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Conversations.
    Chat,
    /// Calls that are passed through.
    Calls,
    /// Everything, of all callers, and what concerns the server itself.
    Admin,
    /// Nothing of its own: it is a proxy, and names the caller of each request.
    Proxy,
}

/// Is told what an administrator does with conversations of callers.
#[derive(Clone)]
pub struct Witness(Arc<Sees>);

/// The command, empty if the request says it, and the conversation.
type Sees = dyn Fn(&'static str, &ConversationId) + Send + Sync;

impl Witness {
    /// `sees`: is called with the command, empty if the request says it, and the conversation. Must not block.
    pub fn new(sees: impl Fn(&'static str, &ConversationId) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sees))
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Witness")
    }
}

/// Who asks. A transport gets it with a request, and gives it to [`Orchestrator::seen_by`](crate::Orchestrator::seen_by).
#[derive(Clone, Debug)]
pub struct Caller {
    /// `None` = the administrator, or nobody.
    name: Option<CallerName>,
    scopes: Vec<Scope>,
    /// What it and its clones still receive ends with any of these; without one, never.
    ended: Ended,
    witness: Option<Witness>,
}

/// What ends a caller.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ended {
    own: Option<Arc<End>>,
    /// That of the proxy that named it.
    proxy: Option<Arc<End>>,
}

/// The end of a token.
#[derive(Debug, Default)]
struct End {
    has_come: OnceLock<()>,
    /// Notified after that.
    came: Notify,
}

impl Ended {
    fn is_over(&self) -> bool {
        let has_come = |end: &Option<Arc<End>>| end.as_ref().is_some_and(|end| end.has_come.get().is_some());
        has_come(&self.own) || has_come(&self.proxy)
    }

    /// Completes when the caller is ended; never, if nothing ends it.
    pub(crate) fn over(&self) -> Over {
        let ends = self.clone();
        let came = Box::pin(async move {
            let came = async |end: &Option<Arc<End>>| match end {
                Some(end) => end.came.notified().await,
                None => future::pending().await,
            };
            future::select(pin!(came(&ends.own)), pin!(came(&ends.proxy))).await;
        });
        Over { ended: self.clone(), came, woken: None }
    }
}

/// Completes when a caller is ended, and remains ready. Costs little to poll again, as for each event.
pub(crate) struct Over {
    ended: Ended,
    came: Pin<Box<dyn Future<Output = ()> + Send + Sync>>,
    /// Who is woken when it comes.
    woken: Option<Waker>,
}

impl Future for Over {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let is_known = self.woken.as_ref().is_some_and(|woken| woken.will_wake(cx.waker()));
        if !is_known && !self.ended.is_over() {
            self.woken = Some(cx.waker().clone());
            // Takes locks. Before the check, so that no end is missed. It completes after the end has come, so never twice.
            let _ = self.came.as_mut().poll(cx);
        }
        if self.ended.is_over() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Caller {
    /// The administrator, who sees all conversations.
    pub fn administrator() -> Self {
        Self { name: None, scopes: vec![Scope::Admin], ended: Ended::default(), witness: None }
    }

    /// Somebody who may do nothing.
    pub fn nobody() -> Self {
        Self { name: None, scopes: Vec::new(), ended: Ended::default(), witness: None }
    }

    /// A caller. With the scope [`Scope::Admin`], it is an administrator, whatever its name.
    pub fn new(name: CallerName, scopes: Vec<Scope>) -> Self {
        let name = (!scopes.contains(&Scope::Admin)).then_some(name);
        let ended = Ended { own: Some(Arc::default()), proxy: None };
        Self { name, scopes, ended, witness: None }
    }

    /// Another caller that may do the same, and ends with this one.
    #[must_use]
    pub fn renamed(&self, name: CallerName) -> Self {
        Self { name: Some(name), ..self.clone() }
    }

    /// The same caller, named by a proxy. It ends with either.
    #[must_use]
    pub fn named_by(self, proxy: &Self) -> Self {
        let ended = Ended { proxy: proxy.ended.own.clone(), ..self.ended };
        Self { ended, ..self }
    }

    /// The same caller. If it is an administrator, the witness is told what it does with conversations of callers.
    #[must_use]
    pub fn witnessed_by(self, witness: Witness) -> Self {
        Self { witness: Some(witness), ..self }
    }

    pub(crate) fn witness(&self, command: &'static str, id: &ConversationId) {
        if let Some(Witness(witness)) = &self.witness {
            witness(command, id);
        }
    }

    /// Returns whose conversations it sees; `None` = all.
    pub fn name(&self) -> Option<&CallerName> {
        self.name.as_ref()
    }

    /// Whether it has this scope. An administrator has all scopes except [`Scope::Proxy`].
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || (self.is_administrator() && scope != Scope::Proxy)
    }

    /// Whether it is an administrator.
    pub fn is_administrator(&self) -> bool {
        self.scopes.contains(&Scope::Admin)
    }

    /// Ends what it and its clones still receive: sockets and streams of events.
    pub fn end(&self) {
        if let Some(own) = &self.ended.own {
            let _ = own.has_come.set(());
            own.came.notify_waiters();
        }
    }

    /// What ends it; `None` = nothing.
    pub(crate) fn ended(&self) -> Option<&Ended> {
        let Ended { own, proxy } = &self.ended;
        (own.is_some() || proxy.is_some()).then_some(&self.ended)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        hint,
        sync::atomic::{AtomicBool, Ordering},
        task::Wake,
        thread,
    };

    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn only_an_administrator_may_everything() {
        let of = |scopes: &[Scope]| Caller::new(CallerName::parse("ann").unwrap(), scopes.to_vec());
        let may = |caller: &Caller| [Scope::Chat, Scope::Calls, Scope::Admin].map(|scope| caller.may(scope));
        assert_eq!(may(&of(&[Scope::Chat])), [true, false, false]);
        assert_eq!(may(&of(&[Scope::Chat, Scope::Calls])), [true, true, false]);
        for all in [Caller::administrator(), of(&[Scope::Admin])] {
            assert_eq!((may(&all), all.name()), ([true; 3], None));
        }
        assert_eq!(may(&Caller::nobody()), [false; 3]);
    }

    /// Notes that it was woken.
    #[derive(Default)]
    struct Noted(AtomicBool);

    impl Wake for Noted {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }

    #[test]
    fn no_end_is_missed_that_comes_while_somebody_begins_to_wait() {
        let caller = || Caller::new(CallerName::parse("ann").unwrap(), vec![Scope::Chat]);
        for round in 0..500 {
            let (ann, proxy, is_there, noted) =
                (caller(), caller(), AtomicBool::new(false), Arc::<Noted>::default());
            let mut over = ann.clone().named_by(&proxy).ended().unwrap().over();
            let is_over = thread::scope(|scope| {
                scope.spawn(|| {
                    is_there.store(true, Ordering::Release);
                    (0..round % 50).for_each(|_| hint::spin_loop());
                    if round % 2 == 0 { ann.end() } else { proxy.end() }
                });
                while !is_there.load(Ordering::Acquire) {
                    hint::spin_loop();
                }
                over.poll_unpin(&mut Context::from_waker(&noted.clone().into())).is_ready()
            });
            assert!(is_over || noted.0.load(Ordering::Acquire), "round {round}");
            ann.end();
            proxy.end();
            // Whoever asks again, more than once.
            for _ in 0..3 {
                let other = Arc::<Noted>::default().into();
                assert!(over.poll_unpin(&mut Context::from_waker(&other)).is_ready(), "round {round}");
            }
        }
    }
}
