//! The dice tool of the demo, optional for other models. Harmless, with a different result each time.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use everturn_kernel::{ToolAnswer, ToolSpec};
use everturn_orchestrator::{Invocation, Tool};
use everturn_wire::Value;
use serde_json::json;

const SIDES: u64 = 6;
const COUNT: u64 = 1;
const MOST_SIDES: u64 = 1000;
const MOST_DICE: u64 = 100;

/// Rolls dice.
pub(crate) struct Dice {
    /// Offered only while this holds; `None` = always.
    pub(crate) only: Option<Arc<AtomicBool>>,
}

#[async_trait]
impl Tool for Dice {
    fn is_offered(&self) -> bool {
        self.only.as_ref().is_none_or(|only| only.load(Ordering::Relaxed))
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "roll_dice".to_owned(),
            description: "Rolls dice and returns the number on each.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "sides": { "type": "integer", "minimum": 2, "maximum": MOST_SIDES, "default": SIDES },
                    "count": { "type": "integer", "minimum": 1, "maximum": MOST_DICE, "default": COUNT },
                },
                "additionalProperties": false,
            }),
        }
    }

    async fn run(&self, call: Invocation) -> ToolAnswer {
        answer(&call.input)
    }
}

fn answer(input: &Value) -> ToolAnswer {
    let number = |name: &str, usual, least, most| match input.get(name) {
        None => Ok(usual),
        Some(value) => value
            .as_u64()
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| format!("{name} must be a whole number from {least} to {most}")),
    };
    let numbers = number("sides", SIDES, 2, MOST_SIDES)
        .and_then(|sides| Ok((sides, number("count", COUNT, 1, MOST_DICE)?)));
    match numbers {
        Ok((sides, count)) => {
            let rolled: Vec<String> = (0..count).map(|_| fastrand::u64(1..=sides).to_string()).collect();
            ToolAnswer::ok(rolled.join(", "))
        }
        Err(problem) => ToolAnswer::error(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_die_is_rolled_within_its_sides() {
        let answer = answer(&json!({ "sides": 3, "count": 100 }));
        let shown: Vec<u64> = answer.content.split(", ").map(|die| die.parse().unwrap()).collect();
        assert_eq!(shown.len(), 100);
        assert!(shown.iter().all(|die| (1..=3).contains(die)) && !answer.is_error);
    }

    #[test]
    fn impossible_dice_are_refused() {
        for input in [json!({ "sides": 1 }), json!({ "count": 101 }), json!({ "sides": "six" })] {
            assert!(answer(&input).is_error, "{input}");
        }
    }
}
