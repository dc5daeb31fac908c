//! Prices of models.

use everturn_orchestrator::Price;

use super::*;

#[test]
fn a_price_is_for_a_pattern_of_models() {
    let config = Case::new(
        "[[price]]\nmodel = \"openai/gpt-*\"\ninput = 1.25\noutput = 10\ncached = 0.125\n\
         [[price]]\nmodel = \"*\"\ninput = 0\noutput = 0\ncache_write = 2\n",
    )
    .config();
    let gpt = Price { input: 1.25, output: 10.0, cached: Some(0.125), cache_write: None };
    let free = Price { cache_write: Some(2.0), ..Price::default() };
    assert_eq!(config.prices, [("openai/gpt-*".to_owned(), gpt), ("*".to_owned(), free)]);
}

#[test]
fn what_is_no_price_is_named_with_its_line() {
    let with = |text: &str| Case::new(&format!("[[price]]\nmodel = {text}\noutput = 1\n")).problem();
    for (text, expected) in [
        ("\"gpt\"\ninput = 1", ":2: the model of a price is NAME/MODEL"),
        ("\"a/b\"\ninput = -1", ":2: input of the price for \"a/b\" must be a number from 0 up"),
        ("\"a/b\"\ninput = nan", ":2: input of the price"),
        ("\"a/b\"\ninput = \"1\"", "`input` must be a number"),
        ("\"a/b\"", "missing field `input`"),
        ("\"a/b\"\ninput = 1\ncash = 2", "unknown field `cash`"),
        (
            "\"a/b\"\ninput = 1\noutput = 1\n[[price]]\nmodel = \"a/b\"\ninput = 1",
            ":6: there are two prices for \"a/b\"",
        ),
    ] {
        let problem = with(text);
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn a_limit_in_money_is_a_number_above_0() {
    let with = |money: &str| {
        format!("[[caller]]\nname = \"ann\"\ntoken_hash = \"{}\"\nmoney_per_day = {money}\n", "ab".repeat(32))
    };
    for (text, millionths) in [("2.5", 2_500_000), ("3", 3_000_000), ("0.000001", 1)] {
        let config = Case::new(&with(text)).config();
        assert_eq!(config.callers[0].terms.money_per_day, Some(millionths));
    }
    for (text, expected) in [
        ("0", "money_per_day of ann must be more than 0"),
        ("-1", "an amount of money is a number"),
        ("nan", "an amount of money is a number"),
        ("\"a lot\"", "money_per_day"),
        ("1\nparalel = 2", "unknown field `paralel`"),
    ] {
        let problem = Case::new(&with(text)).problem();
        assert!(problem.contains(expected), "{problem}");
    }
}
