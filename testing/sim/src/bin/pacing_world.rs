//! Prints, as a table, how well policies use what simulated providers allow: the mean of several seeds, and the worst. Arguments
//! select the rows that contain all of them; names of policies select columns.

#![expect(clippy::print_stdout, reason = "the table is its output")]

use everturn_sim::pacing::{Figures, PolicyKind, run, scenarios};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=6;

/// Returns the mean and the worst value.
fn summary(values: &[f64], is_more_better: bool) -> String {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let worst = values.iter().copied().reduce(if is_more_better { f64::min } else { f64::max });
    match format!("{:.1}", worst.unwrap_or(mean)) {
        worst if worst == format!("{mean:.1}") => worst,
        worst => format!("{mean:.1} ({worst})"),
    }
}

fn cell(runs: &[Figures], best: &[Figures]) -> String {
    let of = |value: fn(&Figures, &Figures) -> f64| -> Vec<f64> {
        runs.iter().zip(best).map(|(run, best)| value(run, best)).collect()
    };
    [
        summary(&of(|run, best| run.used(best) * 100.0), true),
        summary(&of(|run, _| run.refused_share() * 100.0), false),
        summary(&of(|run, _| run.wait_ms(0.99) as f64 / 1e3), false),
    ]
    .join(" / ")
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_named = |kind: &PolicyKind| wanted.iter().any(|word| word == kind.name());
    let mut kinds: Vec<PolicyKind> = PolicyKind::ALL.into_iter().filter(is_named).collect();
    if kinds.is_empty() {
        kinds = PolicyKind::ALL.to_vec();
    }
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    println!("| provider | reports | load | {} |", names.join(" | "));
    println!("|---|---|---|{}", "---|".repeat(names.len()));
    for scenario in scenarios() {
        let row = format!("| {} | {} | {} |", scenario.name, scenario.tells, scenario.load.name);
        if !wanted.iter().all(|word| names.contains(&word.as_str()) || row.contains(word.as_str())) {
            continue;
        }
        let play = |kind| -> Vec<Figures> { SEEDS.map(|seed| run(&scenario, kind, seed)).collect() };
        let best = play(PolicyKind::Oracle);
        let cells: Vec<String> = kinds.iter().map(|kind| cell(&play(*kind), &best)).collect();
        println!("{row} {} |", cells.join(" | "));
    }
}
