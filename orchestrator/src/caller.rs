//! Who asks: the administrator, or one of the callers behind a server.

use std::{fmt, future::pending, pin::Pin, sync::Arc};

use everturn_wire::{CallerName, ConversationId};
use tokio_util::sync::CancellationToken;

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

/// The end of a caller.
pub(crate) type Over = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// What ends a caller.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ended {
    own: Option<CancellationToken>,
    /// That of the proxy that named it.
    proxy: Option<CancellationToken>,
}

impl Ended {
    /// Whether the caller is ended. Costs less than to wait for it.
    pub(crate) fn is_over(&self) -> bool {
        [&self.own, &self.proxy].into_iter().flatten().any(CancellationToken::is_cancelled)
    }

    /// Completes when the caller is ended; never, if nothing ends it.
    pub(crate) fn over(&self) -> Over {
        let over = async |token: Option<CancellationToken>| match token {
            Some(token) => token.cancelled_owned().await,
            None => pending().await,
        };
        let Self { own, proxy } = self.clone();
        Box::pin(async move {
            tokio::select! {
                biased;
                () = over(own) => {}
                () = over(proxy) => {}
            }
        })
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

    /// A caller. With the scope of administrators it is one, whatever its name.
    pub fn new(name: CallerName, scopes: Vec<Scope>) -> Self {
        let name = (!scopes.contains(&Scope::Admin)).then_some(name);
        let ended = Ended { own: Some(CancellationToken::new()), proxy: None };
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

    /// The same caller. If it is an administrator, this one is told what it does with conversations of callers.
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

    /// Whether it may use this. An administrator may use everything, but is no proxy.
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
            own.cancel();
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
}
