//! The providers and loads that policies are compared on.

use everturn_wire::Category;

use super::{Load, Rule, Scenario, Tells};

const MINUTE: u64 = 60_000;

const FIXED: Rule = Rule::FixedWindow { requests: 60, per_ms: MINUTE };
const SLIDING: Rule = Rule::SlidingWindow { requests: 60, per_ms: MINUTE };
const BUCKET: Rule = Rule::TokenBucket { burst: 60, per_minute: 60 };
const SMALL_BUCKET: Rule = Rule::TokenBucket { burst: 5, per_minute: 120 };
const AT_ONCE: Rule = Rule::Concurrency { calls: 8 };
const OVERLOAD: Rule = Rule::Overload { calls: 20 };
const RANDOM: Rule = Rule::Random { percent: 10, category: Category::RateLimited };
const BUSY: Rule = Rule::Random { percent: 10, category: Category::Overloaded };
const TOKENS: Rule = Rule::FixedTokens { tokens: 60_000, per_ms: MINUTE };
const SLOW: Rule = Rule::FixedWindow { requests: 10, per_ms: MINUTE };
const FAST: Rule = Rule::FixedWindow { requests: 600, per_ms: MINUTE };

/// Returns all scenarios, those of one provider together.
pub fn scenarios() -> Vec<Scenario> {
    let mut all = Vec::new();
    for (name, rule) in [
        ("60 a minute, fixed windows", FIXED),
        ("60 a minute, sliding window", SLIDING),
        ("bucket of 60, 60 a minute", BUCKET),
        ("bucket of 5, 120 a minute", SMALL_BUCKET),
        ("8 at once", AT_ONCE),
        ("overload above 20 at once", OVERLOAD),
    ] {
        let reports_nothing = matches!(rule, Rule::Concurrency { .. } | Rule::Overload { .. });
        let told = [Tells::All, Tells::Hint, Tells::Nothing, Tells::WrongHint];
        for tells in if reports_nothing { &told[2..3] } else { &told[..] } {
            let mut add = |load| all.push(Scenario { name, rule, tells: *tells, load });
            add(Load::at_once(500));
            add(Load::at_once(500).on_nodes(3));
            if matches!(rule, FIXED | BUCKET) {
                add(Load::callers(20));
                add(Load::callers(20).beside_greedy(1_000, 0));
                add(Load::steady(57.0, 20, 7));
                add(Load::bursts(45, MINUTE, 10));
                add(Load::interactive(20_000, 20));
                add(Load::interactive(20_000, 20).beside_background(400));
            }
        }
    }
    for tells in [Tells::All, Tells::Hint, Tells::Nothing] {
        let name = "10 a minute, fixed windows";
        all.push(Scenario { name, rule: SLOW, tells, load: Load::one_turn(100) });
        let name = "600 a minute, fixed windows";
        all.push(Scenario { name, rule: FAST, tells, load: Load::at_once(500) });
    }
    for tells in [Tells::Nothing, Tells::WrongHint] {
        for (name, rule) in [("a tenth refused at random", RANDOM), ("a tenth overloaded at random", BUSY)] {
            let mut add = |load| all.push(Scenario { name, rule, tells, load });
            add(Load::steady(120.0, 10, 7));
            add(Load::steady(600.0, 10, 7));
        }
    }
    for tells in [Tells::All, Tells::Nothing] {
        let name = "60,000 tokens a minute";
        all.push(Scenario { name, rule: TOKENS, tells, load: Load::with_huge(400, 45_000) });
    }
    all
}
