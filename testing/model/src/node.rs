//! What nodes and the log do.

use crate::{
    model::Model,
    rule::Rule,
    rules::{self, Heard},
    step::Step,
    turns::{Fed, Id, Needs},
    world::{
        Append, Driver, Held, Live, NODES, Node, OLD, Owed, Post, Reply, Session, Stage, Stale, Then, World,
    },
};

impl World {
    /// The node that waits for what becomes of an append.
    pub(crate) fn waiting_for(&self, at: usize) -> Option<usize> {
        let append = self.sent.get(at)?;
        let node = &self.nodes[usize::from(append.node)];
        let saving = node.held.as_ref()?.driver.session()?.saving?;
        let waits = saving.answer.is_none() && node.given_up == append.given_up && !node.is_dead;
        waits.then_some(append.node.into())
    }

    pub(crate) fn session(&mut self, n: usize) -> Option<&mut Session> {
        match &mut self.nodes[n].held.as_mut()?.driver {
            Driver::Session(session) => Some(session),
            _ => None,
        }
    }
}

impl Model {
    pub(crate) fn make(&self, world: &mut World, step: Step) {
        match step {
            Step::Arrive(at) => self.arrive(world, at),
            Step::Learn(n) => self.learn(world, n),
            Step::GiveUp(n) => self.give_up(world, n),
            Step::Load(n) => world.nodes[n].held = Some(load(world, n)),
            Step::CatchUp(n) => self.catch_up(world, n),
            Step::Hear(at) => self.hear(world, at),
            Step::Lose(at) => {
                world.left.losses -= 1;
                world.live.remove(at);
            }
            Step::Resume(n) => self.resume(world, n),
            Step::Provider(n) => {
                let granted = world.session(n).is_some_and(|session| session.granted);
                self.feed(world, n, Fed::Provider { granted }, None);
            }
            Step::Alarm(n) => self.feed(world, n, Fed::Tick, None),
            Step::Release(n) => {
                world.left.releases -= 1;
                self.take_up(world, n, Then::Release);
            }
            Step::Start(n) => self.start(world, n),
            Step::SaveAgain(n) => self.feed(world, n, Fed::Save, None),
            Step::ToolDone(n) => self.feed(world, n, Fed::ToolDone, None),
            Step::TakeOver(n) => self.take_over(world, n),
            Step::TakeOverInDoubt(n) => {
                let is_judged = world.client.is_some_and(|it| matches!(it.stage, Stage::TakesOver(_)));
                world.left.doubts = world.left.doubts.saturating_sub(u8::from(!is_judged));
                self.take_over(world, n);
            }
            Step::Begin(n) => {
                world.left.begins -= 1;
                self.begin(world, n, false, None);
            }
            Step::Crash(n) => crash(world, n),
            Step::Tick => tick(world),
            Step::Due => world.is_due = true,
            Step::Command
            | Step::Deliver(_)
            | Step::DeliverTwice(_)
            | Step::Reply(_)
            | Step::NoOwner
            | Step::NoNode
            | Step::NoOwnerInDoubt
            | Step::Timeout => self.of_command(world, step),
        }
    }

    fn arrive(&self, world: &mut World, at: usize) {
        let waiting = world.waiting_for(at);
        let append = world.sent.remove(at);
        let Append { node, given_up, expected, next, number, .. } = append;
        let is_stored = expected == world.log.version() || self.breaks(Rule::AppendCompares);
        let answer = if is_stored {
            world.log.entries.push((node, given_up));
            let waits = |turn: Option<Id>| turn.is_some_and(|turn| self.view(turn).needs == Needs::Time);
            if waits(next) && world.log.turn != next {
                world.is_due = false;
            }
            (world.log.turn, world.log.number) = (next, number);
            world.seen.append(&append);
            let version = world.log.version();
            if self.setting.hears && usize::from(node) != NODES - 1 {
                world.live.push(Live { previous: expected, version, owner: node, turn: next, number });
            }
            Ok(version)
        } else {
            let writer = world.log.entries.get(usize::from(expected)).map(|(writer, _)| *writer);
            match self.breaks(Rule::LooksForOwnAppend) && writer == Some(node) {
                true => Ok(expected + 1),
                false => Err(Stale),
            }
        };
        if let Some(saving) = waiting.and_then(|n| world.session(n)).and_then(|it| it.saving.as_mut()) {
            saving.answer = Some(answer);
        }
    }

    pub(crate) fn can_catch_up(&self, world: &World, n: usize) -> bool {
        let Some(held) = &world.nodes[n].held else { return false };
        let is_own = world.log.turn.is_some() && usize::from(world.log.owner()) == n;
        match held.driver {
            Driver::Empty | Driver::Elsewhere(_) => !(is_own && self.breaks(Rule::FindsOwnTurns)),
            Driver::Parked => true,
            // It finds out by saving its turn.
            Driver::Session(session) => session.saving.is_none() && usize::from(world.log.owner()) != n,
        }
    }

    pub(crate) fn catch_up(&self, world: &mut World, n: usize) {
        let Some(held) = world.nodes[n].held else { return };
        if held.version >= world.log.version() || !self.can_catch_up(world, n) {
            return;
        }
        let is_own = world.log.turn.is_some() && usize::from(world.log.owner()) == n;
        match held.driver {
            Driver::Empty | Driver::Elsewhere(_) if is_own => world.nodes[n].held = None,
            Driver::Empty | Driver::Elsewhere(_) => world.nodes[n].held = Some(load(world, n)),
            Driver::Parked => world.nodes[n].held = None,
            Driver::Session(_) => self.feed(world, n, Fed::Save, None),
        }
    }

    /// All nodes but the last one follow at once while they do not drive, which leaves far fewer states: what a node knew that
    /// is behind matters only when it acts, and the last one may be behind.
    pub(crate) fn follow_at_once(&self, world: &mut World, n: usize) {
        if world.nodes[n].is_dead {
            return;
        }
        match world.nodes[n].held {
            None => world.nodes[n].held = Some(load(world, n)),
            Some(Held { driver: Driver::Empty | Driver::Elsewhere(_), version, .. })
                if version < world.log.version() && self.can_catch_up(world, n) =>
            {
                self.catch_up(world, n);
                self.follow_at_once(world, n);
            }
            Some(_) => {}
        }
    }

    fn hear(&self, world: &mut World, at: usize) {
        let Live { previous, version, owner, turn, number } = world.live.remove(at);
        let n = NODES - 1;
        let Some(held) = world.nodes[n].held else { return };
        let heard = match rules::heard(&previous, &version, &held.version) {
            Heard::Known if self.breaks(Rule::KnownIsIgnored) => Heard::Next,
            Heard::Gap if self.breaks(Rule::GapsAreRead) => Heard::Next,
            heard => heard,
        };
        match (heard, held.driver) {
            (Heard::Known, _) => {}
            (Heard::Gap, Driver::Empty | Driver::Elsewhere(_)) => self.catch_up(world, n),
            (Heard::Next, Driver::Empty | Driver::Elsewhere(_)) => {
                if version != held.version + 1 {
                    world.seen.wrong = Some("a watcher misses an event, or sees it twice");
                }
                let driver = turn.map_or(Driver::Empty, |_| Driver::Elsewhere(owner));
                world.nodes[n].held = Some(Held { version, turn, number, driver });
            }
            (_, Driver::Parked) => world.nodes[n].held = None,
            (_, Driver::Session(session)) if session.saving.is_none() => self.feed(world, n, Fed::Save, None),
            (_, Driver::Session(_)) => {}
        }
    }

    /// Whether a node need not wait any longer before it takes the turn over.
    pub(crate) fn can_take_over(&self, world: &World, n: usize) -> bool {
        let Some((version, age)) = world.nodes[n].undecided else { return true };
        let is_read = version == world.log.version() || self.breaks(Rule::WaitsPerVersion);
        !(is_read && age < OLD && self.must_wait(world, n))
    }

    fn must_wait(&self, world: &World, n: usize) -> bool {
        let is_held = world.nodes[n].held.is_some_and(|it| it.driver == Driver::Elsewhere(world.log.owner()));
        let may_be_starting = world.log.turn.is_some_and(|turn| self.view(turn).may_be_starting);
        is_held && may_be_starting && self.undecided_left(world, n)
    }

    fn take_over(&self, world: &mut World, n: usize) {
        let Some(held) = world.nodes[n].held else { return };
        let Driver::Elsewhere(from) = held.driver else { return };
        if world.log.owner() != from || world.log.turn.is_none() {
            world.nodes[n].held = Some(load(world, n));
            return;
        }
        if self.must_wait(world, n) {
            world.nodes[n].undecided = Some((world.log.version(), 0));
            return;
        }
        world.nodes[n].undecided = None;
        let mut adopted = Held { driver: Driver::Parked, ..load(world, n) };
        if self.breaks(Rule::AdoptsFromTheLog) {
            (adopted.turn, adopted.number) = (held.turn, held.number);
        }
        world.nodes[n].held = Some(adopted);
    }

    /// Tells whoever sent a command what became of it.
    pub(crate) fn tell(&self, world: &mut World, n: usize, owed: Owed, reply: Reply) {
        match owed {
            Owed::Post(serial) => {
                let client = world.client;
                if client.is_some_and(|client| client.stage != Stage::Here && client.tries == serial) {
                    let to = index(n);
                    let reply = Some(reply);
                    let post = Post { to, serial, seen: None, wait: None, version: 0, reply };
                    world.posts.push(post);
                }
            }
            Owed::Here => self.told_here(world, reply),
        }
    }
}

/// Reads the conversation from the log.
fn load(world: &World, n: usize) -> Held {
    let driver = match world.log.turn {
        None => Driver::Empty,
        Some(_) if usize::from(world.log.owner()) == n => Driver::Parked,
        Some(_) => Driver::Elsewhere(world.log.owner()),
    };
    Held { version: world.log.version(), turn: world.log.turn, number: world.log.number, driver }
}

fn crash(world: &mut World, n: usize) {
    world.left.crashes -= 1;
    let node = &mut world.nodes[n];
    (node.is_dead, node.held, node.undecided) = (true, None, None);
    if let Some(client) = &mut world.client
        && usize::from(client.at) == n
        && !matches!(client.stage, Stage::Told(_))
    {
        client.stage = Stage::Told(None);
    }
}

fn tick(world: &mut World) {
    if world.nodes.iter().any(Node::ages_proof) {
        world.left.slow -= 1;
    }
    let older = |age: &mut u8| *age = (*age + 1).min(OLD);
    for node in &mut world.nodes {
        if let Some((_, age)) = &mut node.undecided {
            older(age);
        }
        if let Some(Held { driver: Driver::Session(session), .. }) = &mut node.held {
            older(&mut session.proof);
            if let Some(saving) = &mut session.saving {
                older(&mut saving.age);
            }
        }
    }
}

pub(crate) fn index(n: usize) -> u8 {
    u8::try_from(n).unwrap_or(u8::MAX)
}
