//! What happens in a world, drawn from its seed.

use everturn_orchestrator::kernel::{Budget, Settings};

use super::{fuse::Trigger, script::BUDGET_MS};

const HOUR_MS: u64 = 3_600_000;

/// A step may be taken up again so often before its turn is given up: below it, a crash changes nothing in the end.
const HARMLESS_CRASHES: usize = 5;

/// What happens in a world.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// What is said in each conversation, one after the other.
    pub(super) prompts: Vec<Vec<String>>,
    pub(super) settings: Settings,
    /// Whether calls of the tool that has an effect need approval.
    pub(super) asks: bool,
    /// How many bytes of text the model can read, if histories are summarized when they are longer.
    pub(super) context: Option<usize>,
    /// The first wait after a failure, in milliseconds.
    pub(super) base_ms: u64,
    /// The processes, one after the other; then one more that lives until all is done.
    pub(super) lives: Vec<Life>,
    pub(super) last: Life,
}

/// One process.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) trigger: Trigger,
    pub(super) deeds: Vec<Deed>,
    /// How long no process runs then, and by how much the clock is set back meanwhile, in milliseconds.
    pub(super) down_ms: u64,
    pub(super) set_back_ms: u64,
    pub(super) outage: Option<Outage>,
}

/// The journal fails for a while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outage {
    /// From this append of the process on, counted from 0.
    pub(super) from: u32,
    /// Number of appends that fail.
    pub(super) appends: u32,
    /// They are written, but nobody is told so.
    pub(super) landed: bool,
}

/// What someone does while a process runs.
#[derive(Clone, Debug)]
pub(super) struct Deed {
    /// So long after its beginning, in milliseconds.
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
    /// The clock is set back by so much.
    SetBack(u64),
    /// The machine is suspended for so long.
    Suspend(u64),
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
        let lives = (0..crashes)
            .map(|_| Life {
                trigger: trigger(&mut rng),
                deeds: deeds(&mut rng),
                down_ms: moment(&mut rng),
                set_back_ms: if clock && rng.bool() { HOUR_MS } else { 0 },
                outage: outage(&mut rng, outages),
            })
            .collect();
        let last = Life { deeds: deeds(&mut rng), outage: outage(&mut rng, outages), ..Life::CALM };
        // Not drawn: worlds of old seeds stay as they are, but for this.
        let asks = seed % 3 == 1;
        let context = (seed % 4 == 2).then(|| [600, 800, 1_000][(seed / 4 % 3) as usize]);
        Self { prompts, settings, asks, context, base_ms, lives, last }
    }

    /// The same world without crashes, commands and a clock that is set.
    pub(super) fn calm(self) -> Self {
        Self { lives: Vec::new(), last: Life::CALM, ..self }
    }

    /// Whether it must end as the calm one does.
    pub(super) fn is_comparable(&self) -> bool {
        let lives = || self.lives.iter().chain([&self.last]);
        let deeds = lives().flat_map(|life| &life.deeds);
        // A journal that fails is to a turn as a crash.
        let crashes =
            lives().filter(|life| life.crashes()).count() + lives().filter_map(|life| life.outage).count();
        let interferes = |deed: &Deed| !matches!(deed.what, What::SetBack(_) | What::Suspend(_));
        // A step whose tools ran before its end was known is not asked again after a crash.
        crashes <= HARMLESS_CRASHES && !self.settings.eager_tools && !deeds.into_iter().any(interferes)
    }
}

impl Life {
    /// One in which nothing happens, and that ends when all is done.
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

/// From a few milliseconds to hours.
fn moment(rng: &mut fastrand::Rng) -> u64 {
    let most = [20, 3_000, 60_000, 2 * HOUR_MS][rng.usize(0..4)];
    rng.u64(0..most)
}

fn deed(
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
