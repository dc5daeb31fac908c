//! Who asks: the administrator, or one of the callers behind a server.

use everturn_wire::CallerName;
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

/// Who asks. A transport gets it with a request, and gives it to [`Orchestrator::seen_by`](crate::Orchestrator::seen_by).
#[derive(Clone, Debug)]
pub struct Caller {
    /// `None` = the administrator, or nobody.
    name: Option<CallerName>,
    scopes: Vec<Scope>,
    /// `None` = it is never ended.
    ended: Option<CancellationToken>,
}

impl Caller {
    /// The administrator, who sees all conversations.
    pub fn administrator() -> Self {
        Self { name: None, scopes: vec![Scope::Admin], ended: None }
    }

    /// Somebody who may do nothing.
    pub fn nobody() -> Self {
        Self { name: None, scopes: Vec::new(), ended: None }
    }

    /// A caller. With the scope of administrators it is one, whatever its name.
    pub fn new(name: CallerName, scopes: Vec<Scope>) -> Self {
        let name = (!scopes.contains(&Scope::Admin)).then_some(name);
        Self { name, scopes, ended: Some(CancellationToken::new()) }
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
        if let Some(ended) = &self.ended {
            ended.cancel();
        }
    }

    /// Cancelled when it is ended; `None` = never.
    pub(crate) fn ended(&self) -> Option<&CancellationToken> {
        self.ended.as_ref()
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
