//! What becomes of a person's command: it is carried out where the conversation is driven.

use crate::{
    model::Model,
    rule::Rule,
    rules::{Addressed, addressed},
    step::Step,
    turns::{Fed, Needs, View},
    world::{Client, Command, Driver, Held, Owed, Post, Reply, Stage, Then, World},
};

/// How often a conversation may change hands while a command is carried out.
const HANDOVERS: u8 = 5;

impl Command {
    fn is_for_a_turn(self) -> bool {
        matches!(self, Self::Stop | Self::RetryNow)
    }

    /// Whether there is something to do.
    fn applies(self, turn: Option<View>) -> bool {
        match self {
            Self::Stop => turn.is_some(),
            Self::Enqueue => true,
            Self::Allow => turn.is_some_and(|turn| turn.asks),
            Self::RetryNow => turn.is_some_and(|turn| turn.takes_retry_now),
        }
    }

    pub(crate) fn fed(self) -> Fed {
        match self {
            Self::Stop => Fed::Stop,
            Self::Enqueue => Fed::Steer,
            Self::Allow => Fed::Allow,
            Self::RetryNow => Fed::RetryNow,
        }
    }
}

impl Model {
    /// Whether a node can look at a command now: it has the conversation, and its session is not waiting for the log, or there
    /// is nothing to do.
    pub(crate) fn can_perform(&self, world: &World, n: usize) -> bool {
        let Some(held) = &world.nodes[n].held else { return false };
        match held.driver {
            Driver::Session(session) => {
                let turn = held.turn.map(|turn| self.view(turn));
                session.saving.is_none() || world.client.is_some_and(|client| !client.command.applies(turn))
            }
            Driver::Parked => {
                let needs = held.turn.map(|turn| self.view(turn).needs);
                needs == Some(Needs::Person) || (needs == Some(Needs::Time) && !world.is_due)
            }
            Driver::Empty | Driver::Elsewhere(_) => true,
        }
    }

    /// Whether a command can be looked at where it arrives: not before its node knows what its sender saw.
    pub(crate) fn can_deliver(&self, world: &World, post: &Post) -> bool {
        let node = &world.nodes[usize::from(post.to)];
        let is_behind =
            |held: Held| held.version < post.version && !matches!(held.driver, Driver::Elsewhere(_));
        let waits = node.held.is_some_and(is_behind) && !self.breaks(Rule::KnowsWhatTheSenderSaw);
        node.is_dead || (!waits && self.can_perform(world, post.to.into()))
    }

    pub(crate) fn of_command(&self, world: &mut World, step: Step) {
        match step {
            Step::Command => self.try_command(world),
            Step::Deliver(at) => {
                let post = world.posts.remove(at);
                self.deliver(world, post);
            }
            Step::DeliverTwice(at) => {
                world.left.doubles -= 1;
                self.deliver(world, world.posts[at]);
            }
            Step::Reply(at) => {
                let Post { serial, reply, .. } = world.posts.remove(at);
                self.replied(world, serial, reply);
            }
            Step::NoOwner => no_owner(world, true),
            Step::NoOwnerInDoubt => {
                world.left.doubts -= 1;
                no_owner(world, true);
            }
            Step::NoNode => {
                let tries = world.client.map_or(0, |client| client.tries);
                world.posts.retain(|post| post.serial != tries || post.reply.is_some());
                no_owner(world, false);
            }
            Step::Timeout => {
                world.left.timeouts -= 1;
                tell(world, None);
            }
            _ => {}
        }
    }

    /// One round of `Orchestrator::command`.
    fn try_command(&self, world: &mut World) {
        let Some(client) = &mut world.client else { return };
        let n = usize::from(client.at);
        let Some(held) = world.nodes[n].held else { return };
        client.stage = Stage::Ready;
        if client.tries >= HANDOVERS {
            return tell(world, None);
        }
        client.tries += 1;
        let turn = held.turn.map(|_| held.number);
        let meant = *client.meant.get_or_insert(turn);
        let Client { command, is_unanswered, has_sent, tries, .. } = *client;
        if meant != turn && command.is_for_a_turn() && !self.breaks(Rule::SenderComparesTurns) {
            return self.tell_outcome(world, false);
        }
        let waits = |turn: &_| self.view(*turn).takes_retry_now;
        let retry = held.turn.filter(|turn| command == Command::RetryNow && waits(turn));
        let meant_retry = *client.meant_retry.get_or_insert(retry);
        let is_elsewhere = matches!(held.driver, Driver::Elsewhere(_));
        let is_over = meant_retry.is_some() && meant_retry != retry;
        let may_be_over = is_unanswered && (meant_retry != retry || is_elsewhere);
        let ends_a_wait = command == Command::RetryNow && !self.breaks(Rule::SenderComparesWaits);
        if (is_over || may_be_over) && ends_a_wait {
            return self.tell_outcome(world, false);
        }
        let looks = has_sent && command == Command::Enqueue && !self.breaks(Rule::SenderLooksForMessage);
        if looks && world.seen.added > 0 {
            return tell(world, Some(true));
        }
        if let Driver::Elsewhere(to) = held.driver {
            client.has_sent = true;
            client.stage = Stage::Sent(to);
            let version = held.version;
            world.posts.push(Post { to, serial: tries, seen: turn, wait: retry, version, reply: None });
            return;
        }
        client.stage = Stage::Here;
        self.perform(world, n, Owed::Here);
    }

    /// Carries a command out at a node.
    fn perform(&self, world: &mut World, n: usize, owes: Owed) {
        let (Some(client), Some(held)) = (world.client, world.nodes[n].held) else { return };
        let command = client.command;
        let view = held.turn.map(|turn| self.view(turn));
        match held.driver {
            _ if !command.applies(view) => self.tell(world, n, owes, Reply::Done(false)),
            Driver::Empty if command == Command::Enqueue && held.number < 2 => {
                self.begin(world, n, true, Some(owes));
            }
            Driver::Empty | Driver::Elsewhere(_) => self.tell(world, n, owes, Reply::Done(false)),
            Driver::Parked => self.take_up(world, n, Then::Command(owes)),
            Driver::Session(_) => self.feed(world, n, command.fed(), Some(owes)),
        }
    }

    /// A command arrives at the node that its sender takes for the owner.
    fn deliver(&self, world: &mut World, post: Post) {
        let n = usize::from(post.to);
        let (Some(client), Some(held)) = (world.client, world.nodes[n].held) else { return };
        let owes = Owed::Post(post.serial);
        let bit = 1 << post.serial;
        if world.nodes[n].heard & bit != 0 && !self.breaks(Rule::RepeatedCommandsOnce) {
            return;
        }
        world.nodes[n].heard |= bit;
        if let Driver::Elsewhere(_) = held.driver {
            return self.tell(world, n, owes, Reply::NotHere);
        }
        let running = held.turn.map(|_| held.number);
        match addressed(&post.seen, &running, client.command.is_for_a_turn()) {
            _ if self.breaks(Rule::OwnerComparesTurns) => {}
            Addressed::Here => {}
            Addressed::Over => return self.tell(world, n, owes, Reply::Done(false)),
            Addressed::Again => return self.tell(world, n, owes, Reply::NotHere),
        }
        // A sender that saw no wait means any.
        let is_other_wait = post.wait.is_some() && post.wait != held.turn;
        if is_other_wait && !self.breaks(Rule::OwnerComparesWaits) {
            return self.tell(world, n, owes, Reply::Done(false));
        }
        let looks = client.command == Command::Enqueue && !self.breaks(Rule::OwnerLooksForMessage);
        if looks && world.seen.added > 0 {
            return self.tell(world, n, owes, Reply::Done(true));
        }
        self.perform(world, n, owes);
    }

    fn replied(&self, world: &mut World, serial: u8, reply: Option<Reply>) {
        let Some(client) = &mut world.client else { return };
        if !matches!(client.stage, Stage::Sent(_)) || client.tries != serial {
            return;
        }
        let n = usize::from(client.at);
        match reply {
            Some(Reply::NotHere) => {
                client.stage = Stage::Ready;
                self.catch_up(world, n);
            }
            Some(Reply::Done(done)) => self.tell_outcome(world, done),
            Some(Reply::Unknown) | None => tell(world, None),
        }
    }

    pub(crate) fn told_here(&self, world: &mut World, reply: Reply) {
        let Some(client) = &mut world.client else { return };
        match reply {
            // Another node was faster: that one gets the command.
            Reply::NotHere => client.stage = Stage::Ready,
            Reply::Done(done) => self.tell_outcome(world, done),
            Reply::Unknown => tell(world, None),
        }
    }

    /// Tells the person whether the command had an effect, as far as that is known.
    fn tell_outcome(&self, world: &mut World, had_effect: bool) {
        let Some(client) = &world.client else { return };
        // A node that did not answer may have carried it out.
        let is_known = had_effect || !client.is_unanswered || self.breaks(Rule::UnansweredIsUnknown);
        // A stop was for a turn that is over now.
        let is_over = client.command == Command::Stop;
        tell(world, if is_known { Some(had_effect) } else { is_over.then_some(true) });
    }
}

fn no_owner(world: &mut World, may_have_acted: bool) {
    if let Some(client) = &mut world.client
        && let Stage::Sent(to) = client.stage
    {
        client.stage = Stage::TakesOver(to);
        client.is_unanswered |= may_have_acted;
    }
}

fn tell(world: &mut World, outcome: Option<bool>) {
    if let Some(client) = &mut world.client
        && !matches!(client.stage, Stage::Told(_))
    {
        client.stage = Stage::Told(outcome);
    }
}
