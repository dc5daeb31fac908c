//! The checker: visits every state that a system can reach, breadth first.
//!
//! States are told apart by 128-bit hashes, and only the frontier is kept whole. A violation comes with a shortest way to it.
//! That everything ends is checked on the complete graph: among the steps that happen by themselves there is no cycle, and a
//! state without any is an end. (Checkers that decide `eventually` along single paths miss paths that join.)

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    time::{Duration, Instant},
};

/// A system of states and steps.
pub trait System {
    /// A state.
    type State: Clone + Hash;
    /// A step from one state to another.
    type Step: Copy + std::fmt::Debug;

    /// Returns the state that everything begins in.
    fn first(&self) -> Self::State;

    /// Adds the steps that are possible in a state.
    fn steps(&self, state: &Self::State, steps: &mut Vec<Self::Step>);

    /// Makes a step.
    fn take(&self, state: &Self::State, step: Self::Step) -> Self::State;

    /// Whether the step is a failure, or something else that need not happen.
    fn is_optional(&self, state: &Self::State, step: Self::Step) -> bool;

    /// Returns what is wrong with a state.
    fn wrong(&self, state: &Self::State) -> Option<&'static str>;

    /// Returns what is wrong with a state in which nothing happens by itself any more.
    fn unfinished(&self, state: &Self::State) -> Option<&'static str>;
}

/// What became of an exploration.
#[derive(Debug)]
pub struct Explored<S: System> {
    /// The number of different states.
    pub states: usize,
    /// The number of steps between them.
    pub steps: usize,
    /// The number of states in which nothing happens by itself any more.
    pub ends: usize,
    /// The length of the longest shortest way to a state.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// What was found to be wrong, and the steps that lead there.
    pub violation: Option<(&'static str, Vec<S::Step>)>,
}

/// Explores a system, if it has no more than this many states.
pub fn explore<S: System>(system: &S, most: usize) -> Explored<S> {
    let began = Instant::now();
    let mut graph: Graph<S> = Graph { index: HashMap::new(), came: Vec::new(), own: Vec::new() };
    let mut explored =
        Explored { states: 0, steps: 0, ends: 0, depth: 0, took: Duration::ZERO, violation: None };
    let first = system.first();
    graph.add(&first, None);
    let (mut frontier, mut steps) = (vec![(0, first)], Vec::new());
    'all: while !frontier.is_empty() {
        let mut next = Vec::new();
        for (at, state) in frontier {
            if let Some(wrong) = system.wrong(&state) {
                explored.violation = Some((wrong, graph.way(at)));
                break 'all;
            }
            steps.clear();
            system.steps(&state, &mut steps);
            explored.steps += steps.len();
            let mut own = Vec::new();
            for &step in &steps {
                let then = system.take(&state, step);
                let (to, is_new) = graph.add(&then, Some((at, step)));
                if !system.is_optional(&state, step) {
                    own.push(to);
                }
                if is_new {
                    next.push((to, then));
                }
            }
            if own.is_empty() {
                explored.ends += 1;
                if let Some(wrong) = system.unfinished(&state) {
                    explored.violation = Some((wrong, graph.way(at)));
                    break 'all;
                }
            }
            graph.own[at as usize] = own.into();
        }
        if graph.came.len() > most {
            explored.violation = Some(("there are too many states to visit", Vec::new()));
            break;
        }
        explored.depth += usize::from(!next.is_empty());
        frontier = next;
    }
    if explored.violation.is_none()
        && let Some(at) = graph.cycle()
    {
        explored.violation = Some(("something repeats for ever", graph.way(at)));
    }
    (explored.states, explored.took) = (graph.came.len(), began.elapsed());
    explored
}

struct Graph<S: System> {
    index: HashMap<u128, u32>,
    /// From where a state was first reached.
    came: Vec<Option<(u32, S::Step)>>,
    /// Where the steps that happen by themselves lead.
    own: Vec<Box<[u32]>>,
}

impl<S: System> Graph<S> {
    fn add(&mut self, state: &S::State, came: Option<(u32, S::Step)>) -> (u32, bool) {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, state).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        let new = u32::try_from(self.came.len()).unwrap_or(u32::MAX);
        let at = *self.index.entry(half(0) << 64 | half(1)).or_insert(new);
        if at == new {
            self.came.push(came);
            self.own.push(Box::default());
        }
        (at, at == new)
    }

    fn way(&self, mut at: u32) -> Vec<S::Step> {
        let mut way = Vec::new();
        while let Some((from, step)) = self.came[at as usize] {
            way.push(step);
            at = from;
        }
        way.reverse();
        way
    }

    /// Returns a state from which steps that happen by themselves lead back to it, or into such a cycle.
    fn cycle(&self) -> Option<u32> {
        let mut into = vec![0_u32; self.own.len()];
        self.own.iter().flatten().for_each(|to| into[*to as usize] += 1);
        let mut free: Vec<usize> = (0..into.len()).filter(|at| into[*at] == 0).collect();
        let mut left = into.len();
        while let Some(at) = free.pop() {
            left -= 1;
            for to in &self.own[at] {
                into[*to as usize] -= 1;
                if into[*to as usize] == 0 {
                    free.push(*to as usize);
                }
            }
        }
        if left == 0 {
            return None;
        }
        let at = into.iter().position(|count| *count > 0)?;
        u32::try_from(at).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers up to 20: one more, optionally two more, and from `back` to 0.
    struct Numbers {
        back: Option<u8>,
        wrong: Option<u8>,
    }

    impl System for Numbers {
        type State = u8;
        type Step = u8;

        fn first(&self) -> u8 {
            0
        }

        fn steps(&self, state: &u8, steps: &mut Vec<u8>) {
            if *state < 20 {
                steps.extend([1, 2]);
            }
            if self.back == Some(*state) {
                steps.push(0);
            }
        }

        fn take(&self, state: &u8, step: u8) -> u8 {
            if step == 0 { 0 } else { state + step }
        }

        fn is_optional(&self, _: &u8, step: u8) -> bool {
            step == 2
        }

        fn wrong(&self, state: &u8) -> Option<&'static str> {
            (self.wrong == Some(*state)).then_some("wrong")
        }

        fn unfinished(&self, state: &u8) -> Option<&'static str> {
            (*state < 20).then_some("unfinished")
        }
    }

    #[test]
    fn all_states_are_visited_and_a_shortest_way_is_found() {
        let explored = explore(&Numbers { back: None, wrong: None }, 100);
        assert_eq!((explored.states, explored.steps, explored.ends), (22, 40, 2));
        assert!(explored.violation.is_none());
        let explored = explore(&Numbers { back: None, wrong: Some(5) }, 100);
        assert_eq!(explored.violation.map(|(what, way)| (what, way.len())), Some(("wrong", 3)));
    }

    #[test]
    fn a_cycle_is_found() {
        let explored = explore(&Numbers { back: Some(7), wrong: None }, 100);
        assert_eq!(explored.violation.map(|(what, _)| what), Some("something repeats for ever"));
    }
}
