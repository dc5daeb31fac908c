//! The protocol as it is holds in every setting, and whichever of its rules is broken, the checker notices.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use everturn_model::{Model, Rule, Setting, explore};

/// The most states of a setting.
const MOST: usize = 1_500_000;

#[test]
fn nothing_goes_wrong_in_any_state() {
    for (name, setting) in Setting::all(false).into_iter().filter(|(name, _)| *name != Setting::LONG) {
        let explored = explore(&Model::new(setting), MOST);
        assert!(explored.violation.is_none(), "{name}: {:#?}", explored.violation);
        assert!(explored.ends > 0, "{name} never ends");
    }
}

#[test]
fn every_broken_rule_is_found() {
    let is_found = |rule: &Rule| {
        let (_, setting) =
            Setting::all(false).into_iter().find(|(name, _)| *name == rule.shows_in()).unwrap();
        let explored = explore(&Model::new(setting).without(*rule), MOST);
        explored.violation.is_some_and(|(_, way)| !way.is_empty())
    };
    let unnoticed: Vec<_> = Rule::ALL.into_iter().filter(|rule| !is_found(rule)).collect();
    assert!(unnoticed.is_empty(), "these may be broken unnoticed: {unnoticed:?}");
}
