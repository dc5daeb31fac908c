//! Whether the model may do what was seen.

use std::collections::HashSet;

use everturn_model::{
    Model, Setting, Step, System as _,
    turns::Facts,
    world::{Budget, Client, Stage, World},
};

use crate::{
    cluster::Ran,
    record::{Seen, Stored},
};

/// The length of a tick of the model, in milliseconds.
const TICK_MS: u64 = 1_500;

/// When the first tick may be: what is seen may lie before or after it.
const FIRST_TICKS_MS: [u64; 5] = [1, 301, 601, 901, 1_201];

/// The node of the person.
const PERSON_AT: u8 = 2;

/// How often a node may be taken for gone once one was cut off. More is tried only if less does not suffice: it multiplies states.
const DOUBTS: [u8; 2] = [1, 2];

/// Returns in how many states the model was at most, or how far it came.
pub(crate) fn accepts(ran: &Ran) -> Result<usize, String> {
    let mut furthest = (0, String::new());
    let attempts = DOUBTS.into_iter().flat_map(|doubts| FIRST_TICKS_MS.map(|first| (doubts, first)));
    for (doubts, first) in attempts {
        let trace = with_ticks(&ran.trace, first);
        match follow(ran, &trace, doubts) {
            Ok(states) => return Ok(states),
            Err((at, why)) if at >= furthest.0 => furthest = (at, why),
            Err(_) => {}
        }
    }
    Err(furthest.1)
}

/// Adds the ticks.
fn with_ticks(trace: &[(u64, Seen)], first: u64) -> Vec<Seen> {
    let began = trace.first().map_or(0, |(at, _)| *at);
    let mut next = began + first;
    let mut with = Vec::new();
    for &(at, seen) in trace {
        while next <= at {
            with.push(Seen::Tick);
            next += TICK_MS;
        }
        with.push(seen);
    }
    // What is decided in the end needs no more.
    with.extend([Seen::Tick; 4]);
    with
}

fn follow(ran: &Ran, trace: &[Seen], doubts: u8) -> Result<usize, (usize, String)> {
    let budget = Budget { slow: u8::MAX, ..Budget::default() };
    let model = Model::new(Setting { script: ran.script.clone(), budget, ..Setting::default() });
    let mut states = HashSet::from([model.first()]);
    let mut most = 1;
    // The model begins with the first append.
    for (at, &seen) in trace.iter().enumerate().skip(1) {
        let reached = closure(&model, states);
        most = most.max(reached.len());
        states = reached.iter().flat_map(|state| after(&model, state, seen, doubts)).collect();
        if matches!(seen, Seen::Asked(_)) {
            let is_heard = trace[..at].contains(&Seen::Late);
            states = looked_at(&model, states, is_heard);
        }
        if states.is_empty() {
            let samples: Vec<_> = reached.into_iter().take(2).collect();
            return Err((at, format!("{at}: {seen:?} is not possible in {samples:#?}")));
        }
    }
    let ends = closure(&model, states);
    match ends.iter().any(|state| rests(&model, state)) {
        true => Ok(most),
        false => {
            Err((trace.len(), format!("it cannot rest here: {:#?}", ends.iter().take(2).collect::<Vec<_>>())))
        }
    }
}

/// A command is looked at when it is sent, where that is possible: what its sender saw then is what it is meant for. `is_heard`:
/// whether its node hears of every append at once.
fn looked_at(model: &Model, states: HashSet<World>, is_heard: bool) -> HashSet<World> {
    let at = usize::from(PERSON_AT);
    let knows = |state: &&World| {
        let version = state.nodes[at].held.map(|held| held.version);
        !is_heard || version == Some(state.log.version())
    };
    let looked = states.iter().filter(knows).flat_map(|state| makes(model, state, Step::Command));
    let at_once: HashSet<_> = looked.collect();
    if at_once.is_empty() { states } else { at_once }
}

/// Adds what is reached by steps that are not seen.
fn closure(model: &Model, states: HashSet<World>) -> HashSet<World> {
    let mut frontier: Vec<_> = states.iter().cloned().collect();
    let (mut reached, mut steps) = (states, Vec::new());
    while let Some(state) = frontier.pop() {
        steps.clear();
        model.steps(&state, &mut steps);
        for &step in &steps {
            if matches!(step, Step::Start(_) | Step::Crash(_) | Step::Tick | Step::Due) {
                continue;
            }
            let then = model.take(&state, step);
            let is_stored = then.log.entries.len() > state.log.entries.len();
            if !is_stored && !reached.contains(&then) {
                reached.insert(then.clone());
                frontier.push(then);
            }
        }
    }
    reached
}

/// The states after something that is seen.
fn after(model: &Model, state: &World, seen: Seen, doubts: u8) -> Vec<World> {
    let mut granted = state.clone();
    let left = &mut granted.left;
    match seen {
        Seen::Stored(stored) => return stores(model, state, &stored),
        Seen::Started(node, number) => {
            let held = state.nodes[node].held;
            if held.is_none_or(|held| held.number != number) {
                return Vec::new();
            }
            return makes(model, state, Step::Start(node));
        }
        Seen::Told(told) => {
            let is_told = state.client.is_some_and(|client| client.stage == Stage::Told(told));
            return is_told.then(|| state.clone()).into_iter().collect();
        }
        Seen::Due => return makes(model, state, Step::Due),
        Seen::Killed(node) => {
            left.crashes += 1;
            return makes(model, &granted, Step::Crash(node));
        }
        Seen::Tick => {
            left.slow = u8::MAX;
            let then = makes(model, &granted, Step::Tick);
            return if then.is_empty() { vec![granted] } else { then };
        }
        Seen::GaveUp(_) => left.give_ups += 1,
        Seen::CutOff(_) => left.doubts += doubts,
        Seen::Begun => left.begins += 1,
        Seen::Late => {
            left.doubles += doubts;
            left.doubts += doubts;
        }
        Seen::Unheard(_) => {
            left.timeouts += 1;
            left.doubts += doubts;
        }
        Seen::Asked(command) => {
            // Nothing of an earlier command is under way.
            granted.nodes.iter_mut().for_each(|node| node.heard = 0);
            granted.posts.clear();
            granted.client = Some(Client {
                at: PERSON_AT,
                command,
                meant: None,
                meant_retry: None,
                has_sent: false,
                is_unanswered: false,
                tries: 0,
                stage: Stage::Ready,
            });
        }
    }
    vec![granted]
}

/// Makes a step, if it is possible.
fn makes(model: &Model, state: &World, step: Step) -> Vec<World> {
    let mut steps = Vec::new();
    model.steps(state, &mut steps);
    steps.contains(&step).then(|| model.take(state, step)).into_iter().collect()
}

/// Stores an append that says the same.
fn stores(model: &Model, state: &World, stored: &Stored) -> Vec<World> {
    let is_same = |at: &usize| {
        let append = &state.sent[*at];
        let facts = Facts { hurries: false, is_early: false, ..append.facts };
        let turn = append.next.map(|turn| model.view(turn));
        let same = (usize::from(append.node), facts, turn, append.number);
        same == (stored.node, stored.facts, stored.turn, stored.number)
    };
    let arrives = |at| model.take(state, Step::Arrive(at));
    let is_stored = |then: &World| then.log.entries.len() > state.log.entries.len();
    (0..state.sent.len()).filter(is_same).map(arrives).filter(is_stored).collect()
}

/// Whether nothing happens by itself any more, and nothing is unfinished.
fn rests(model: &Model, state: &World) -> bool {
    let mut steps = Vec::new();
    model.steps(state, &mut steps);
    steps.iter().all(|step| model.is_optional(state, *step)) && model.unfinished(state).is_none()
}
