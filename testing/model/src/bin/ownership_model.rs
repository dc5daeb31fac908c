//! Explores the model, and prints what was visited and which broken rules were found.
#![allow(clippy::print_stdout, reason = "a command")]

use everturn_model::{Explored, Model, Rule, Setting, Step, explore};

/// The most states of a setting.
const MOST: usize = 20_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if has("--rules") {
        return rules(has("--ways"));
    }
    println!("| setting | states | steps | ends | depth | time |");
    println!("|---|---|---|---|---|---|");
    for (name, setting) in Setting::all(has("--more")) {
        let explored = explore(&Model::new(setting), MOST);
        let Explored { states, steps, ends, depth, took, ref violation } = explored;
        println!("| {name} | {states} | {steps} | {ends} | {depth} | {:.1} s |", took.as_secs_f64());
        if let Some((what, way)) = violation {
            show(what, way);
        }
    }
}

/// Breaks each rule, and shows what is found.
fn rules(ways: bool) {
    println!("| rule | found in | what | after |");
    println!("|---|---|---|---|");
    for rule in Rule::ALL {
        let shows = |(name, _): &(&str, Setting)| *name == rule.shows_in();
        let found = Setting::all(false).into_iter().filter(shows).find_map(|(name, setting)| {
            let violation = explore(&Model::new(setting).without(rule), MOST).violation?;
            Some((name, violation))
        });
        match found {
            Some((name, (what, way))) => {
                println!("| {rule:?} | {name} | {what} | {} steps |", way.len());
                if ways {
                    show(what, &way);
                }
            }
            None => println!("| {rule:?} | **not found** | | |"),
        }
    }
}

fn show(what: &str, way: &[Step]) {
    println!("{what}:");
    for step in way {
        println!("  {step:?}");
    }
}
