//! Prints, as a table, how well policies use what simulated providers allow. Arguments select the rows that contain all of
//! them.

#![expect(clippy::print_stdout, reason = "the table is its output")]

use everturn_sim::pacing::{Figures, PolicyKind, run, scenarios};

fn cell(figures: &Figures, best: &Figures) -> String {
    let [used, refused] = [figures.used(best), figures.refused_share()].map(|part| part * 100.0);
    format!("{used:.1} % / {refused:.1} % / {:.1} s", figures.wait_ms(0.99) as f64 / 1e3)
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&str> = PolicyKind::ALL.into_iter().map(PolicyKind::name).collect();
    println!("| provider | reports | load | {} |", names.join(" | "));
    println!("|---|---|---|{}", "---|".repeat(names.len()));
    for scenario in scenarios() {
        let row = format!("| {} | {} | {} |", scenario.name, scenario.tells, scenario.load.name);
        if !wanted.iter().all(|word| row.contains(word.as_str())) {
            continue;
        }
        let best = run(&scenario, PolicyKind::Oracle, 1);
        let cells: Vec<String> =
            PolicyKind::ALL.into_iter().map(|kind| cell(&run(&scenario, kind, 1), &best)).collect();
        println!("{row} {} |", cells.join(" | "));
    }
}
