//! Who wants to call, and when.

use everturn_pacing::{Priority, Size};

/// A turn that wants to make calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    /// When it wants its first call, in milliseconds.
    pub(super) at: u64,
    /// How many calls it makes, each after the previous one has ended.
    pub(super) calls: u32,
    pub(super) priority: Priority,
    /// Whose it is, if there are several callers; 0 = the greedy one, whose waits do not count.
    pub(super) caller: Option<u8>,
    pub(super) size: Size,
    /// Which server it runs on.
    pub(super) node: usize,
}

/// Turns that want to call.
#[derive(Clone, Debug)]
pub struct Load {
    /// What it is, for people.
    pub name: String,
    pub(super) wishes: Vec<Wish>,
    /// On how many servers the turns run.
    pub(super) nodes: usize,
}

const SMALL: Size = Size { input: 400, cached: 0, output: 100, money: 0 };

fn wish(at: u64) -> Wish {
    Wish { at, calls: 1, priority: Priority::Interactive, caller: None, size: SMALL, node: 0 }
}

impl Load {
    fn of(name: String, wishes: Vec<Wish>) -> Self {
        Self { name, wishes, nodes: 1 }
    }

    /// One turn in a loop of tools.
    pub fn one_turn(calls: u32) -> Self {
        Self::of(format!("one turn, {calls} calls"), vec![Wish { calls, ..wish(0) }])
    }

    /// So many turns at once.
    pub fn at_once(turns: usize) -> Self {
        Self::of(format!("{turns} turns at once"), vec![wish(0); turns])
    }

    /// So many turns a minute, at random times, for so many minutes.
    pub fn steady(a_minute: f64, minutes: u64, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut at = 0.0;
        let mut wishes = Vec::new();
        loop {
            at += -(1.0 - rng.f64()).ln() * 60_000.0 / a_minute;
            if at >= (minutes * 60_000) as f64 {
                return Self::of(format!("{a_minute} a minute for {minutes} min"), wishes);
            }
            wishes.push(wish(at as u64));
        }
    }

    /// So many turns at once, again and again.
    pub fn bursts(turns: usize, every_ms: u64, times: u64) -> Self {
        let name = format!("{times} bursts of {turns}, one each {} s", every_ms / 1_000);
        Self::of(name, (0..times).flat_map(|n| vec![wish(n * every_ms); turns]).collect())
    }

    /// A person's turn every now and then.
    pub fn interactive(every_ms: u64, times: u64) -> Self {
        let name = format!("{times} interactive turns, one each {} s", every_ms / 1_000);
        Self::of(name, (0..times).map(|n| wish(n * every_ms + 7_000)).collect())
    }

    /// Adds turns at the start that nobody watches.
    pub fn beside_background(mut self, turns: usize) -> Self {
        let background = Wish { priority: Priority::Background, ..wish(0) };
        self.wishes.extend(vec![background; turns]);
        self.name = format!("{}, beside {turns} background turns", self.name);
        self
    }

    /// Nine callers that want so many calls each, at once.
    pub fn callers(each: usize) -> Self {
        let of = |caller| Wish { caller: Some(caller), ..wish(0) };
        let wishes = (0..each).flat_map(|_| (1..10).map(of));
        Self::of(format!("9 callers, {each} turns each at once"), wishes.collect())
    }

    /// Nine callers that want so many calls a minute each, at random times.
    pub fn steady_callers(a_minute: f64, minutes: u64, seed: u64) -> Self {
        let of = |caller: u8| {
            let calls = Self::steady(a_minute, minutes, seed * 10 + u64::from(caller)).wishes;
            calls.into_iter().map(move |wish| Wish { caller: Some(caller), ..wish })
        };
        let name = format!("9 callers, {a_minute} a minute each for {minutes} min");
        Self::of(name, (1..10).flat_map(of).collect())
    }

    /// Adds a caller that wants so many calls at once, at this time.
    pub fn beside_greedy(mut self, turns: usize, at_ms: u64) -> Self {
        self.wishes.extend(vec![Wish { caller: Some(0), ..wish(at_ms) }; turns]);
        self.name = format!("{}, beside one with {turns}", self.name);
        self
    }

    /// Small calls, and a huge one among them.
    pub fn with_huge(turns: usize, tokens: u64) -> Self {
        let mut wishes = vec![wish(0); turns];
        wishes[turns / 4].size = Size { input: tokens, cached: 0, output: 0, money: 0 };
        Self::of(format!("{turns} turns at once, one of {tokens} tokens, others of 500"), wishes)
    }

    /// The same load, on several servers.
    #[must_use]
    pub fn on_nodes(mut self, nodes: usize) -> Self {
        for (n, wish) in self.wishes.iter_mut().enumerate() {
            wish.node = n % nodes;
        }
        let name = format!("{}, on {nodes} servers", self.name);
        Self { name, nodes, ..self }
    }
}
