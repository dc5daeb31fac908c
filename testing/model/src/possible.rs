//! When each step is possible.

use crate::{
    model::Model,
    rule::Rule,
    step::Step,
    turns::Needs,
    world::{Driver, NODES, Node, OLD, Stage, World},
};

impl Model {
    pub(crate) fn possible(&self, world: &World, steps: &mut Vec<Step>) {
        steps.extend((0..world.sent.len()).map(Step::Arrive));
        for at in 0..world.live.len() {
            steps.push(Step::Hear(at));
            if world.left.losses > 0 {
                steps.push(Step::Lose(at));
            }
        }
        (0..NODES).filter(|n| !world.nodes[*n].is_dead).for_each(|n| self.at_node(world, n, steps));
        if world.nodes.iter().any(Node::ages_proof) {
            if world.left.slow > 0 {
                steps.push(Step::Tick);
            }
        } else if world.nodes.iter().any(|node| node.undecided.is_some_and(|(_, age)| age < OLD)) {
            steps.push(Step::Tick);
        }
        if !world.is_due && world.log.turn.is_some_and(|turn| self.view(turn).needs == Needs::Time) {
            steps.push(Step::Due);
        }
        self.of_commands(world, steps);
    }

    fn at_node(&self, world: &World, n: usize, steps: &mut Vec<Step>) {
        let (node, left) = (&world.nodes[n], world.left);
        if left.crashes > 0 {
            steps.push(Step::Crash(n));
        }
        let Some(held) = &node.held else { return steps.push(Step::Load(n)) };
        let is_behind = held.version < world.log.version();
        let needs = held.turn.map(|turn| self.view(turn).needs);
        match held.driver {
            Driver::Empty => {
                if left.begins > 0 && held.number < 2 {
                    steps.push(Step::Begin(n));
                }
            }
            Driver::Elsewhere(owner) => {
                let is_gone = world.nodes[usize::from(owner)].is_dead;
                if is_gone && !self.breaks(Rule::HeirsTakeOver) && self.can_take_over(world, n) {
                    steps.push(Step::TakeOver(n));
                } else if !is_gone && self.is_in_doubt(world, n) && self.can_take_over(world, n) {
                    steps.push(Step::TakeOverInDoubt(n));
                }
            }
            Driver::Parked => {
                let waits =
                    matches!(needs, Some(Needs::Person)) || (needs == Some(Needs::Time) && !world.is_due);
                if !waits || (needs == Some(Needs::Time) && self.breaks(Rule::KeepsWaits)) {
                    steps.push(Step::Resume(n));
                }
                if needs == Some(Needs::Time) && left.releases > 0 {
                    steps.push(Step::Release(n));
                }
            }
            Driver::Session(session) => {
                if let Some(saving) = session.saving {
                    if saving.answer.is_some() {
                        steps.push(Step::Learn(n));
                    }
                    if left.give_ups > 0 {
                        steps.push(Step::GiveUp(n));
                    }
                }
                self.of_session(world, n, steps);
            }
        }
        if is_behind && self.can_catch_up(world, n) {
            steps.push(Step::CatchUp(n));
        }
    }

    /// Whether a node takes the owner for gone, although it is not.
    fn is_in_doubt(&self, world: &World, n: usize) -> bool {
        let has_command = world
            .client
            .is_some_and(|client| usize::from(client.at) == n && matches!(client.stage, Stage::TakesOver(_)));
        world.left.doubts > 0 || world.nodes[n].undecided.is_some() || has_command
    }

    fn of_session(&self, world: &World, n: usize, steps: &mut Vec<Step>) {
        let Some(held) = &world.nodes[n].held else { return };
        let Some(session) = held.driver.session() else { return };
        if let Some(turn) = self.turn_to_run(held)
            && self.view(turn).runs
            && !session.has_started
        {
            // A session that saves is here only if that rule is broken.
            if session.saving.is_some() || self.has_proof(session) {
                steps.push(Step::Start(n));
            } else {
                steps.push(Step::SaveAgain(n));
            }
        }
        let (None, Some(turn)) = (session.saving, held.turn) else { return };
        match self.view(turn).needs {
            Needs::Provider => steps.push(Step::Provider(n)),
            Needs::Time if world.is_due => steps.push(Step::Alarm(n)),
            Needs::Tools if session.has_started => steps.push(Step::ToolDone(n)),
            _ => {}
        }
    }

    fn of_commands(&self, world: &World, steps: &mut Vec<Step>) {
        for (at, post) in world.posts.iter().enumerate() {
            if post.reply.is_some() {
                steps.push(Step::Reply(at));
            } else if self.can_deliver(world, post) {
                steps.push(Step::Deliver(at));
                if world.left.doubles > 0 {
                    steps.push(Step::DeliverTwice(at));
                }
            }
        }
        let Some(client) = &world.client else { return };
        if world.nodes[usize::from(client.at)].is_dead {
            return;
        }
        match client.stage {
            Stage::Ready if self.can_perform(world, client.at.into()) => steps.push(Step::Command),
            Stage::Sent(to) => {
                if world.nodes[usize::from(to)].is_dead {
                    steps.push(Step::NoOwner);
                    if world.posts.iter().any(|post| post.serial == client.tries && post.reply.is_none()) {
                        steps.push(Step::NoNode);
                    }
                } else if world.left.doubts > 0 {
                    steps.push(Step::NoOwnerInDoubt);
                }
                if world.left.timeouts > 0 {
                    steps.push(Step::Timeout);
                }
            }
            Stage::TakesOver(from) => {
                let n = usize::from(client.at);
                let held = world.nodes[n].held;
                let is_done = held.is_some_and(|held| held.driver != Driver::Elsewhere(from));
                // Or its node is back.
                let is_back = !world.nodes[usize::from(from)].is_dead;
                if (is_done || is_back) && self.can_perform(world, n) {
                    steps.push(Step::Command);
                }
            }
            _ => {}
        }
    }

    /// Whether a step need not happen: a failure, or a person's whim.
    pub(crate) fn need_not_happen(world: &World, step: Step) -> bool {
        match step {
            Step::Crash(_)
            | Step::GiveUp(_)
            | Step::Lose(_)
            | Step::TakeOverInDoubt(_)
            | Step::Begin(_)
            | Step::Release(_)
            | Step::DeliverTwice(_)
            | Step::NoOwnerInDoubt
            | Step::Timeout => true,
            // Nodes and the log are quick, unless something is wrong.
            Step::Tick => world.nodes.iter().any(Node::ages_proof),
            // Nobody waits for it any more.
            Step::Arrive(at) => world.waiting_for(at).is_none(),
            _ => false,
        }
    }
}

impl Node {
    /// Whether time makes a proof older.
    pub(crate) fn ages_proof(&self) -> bool {
        let session = self.held.as_ref().and_then(|held| held.driver.session());
        session.is_some_and(|it| it.proof < OLD || it.saving.is_some_and(|saving| saving.age < OLD))
    }
}
