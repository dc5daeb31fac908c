//! What this node lacks to continue a turn of another node.

use super::Ports;
use crate::{conversation::Parked, journal::Definition, schedule};

/// Returns what this node lacks to continue a parked turn, if anything: its model or every target of its route, a tool
/// that its open calls need, or its schedule. Another node may have it.
pub(crate) fn missing_here(ports: &Ports, parked: &Parked) -> Option<String> {
    let Parked { turn, definition, .. } = parked;
    lacks_model(ports, parked).or_else(|| lacks_schedule(definition)).or_else(|| {
        // The tools of such a turn are its caller's.
        let brings_tools = definition.request.as_ref().is_some_and(|scope| scope.tools.is_some());
        let mut calls = turn.calls_to_run().filter(|_| !brings_tools);
        let missing = calls.find(|call| !ports.tools.has(&call.name))?;
        Some(format!("the tool {}", missing.name))
    })
}

/// A model without a key is not configured, so this also finds missing keys.
fn lacks_model(ports: &Ports, Parked { turn, definition, .. }: &Parked) -> Option<String> {
    let targets = &turn.settings().targets;
    if targets.is_empty() {
        let model = &definition.model;
        return (!model.is_empty() && !ports.models.now().knows(model)).then(|| model.clone());
    }
    // With any of its targets, it moves on to that one.
    let knows_one = targets.iter().any(|target| ports.models.now().knows(&target.name));
    let names = || targets.iter().map(|target| target.name.as_str()).collect::<Vec<_>>().join(" or ");
    (!knows_one).then(names)
}

fn lacks_schedule(definition: &Definition) -> Option<String> {
    let restored = definition.configured.schedule.as_ref().map(schedule::restore)?;
    restored.err().map(|name| format!("the schedule {name}"))
}
