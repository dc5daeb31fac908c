//! What tokens cost, by model.

use anyhow::{Result, bail};
use everturn_orchestrator::Price;

use super::{file::Source, table::PriceTable};

/// Returns the prices, each with its pattern.
///
/// # Errors
/// When a price is no amount of money, or a pattern is there twice.
pub(super) fn resolve(tables: &[PriceTable], source: &Source) -> Result<Vec<(String, Price)>> {
    let mut prices: Vec<(String, Price)> = Vec::new();
    for PriceTable { model, input, output, cached, cache_write } in tables {
        let (place, pattern) = (source.place(model), model.get_ref());
        if !pattern.contains(['/', '*']) {
            bail!(
                "{place}: the model of a price is NAME/MODEL, in which * stands for any characters, not {pattern:?}"
            );
        }
        if prices.iter().any(|(known, _)| known == pattern) {
            bail!("{place}: there are two prices for {pattern:?}");
        }
        let all = [
            ("input", Some(*input)),
            ("output", Some(*output)),
            ("cached", *cached),
            ("cache_write", *cache_write),
        ];
        for (name, price) in all {
            if price.is_some_and(|price| !price.is_finite() || price < 0.0) {
                bail!(
                    "{place}: {name} of the price for {pattern:?} must be a number from 0 up, for a million tokens"
                );
            }
        }
        let price = Price { input: *input, output: *output, cached: *cached, cache_write: *cache_write };
        prices.push((pattern.clone(), price));
    }
    Ok(prices)
}
