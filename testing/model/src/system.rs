//! The model as a system of states and steps.

use crate::{
    explore::System,
    model::Model,
    step::Step,
    world::{Client, Driver, Held, Log, NODES, Node, Seen, Stage, World},
};

impl System for Model {
    type State = World;
    type Step = Step;

    fn first(&self) -> World {
        let turn = self.turns.begin(1, false).turn;
        let log = Log { entries: vec![(0, 0)], turn: Some(turn), number: 1 };
        let held = |driver| Some(Held { version: 1, turn: Some(turn), number: 1, driver });
        let mut world = World {
            log,
            nodes: std::array::from_fn(|_| Node { held: held(Driver::Elsewhere(0)), ..Node::default() }),
            sent: Vec::new(),
            live: Vec::new(),
            posts: Vec::new(),
            client: self.setting.command.map(|(command, at)| Client {
                at,
                command,
                meant: None,
                meant_retry: None,
                has_sent: false,
                is_unanswered: false,
                tries: 0,
                stage: Stage::Ready,
            }),
            is_due: false,
            left: self.setting.budget,
            seen: Seen::default(),
        };
        world.nodes[0].held = held(Driver::Session(Self::session(&world)));
        world
    }

    fn steps(&self, state: &World, steps: &mut Vec<Step>) {
        self.possible(state, steps);
    }

    fn take(&self, state: &World, step: Step) -> World {
        let mut world = state.clone();
        self.make(&mut world, step);
        (0..NODES - 1).for_each(|n| self.follow_at_once(&mut world, n));
        world.sent.sort_unstable();
        world.live.sort_unstable();
        world.posts.sort_unstable();
        world.posts.dedup();
        world
    }

    fn is_optional(&self, state: &World, step: Step) -> bool {
        Self::need_not_happen(state, step)
    }

    fn wrong(&self, state: &World) -> Option<&'static str> {
        self.is_wrong(state)
    }

    fn unfinished(&self, state: &World) -> Option<&'static str> {
        self.is_unfinished(state)
    }
}
