//! The callers that a server knows, by the hashes of their tokens.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard},
};

use everturn_orchestrator::{Caller, Clock, Scope, SystemClock, Terms};
use everturn_wire::CallerName;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The SHA-256 of a token. Tokens are random and long, so that nothing slower is needed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Returns the hash of a token.
    pub fn of(token: &[u8]) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Compares in constant time.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// Reads 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let mut hash = [0; 32];
        if text.len() != 2 * hash.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (at, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
        }
        Some(Self(hash))
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(..)")
    }
}

/// A caller, and when its token is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownCaller {
    /// Its name.
    pub name: CallerName,
    /// What it may use.
    pub scopes: Vec<Scope>,
    /// The hash of its token; `None` = it was revoked.
    pub token: Option<TokenHash>,
    /// When its token expires, in epoch milliseconds.
    pub until: Option<u64>,
    /// What it may use: for [`Orchestrator::limit_callers`](everturn_orchestrator::Orchestrator::limit_callers).
    pub terms: Terms,
    /// The models that it may ask for: for [`Orchestrator::allow_models`](everturn_orchestrator::Orchestrator::allow_models).
    pub models: Vec<String>,
}

/// The callers that a server knows. They can be replaced while it runs. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Callers {
    clock: Arc<dyn Clock>,
    book: Arc<RwLock<Book>>,
}

impl Default for Callers {
    /// Knows nobody yet, and follows the machine's clock.
    fn default() -> Self {
        Self::new(Arc::new(SystemClock::new()))
    }
}

#[derive(Default)]
struct Book {
    /// Whether there ever was a caller. Then nobody is served without a token, although all may have been removed since.
    asks: bool,
    known: HashMap<TokenHash, Entry>,
    /// Those without a valid token.
    revoked: HashSet<CallerName>,
    /// Whom proxies name besides, all in one: it ends when one of them may have become known. Empty until somebody is named.
    guests: OnceLock<Caller>,
}

struct Entry {
    known: KnownCaller,
    caller: Caller,
}

impl Callers {
    /// Knows nobody yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, book: Arc::default() }
    }

    /// Replaces all callers. Sockets and streams of those whose token is no longer valid, or may do something else, end.
    pub fn replace(&self, all: Vec<KnownCaller>) {
        let mut book = self.book.write().unwrap_or_else(PoisonError::into_inner);
        book.asks |= !all.is_empty();
        let mut before = std::mem::take(&mut book.known);
        let revoked = std::mem::take(&mut book.revoked);
        let mut names: HashSet<_> = before.values().map(|entry| entry.known.name.clone()).collect();
        names.extend(revoked);
        if all.iter().any(|known| !names.contains(&known.name)) {
            // Those who go on connect again, and are asked for anew.
            if let Some(guests) = book.guests.take() {
                guests.end();
            }
        }
        for known in all {
            let Some(token) = known.token else {
                book.revoked.insert(known.name);
                continue;
            };
            let same = before.remove(&token).filter(|entry| entry.is_still(&known));
            let caller = same.map(|entry| entry.caller);
            let caller = caller.unwrap_or_else(|| Caller::new(known.name.clone(), known.scopes.clone()));
            book.known.insert(token, Entry { known, caller });
        }
        before.into_values().for_each(|gone| gone.caller.end());
        drop(book);
        self.expire();
    }

    /// Ends the sockets and streams of callers whose tokens have expired. Call it periodically.
    pub fn expire(&self) {
        let now = self.clock.now().0;
        self.read()
            .known
            .values()
            .filter(|entry| entry.has_expired(|| now))
            .for_each(|entry| entry.caller.end());
    }

    /// Whether nobody is served without a token.
    pub(super) fn asks(&self) -> bool {
        self.read().asks
    }

    /// Returns whose token this is.
    pub(super) fn find(&self, token: &TokenHash) -> Option<Caller> {
        let book = self.read();
        // How long the look-up takes says something about hashes, from which nothing follows about tokens.
        let entry = book.known.get(token)?;
        (!entry.has_expired(|| self.clock.now().0)).then(|| entry.caller.clone())
    }

    /// Whether this is a caller's token.
    pub(super) fn has(&self, token: &TokenHash) -> bool {
        self.read().known.get(token).is_some_and(|entry| !entry.has_expired(|| self.clock.now().0))
    }

    /// Returns what is known of the caller with this token.
    pub(super) fn known(&self, token: &TokenHash) -> Option<KnownCaller> {
        self.read().known.get(token).map(|entry| entry.known.clone())
    }

    /// Returns the caller that a proxy names: one that is known, unless its token was revoked or has expired, or a new one
    /// that may use conversations and calls.
    pub(super) fn named(&self, name: &CallerName, proxy: &Caller) -> Option<Caller> {
        let book = self.read();
        let Some(entry) = book.known.values().find(|entry| entry.known.name == *name) else {
            let may = !book.revoked.contains(name);
            let guests = || Caller::new(name.clone(), vec![Scope::Chat, Scope::Calls]);
            return may.then(|| book.guests.get_or_init(guests).renamed(name.clone()).named_by(proxy));
        };
        let may = !entry.has_expired(|| self.clock.now().0) && !entry.caller.may(Scope::Proxy);
        may.then(|| entry.caller.clone().named_by(proxy))
    }

    fn read(&self) -> RwLockReadGuard<'_, Book> {
        self.book.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Whether its sockets and streams may go on, whatever it may use now.
    fn is_still(&self, known: &KnownCaller) -> bool {
        KnownCaller { terms: known.terms, models: known.models.clone(), ..self.known.clone() } == *known
    }

    /// Asks for the time only if the token expires.
    fn has_expired(&self, now: impl FnOnce() -> u64) -> bool {
        self.known.until.is_some_and(|until| until <= now())
    }
}

#[cfg(test)]
mod tests {
    use everturn_orchestrator::kernel::Millis;
    use everturn_sim::VirtualClock;

    use super::*;

    fn known(name: &str, token: &str, until: Option<u64>) -> KnownCaller {
        let token = Some(TokenHash::of(token.as_bytes()));
        let (name, scopes, terms) = (CallerName::parse(name).unwrap(), vec![Scope::Chat], Terms::default());
        KnownCaller { name, scopes, token, until, terms, models: Vec::new() }
    }

    #[test]
    fn a_hash_is_read_as_it_is_written() {
        let hash = TokenHash::of(b"secret");
        assert_eq!(TokenHash::parse(&hash.to_string()), Some(hash));
        for bad in ["", "ab", &"g".repeat(64), &"+1".repeat(32), &"ä".repeat(32)] {
            assert_eq!(TokenHash::parse(bad), None, "{bad}");
        }
        assert!(!format!("{hash:?}").contains(&hash.to_string()[..8]));
    }

    #[test]
    fn a_token_is_known_until_it_expires_is_rotated_or_revoked() {
        let clock = VirtualClock::new(Millis(1_000));
        let callers = Callers::new(Arc::new(clock.clone()));
        assert!(!callers.asks() && callers.find(&TokenHash::of(b"a")).is_none());
        callers.replace(vec![known("ann", "a", Some(2_000)), known("ben", "b", None)]);
        let name = |token: &str| {
            callers.find(&TokenHash::of(token.as_bytes())).map(|caller| caller.name().unwrap().to_string())
        };
        assert_eq!((name("a").as_deref(), name("b").as_deref()), (Some("ann"), Some("ben")));
        for forged in ["", "A", "a ", "aa", &TokenHash::of(b"a").to_string()] {
            assert!(name(forged).is_none(), "{forged}");
        }
        clock.advance(std::time::Duration::from_secs(1));
        assert_eq!((name("a"), name("b").as_deref()), (None, Some("ben")));
        callers.replace(vec![known("ben", "c", None)]);
        assert_eq!((name("b"), name("c").as_deref()), (None, Some("ben")));
        callers.replace(vec![KnownCaller { token: None, ..known("ben", "c", None) }]);
        assert!(name("c").is_none() && callers.asks());
        callers.replace(Vec::new());
        assert!(callers.asks(), "nobody becomes the administrator because a file is gone");
    }
}
