//! How many cases a property is tried with, and which.

use proptest::test_runner::{Config, RngSeed};

/// Returns a configuration with `cases` cases of a fixed seed, so that a run can be repeated. `PROPTEST_RNG_SEED=7 EFFORT=500`
/// in the environment uses another seed and five times as many cases. A failing case is printed, not saved.
pub fn config(cases: u32) -> Config {
    let percent = std::env::var("EFFORT").ok().and_then(|percent| percent.parse().ok()).unwrap_or(100);
    let cases = (cases.saturating_mul(percent) / 100).max(1);
    // `PROPTEST_RNG_SEED` overrides this seed.
    Config { cases, rng_seed: RngSeed::Fixed(0x0EEE_7081), failure_persistence: None, ..Config::default() }
}
