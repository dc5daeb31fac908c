//! The course of a world of several nodes, derived from its seed.

use everturn_orchestrator::kernel::{Budget, Settings};

use super::super::{
    plan::{Deed, What, answer_ms, deed},
    script::BUDGET_MS,
};
use crate::cluster::{Carriage, Cut, Election, Noise, Way};

/// The course of a world.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) nodes: usize,
    /// The user messages of each conversation, in order.
    pub(super) prompts: Vec<Vec<String>>,
    pub(super) settings: Settings,
    /// Whether calls of the tool with an effect need approval.
    pub(super) asks: bool,
    /// How long people take to answer, in milliseconds.
    pub(super) answer_ms: u64,
    /// The first wait after a failure without a hint, in milliseconds.
    pub(super) base_ms: u64,
    pub(super) noise: Noise,
    pub(super) troubles: Vec<Trouble>,
    pub(super) deeds: Vec<Deed>,
    /// When the noise ends, in milliseconds.
    pub(super) calm_ms: u64,
}

/// A fault of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trouble {
    pub(super) at_ms: u64,
    /// The node that is up at this place.
    pub(super) place: usize,
    pub(super) what: Fault,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// Its process ends, and another one begins later.
    Kill { down_ms: u64 },
    /// It is cut off for this long.
    CutOff { ms: u64 },
    /// It is frozen for this long right after it has saved a call, before it starts it.
    Freeze { ms: u64 },
    /// It shuts down with this grace period, and another one begins later.
    Shutdown { grace_ms: u64, down_ms: u64 },
    /// It is cut off in part for this long.
    Part { cut: Cut, ms: u64 },
    /// The log is without a leader for this long, for all nodes.
    Election { election: Election, ms: u64 },
}

impl Plan {
    pub(super) fn of(seed: u64, nodes: usize) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0xC1_05_7E_12);
        let conversations = rng.usize(1..4);
        let prompts = (0..conversations)
            .map(|c| (0..rng.usize(1..5)).map(|t| format!("c{c}.t{t}")).collect())
            .collect();
        let settings = Settings {
            max_parallel_tools: rng.u32(1..4),
            budget: Budget { max_wait_ms: Some(BUDGET_MS), deadline: None },
            ..Settings::default()
        };
        let chance = |rng: &mut fastrand::Rng, most: f64| if rng.bool() { rng.f64() * most } else { 0.0 };
        let noise = Noise {
            lost: chance(&mut rng, 0.4),
            doubled: chance(&mut rng, 0.3),
            late: chance(&mut rng, 0.3),
            unknown: chance(&mut rng, 0.1),
            unsent: chance(&mut rng, 0.05),
            delayed: chance(&mut rng, 0.05),
            commands: Carriage {
                lost: chance(&mut rng, 0.2),
                doubled: chance(&mut rng, 0.4),
                late: chance(&mut rng, 0.4),
            },
        };
        let calm_ms = [15_000, 60_000, 300_000][rng.usize(0..3)];
        let mut troubles: Vec<_> = (0..rng.usize(0..8)).map(|_| trouble(&mut rng, nodes, calm_ms)).collect();
        troubles.sort_by_key(|trouble| trouble.at_ms);
        let (mut queued, busy) = (0, rng.bool());
        let mut deeds: Vec<_> = (0..if busy { rng.usize(0..16) } else { 0 })
            .filter_map(|_| deed(&mut rng, conversations, (true, false), &mut queued))
            // What closes drops messages, and the outcome of a command is not always known.
            .filter(|deed| !matches!(deed.what, What::Close))
            .collect();
        for deed in &mut deeds {
            deed.at_ms = rng.u64(0..calm_ms * 3 / 2);
        }
        deeds.sort_by_key(|deed| deed.at_ms);
        let base_ms = [300, 2_000, 10_000][rng.usize(0..3)];
        // Longer answers would only pass more virtual time, in which every node renews its lease.
        let (asks, answer_ms) = (seed % 3 == 1, answer_ms(seed).min(20_000));
        Self { nodes, prompts, settings, asks, answer_ms, base_ms, noise, troubles, deeds, calm_ms }
    }
}

fn trouble(rng: &mut fastrand::Rng, nodes: usize, calm_ms: u64) -> Trouble {
    let (at_ms, place) = (rng.u64(0..calm_ms), rng.usize(0..nodes));
    let most = usize::from(rng.bool());
    let down_ms = rng.u64(0..[500, 20_000][most]);
    let what = match rng.u8(0..11) {
        0 | 1 => Fault::Kill { down_ms },
        2 | 3 => Fault::CutOff { ms: rng.u64(0..[2_000, 40_000][most]) },
        4 => Fault::Shutdown { grace_ms: [0, 2_000, 30_000][rng.usize(0..3)], down_ms },
        5 => {
            // Early, as most calls are made then, and long enough for another node to take over.
            let ms = rng.u64(0..[4_000, 40_000][most]);
            return Trouble { at_ms: at_ms / 20, place, what: Fault::Freeze { ms } };
        }
        6..=8 => Fault::Part { cut: cut(rng), ms: rng.u64(0..[2_000, 40_000][most]) },
        _ => Fault::Election {
            election: Election { fails: rng.bool(), members: rng.bool() },
            ms: rng.u64(0..[9_000, 30_000][most]),
        },
    };
    Trouble { at_ms, place, what }
}

/// Chooses what a node is cut off from: the log, the other nodes, everything, or anything.
fn cut(rng: &mut fastrand::Rng) -> Cut {
    let way = |rng: &mut fastrand::Rng| [Way::Out, Way::In, Way::Both][rng.usize(0..3)];
    let any = |rng: &mut fastrand::Rng| if rng.bool() { way(rng) } else { Way::Open };
    let refuses = rng.bool();
    let one = way(rng);
    match rng.u8(0..4) {
        0 => Cut { log: one, ..Cut::default() },
        1 => Cut { bus: one, refuses, ..Cut::default() },
        2 => Cut { log: one, bus: one, members: one, refuses },
        _ => Cut { log: any(rng), bus: any(rng), members: any(rng), refuses },
    }
}
