//! Notices: what nodes tell each other about targets, so that the others need not find out by a refusal of their own.
//!
//! Hints: a notice that is late, repeated or lost costs at most a refusal. Times are durations up to the notice, because
//! clocks of nodes may differ. What depends on a node's own network or configuration is not told.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
};

use everturn_kernel::Millis;
use everturn_pacing::{Counts, Lately, Size, Use};
use everturn_wire::{CallerName, Category, Failure, TurnId};
use serde::{Deserialize, Serialize};

use crate::{cluster::LiveBus, journal::NodeId};

/// Maximum length of a failure's message in a notice, in characters.
const MAX_MESSAGE: usize = 500;

/// Maximum size of a notice, in bytes.
const MAX_NOTICE: usize = 16 << 10;

/// The longest limit that is believed, in milliseconds: 24 h. A longer one is told again.
const LONGEST_MS: u64 = 24 * 60 * 60 * 1_000;

/// What a node tells the others about a target, which is named as in the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Notice {
    /// A limit refused a turn here.
    Closed(Closed),
    /// How many calls a node has to make, running ones included, and what it made and learnt. Sent when it changes.
    Demand {
        target: String,
        node: NodeId,
        calls: u64,
        /// Earlier versions do not tell it.
        #[serde(default)]
        lately: Lately,
    },
    /// What a caller used on a node, and has to do there.
    Caller(UsedByCaller),
    /// This turn is asking the limited target, to find out whether it answers again. Repeated as long as it does.
    Probing { target: String, turn: TurnId },
    /// A limited target answered a call that was made this long ago.
    Opened { target: String, asked_ms_ago: u64 },
    /// A call failed, for a reason that other nodes would find as well.
    Failed { target: String, category: Category, hint_ms: Option<u64> },
    /// A target about which such a failure was known answered a call that was made this long ago.
    Answered { target: String, asked_ms_ago: u64 },
}

/// What a caller used on a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UsedByCaller {
    pub(crate) caller: String,
    pub(crate) node: NodeId,
    /// How many calls it has to make, running ones included.
    pub(crate) calls: u64,
    /// Of each kind of limit: the number of the period, and what was used in it.
    pub(crate) counts: [(u64, u64); 4],
    /// The same of nodes that are gone, by earlier versions, which also need it. Zero: `gone_nodes` has it.
    pub(crate) gone: [(u64, u64); 4],
    /// The same of the limit in money: what this node used, and, as above, what nodes that are gone did. Earlier versions tell
    /// nothing of it, nor of what follows.
    #[serde(default)]
    pub(crate) money: [(u64, u64); 2],
    /// What nodes used that are gone, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) gone_nodes: BTreeMap<String, Counts>,
    /// The size of the next call that waits: its tokens, sent and answered, and what it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<(u64, u64, u64)>,
}

impl UsedByCaller {
    pub(crate) fn new(caller: &CallerName, node: &NodeId, used: Use) -> Self {
        let Use { calls, next, counts: [counts @ .., spent], gone: gone_nodes } = used;
        let (caller, node, gone) = (caller.to_string(), node.clone(), Default::default());
        let next = next.map(|Size { input, output, money, .. }| (input, output, money));
        Self { caller, node, calls, counts, gone, money: [spent, (0, 0)], gone_nodes, next }
    }

    pub(crate) fn used(&self) -> Use {
        let [requests, tokens, tokens_of_day, parallel] = self.counts;
        let counts = [requests, tokens, tokens_of_day, parallel, self.money[0]];
        let next = self.next.map(|(input, output, money)| Size { input, cached: 0, output, money });
        Use { calls: self.calls, next, counts, gone: self.gone_nodes.clone() }
    }
}

/// A limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Closed {
    pub(crate) target: String,
    /// How long ago the refusal came.
    pub(crate) closed_ms_ago: u64,
    /// After how long a turn asks again.
    pub(crate) left_ms: u64,
    /// The turn that does; empty = any.
    pub(crate) first: TurnId,
    /// After how long the limit ends according to the provider.
    pub(crate) hint_left_ms: Option<u64>,
    /// The refusal.
    pub(crate) failure: Failure,
}

impl Notice {
    /// Reads a notice; `None` if it cannot be read, for example because a newer version sent it.
    pub(crate) fn read(json: &[u8]) -> Option<Self> {
        let notice = (json.len() <= MAX_NOTICE).then(|| serde_json::from_slice::<Self>(json))?;
        match notice.inspect_err(|error| tracing::debug!(%error, "a notice cannot be read")).ok()? {
            Self::Closed(Closed { left_ms, hint_left_ms, .. })
                if left_ms.max(hint_left_ms.unwrap_or(0)) > LONGEST_MS =>
            {
                None
            }
            notice => Some(notice),
        }
    }

    /// Returns the target that it is about; empty = none.
    pub(crate) fn target(&self) -> &str {
        match self {
            Self::Closed(Closed { target, .. })
            | Self::Demand { target, .. }
            | Self::Probing { target, .. }
            | Self::Opened { target, .. }
            | Self::Failed { target, .. }
            | Self::Answered { target, .. } => target,
            Self::Caller(_) => "",
        }
    }
}

/// Returns a failure as it is told to other nodes.
pub(crate) fn brief(failure: &Failure) -> Failure {
    let message: String = failure.message.chars().take(MAX_MESSAGE).collect();
    Failure { code: failure.code.clone(), ..Failure::new(failure.category, failure.retryable, message) }
}

/// The time this many milliseconds ago.
pub(crate) fn ago(now: Millis, ms: u64) -> Millis {
    Millis(now.0.saturating_sub(ms))
}

/// Tells the other nodes; without any, does nothing.
#[derive(Default)]
pub(crate) struct NoticeSender(OnceLock<Arc<dyn LiveBus>>);

impl NoticeSender {
    /// Tells the nodes that this bus reaches, from now on.
    pub(crate) fn set(&self, bus: Arc<dyn LiveBus>) {
        let _ = self.0.set(bus);
    }

    pub(crate) fn tell(&self, notice: &Notice) {
        let Some(bus) = self.0.get() else { return };
        match serde_json::to_vec(notice) {
            Ok(json) if json.len() <= MAX_NOTICE => bus.tell(json.into()),
            _ => {}
        }
    }
}

impl fmt::Debug for NoticeSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoticeSender").field("tells", &self.0.get().is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use everturn_pacing::Rate;

    use super::*;

    #[test]
    fn a_notice_arrives_as_it_was_told_and_odd_ones_do_not() {
        let failure = Failure::new(Category::RateLimited, true, "é".repeat(10_000));
        let closed = Closed {
            target: "key/model".to_owned(),
            closed_ms_ago: 5,
            left_ms: 60_000,
            first: TurnId::from("t"),
            hint_left_ms: Some(1),
            failure: brief(&failure),
        };
        let target = || "key/model".to_owned();
        let rate = Rate { calls: 60, period_ms: 60_000, ago_ms: 5, round_ms: 60_000, is_confirmed: true };
        let lately = Lately { made: 2, rate: Some(rate) };
        let all = [
            Notice::Closed(closed.clone()),
            Notice::Demand { target: target(), node: NodeId::from("n"), calls: 3, lately },
            Notice::Caller(UsedByCaller {
                caller: "ann".to_owned(),
                node: NodeId::from("n"),
                calls: 3,
                counts: [(1, 2); 4],
                gone: [(0, 0); 4],
                money: [(1, 2), (0, 0)],
                gone_nodes: [("m".to_owned(), [(1, 2); 5])].into(),
                next: Some((1, 2, 3)),
            }),
            Notice::Probing { target: target(), turn: TurnId::from("t") },
            Notice::Opened { target: target(), asked_ms_ago: 7 },
            Notice::Failed { target: target(), category: Category::Overloaded, hint_ms: None },
            Notice::Answered { target: target(), asked_ms_ago: 7 },
        ];
        for notice in all {
            let json = serde_json::to_vec(&notice).unwrap();
            assert!(json.len() < 2_000);
            assert_eq!(Notice::read(&json), Some(notice));
        }
        let earlier = br#"{"type":"caller","caller":"ann","node":"n","calls":1,"counts":[[1,2],[1,2],[1,2],[0,0]],"gone":[[0,0],[0,0],[0,0],[0,0]]}"#;
        let Some(Notice::Caller(used)) = Notice::read(earlier) else { panic!("it is not read") };
        assert_eq!(used.used().counts, [(1, 2), (1, 2), (1, 2), (0, 0), (0, 0)]);
        let long =
            serde_json::to_vec(&Notice::Closed(Closed { left_ms: u64::MAX, ..closed.clone() })).unwrap();
        let large = serde_json::to_vec(&Notice::Closed(Closed { failure, ..closed })).unwrap();
        for odd in [&long[..], &large, b"", b"{}", br#"{"type":"new"}"#, b"\xff"] {
            assert_eq!(Notice::read(odd), None);
        }
    }
}
