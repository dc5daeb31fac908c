//! The course of a world, derived from its seed.

use everturn_orchestrator::kernel::{Budget, Settings};

use super::{fuse::Trigger, script::BUDGET_MS};

const HOUR_MS: u64 = 3_600_000;

/// Maximum number of recoveries of a step before its turn is given up. Below it, crashes do not change the outcome.
const HARMLESS_CRASHES: usize = 5;

/// The course of a world.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The user messages of each conversation, in order.
    pub(super) prompts: Vec<Vec<String>>,
    pub(super) settings: Settings,
    /// Whether calls of the tool with an effect need approval.
    pub(super) asks: bool,
    /// How long people take to answer, in milliseconds.
    pub(super) answer_ms: u64,
    /// The model's context size in bytes, if histories that exceed it are compacted.
    pub(super) context: Option<usize>,
    /// The first wait after a failure, in milliseconds.
    pub(super) base_ms: u64,
    /// The processes in order; a final one runs until everything is done.
    pub(super) lives: Vec<Life>,
    pub(super) last: Life,
}

/// One process.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) trigger: Trigger,
    pub(super) deeds: Vec<Deed>,
    /// How long no process runs after it, and by how much the clock is set back meanwhile, in milliseconds.
    pub(super) down_ms: u64,
    pub(super) set_back_ms: u64,
    pub(super) outage: Option<Outage>,
}

/// An outage of the journal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outage {
    /// The first failing append of the process, from 0.
    pub(super) from: u32,
    /// Number of failing appends.
    pub(super) appends: u32,
    /// Whether the failing appends are written nevertheless.
    pub(super) landed: bool,
}

/// An action of a person while a process runs.
#[derive(Clone, Debug)]
pub(super) struct Deed {
    /// Its time, in milliseconds after the process's start.
    pub(super) at_ms: u64,
    pub(super) conversation: usize,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Stop,
    Close,
    RetryNow,
    AbortRetry,
    Queue(String),
    Unqueue(String),
    /// The clock is set back by this much.
    SetBack(u64),
    /// The machine is suspended for this long.
    Suspend(u64),
}

impl What {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Close => "close",
            Self::RetryNow => "retry now",
            Self::AbortRetry => "abort retry",
            Self::Queue(_) => "queue a message",
            Self::Unqueue(_) => "take a message back",
            Self::SetBack(_) => "set the clock back",
            Self::Suspend(_) => "suspend the machine",
        }
    }
}

impl Plan {
    pub(super) fn of(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let conversations = rng.usize(1..4);
        let prompts = (0..conversations)
            .map(|c| (0..rng.usize(1..5)).map(|t| format!("c{c}.t{t}")).collect())
            .collect();
        let settings = Settings {
            max_parallel_tools: rng.u32(1..4),
            eager_tools: rng.u8(0..8) == 0,
            budget: Budget { max_wait_ms: Some(BUDGET_MS), deadline: None },
            ..Settings::default()
        };
        let base_ms = [300, 2_000, 10_000][rng.usize(0..3)];
        let crashes = if rng.u8(0..30) == 0 { 12 } else { rng.usize(0..=HARMLESS_CRASHES) };
        let (commands, clock) = (rng.u8(0..5) < 2, rng.u8(0..3) == 0);
        let outages = rng.u8(0..4) == 0;
        let mut queued = 0;
        let mut deeds = |rng: &mut fastrand::Rng| {
            let count = if commands || clock { rng.usize(0..8) } else { 0 };
            let mut deeds: Vec<_> =
                (0..count).filter_map(|_| deed(rng, conversations, (commands, clock), &mut queued)).collect();
            deeds.sort_by_key(|deed| deed.at_ms);
            deeds
        };
        let mut lives: Vec<_> = (0..crashes)
            .map(|_| Life {
                trigger: trigger(&mut rng),
                deeds: deeds(&mut rng),
                down_ms: moment(&mut rng),
                set_back_ms: if clock && rng.bool() { HOUR_MS } else { 0 },
                outage: outage(&mut rng, outages),
            })
            .collect();
        let last = Life { deeds: deeds(&mut rng), outage: outage(&mut rng, outages), ..Life::CALM };
        // Not random, so that worlds of old seeds are unchanged otherwise.
        let asks = seed % 3 == 1;
        let answer_ms = answer_ms(seed);
        if asks {
            // Rarely met otherwise.
            for (number, life) in (0..).zip(lives.iter_mut().step_by(2)) {
                life.trigger = Trigger::Asked(number % 3);
            }
        }
        let context = (seed % 4 == 2).then(|| [700, 800, 1_000][(seed / 4 % 3) as usize]);
        Self { prompts, settings, asks, answer_ms, context, base_ms, lives, last }
    }

    /// Returns the same world without crashes, commands and clock changes.
    pub(super) fn calm(self) -> Self {
        Self { lives: Vec::new(), last: Life::CALM, ..self }
    }

    /// Whether the outcome must equal that of the undisturbed world.
    pub(super) fn is_comparable(&self) -> bool {
        let lives = || self.lives.iter().chain([&self.last]);
        let deeds = lives().flat_map(|life| &life.deeds);
        // To a turn, a journal failure is like a crash.
        let crashes =
            lives().filter(|life| life.crashes()).count() + lives().filter_map(|life| life.outage).count();
        let interferes = |deed: &Deed| !matches!(deed.what, What::SetBack(_) | What::Suspend(_));
        // A step whose tools ran before its end was known is not repeated after a crash.
        crashes <= HARMLESS_CRASHES && !self.settings.eager_tools && !deeds.into_iter().any(interferes)
    }
}

impl Life {
    /// A process without disturbances that ends when everything is done.
    const CALM: Self =
        Self { trigger: Trigger::Never, deeds: Vec::new(), down_ms: 0, set_back_ms: 0, outage: None };

    fn crashes(&self) -> bool {
        !matches!(self.trigger, Trigger::Never | Trigger::Shutdown { .. })
    }
}

fn outage(rng: &mut fastrand::Rng, outages: bool) -> Option<Outage> {
    (outages && rng.bool()).then(|| {
        let (from, landed) = (rng.u32(0..12), rng.bool());
        // Each resumption that is written counts towards the most that a step may have.
        Outage { from, appends: rng.u32(1..if landed { 4 } else { 20 }), landed }
    })
}

fn trigger(rng: &mut fastrand::Rng) -> Trigger {
    match rng.u8(0..10) {
        8 | 9 => Trigger::Shutdown { at_ms: moment(rng), grace_ms: [0, 2_000, 60_000][rng.usize(0..3)] },
        0 | 1 => Trigger::Before(rng.u32(0..12)),
        2 | 3 => Trigger::After(rng.u32(0..12)),
        4 => Trigger::Piece(rng.u32(0..30)),
        5 => Trigger::Tool(rng.u32(0..6)),
        _ => Trigger::Time(moment(rng)),
    }
}

/// A time between a few milliseconds and hours.
fn moment(rng: &mut fastrand::Rng) -> u64 {
    let most = [20, 3_000, 60_000, 2 * HOUR_MS][rng.usize(0..4)];
    rng.u64(0..most)
}

/// How long people take to answer. Half of them are slow, so that something happens meanwhile.
pub(super) fn answer_ms(seed: u64) -> u64 {
    [20_000, 300_000, 1_000, 1_000][(seed / 3 % 4) as usize]
}

pub(super) fn deed(
    rng: &mut fastrand::Rng,
    conversations: usize,
    (commands, clock): (bool, bool),
    queued: &mut usize,
) -> Option<Deed> {
    let conversation = rng.usize(0..conversations);
    let mut name = |rng: &mut fastrand::Rng, new: bool| {
        *queued += usize::from(new);
        let number = if new { *queued } else { rng.usize(0..=*queued) };
        format!("c{conversation}.q{number}")
    };
    let what = match rng.u8(0..11) {
        10 if commands => What::Close,
        0 if commands => What::Stop,
        1 | 2 if commands => What::RetryNow,
        3 if commands => What::AbortRetry,
        4..=6 if commands => What::Queue(name(rng, true)),
        7 if commands => What::Unqueue(name(rng, false)),
        8 if clock => What::SetBack(HOUR_MS),
        9 if clock => What::Suspend([60_000, 8 * HOUR_MS][rng.usize(0..2)]),
        _ => return None,
    };
    Some(Deed { at_ms: moment(rng), conversation, what })
}
