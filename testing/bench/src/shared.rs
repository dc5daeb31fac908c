//! What callers, with limits of each kind, prices and usage that is saved, add to turns and to calls that pass through.

use anyhow::{Context, Result};

use crate::{PAIRS, child::Child, figures, median, relay, table::Table};

/// Prints the report.
pub(crate) fn report() -> Result<()> {
    let mut provider = Child::start(&["provider"])?;
    let base = provider.line().context("the provider did not say where it is")?;
    let mut table = Table::new();
    for (load, figure, what) in [
        ("burst", 0, "64 turns at once, 200 deltas each, an answer in one write, CPU per delta"),
        ("paced", 0, "512 turns at once, a delta every 20 ms, CPU per delta"),
        ("short", 1, "64 turns at once, 20 deltas each, CPU per turn"),
    ] {
        let cost = |client| Ok(figures(&Child::run(&["turns", client, load, &base])?)?[figure]);
        row(&mut table, what, || cost("engine"), || cost("callers"))?;
    }
    for (load, what) in [
        ("paced", "calls that pass through: 256 streams, an event every 20 ms, CPU"),
        ("short", "the same: 64 at once, of one event each, CPU"),
    ] {
        row(&mut table, what, || relay::cpu("everturn", load, &base), || relay::cpu("callers", load, &base))?;
    }
    println!("{table}");
    Ok(())
}

/// Adds the cost with callers as a multiple of that without: interleaved, so that both see the same conditions.
fn row(
    table: &mut Table,
    what: &str,
    without: impl Fn() -> Result<f64>,
    with: impl Fn() -> Result<f64>,
) -> Result<()> {
    let (mut plain, mut limited) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        plain.push(without()?);
        limited.push(with()?);
    }
    table.ratio(what, median(limited), median(plain), 1.05);
    Ok(())
}
