//! What holds whatever happens.
//!
//! The seed is fixed, so that a run can be repeated; `PROPTEST_RNG_SEED=7 PROPTEST_CASES=100000` looks elsewhere and
//! further. A failing case is printed in its smallest form.

mod hostile;
mod moves;
mod script;

pub(crate) use script::any_script;

use proptest::test_runner::{Config, RngSeed};

pub(crate) fn config(cases: u32) -> Config {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let cases = number("PROPTEST_CASES").and_then(|cases| u32::try_from(cases).ok()).unwrap_or(cases);
    let seed = number("PROPTEST_RNG_SEED").unwrap_or(0x0EEE_7081);
    Config { cases, rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() }
}
