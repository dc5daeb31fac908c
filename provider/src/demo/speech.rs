//! The texts of the demo.

/// Maximum length of a quoted user message, in characters.
const LONGEST_QUOTE: usize = 60;

pub(super) const BEFORE_ANSWERING: &str =
    "The failures are over and the message is still here. Time to answer it.";

pub(super) const BEFORE_ROLLING: &str = "This is about dice, and there is a tool for that.";

/// Returns the answer after this many failures.
pub(super) fn on_survival(said: &str, failures: usize) -> String {
    let how = match failures {
        0 => "Nothing went wrong this time.",
        1 => "You just watched a turn survive a failure: HTTP 529, as an overloaded model sends it.",
        _ => {
            "You just watched a turn survive two failures: first HTTP 529, as an overloaded model sends it, then the \
             HTML page of a broken proxy."
        }
    };
    format!(
        "Your message {} was received. {how} I am a built-in demo that fails on purpose: each time the turn told you \
         why, showed how long it would wait, and asked again by itself. Nothing was lost and nothing was said twice, \
         and the failures stay out of the history that a model sees. Stop me while I wait, skip the wait, or restart \
         the server in the middle of it: the turn goes on.",
        quoted(said)
    )
}

/// Returns the answer after this many failures and a roll of the dice.
pub(super) fn on_dice(result: &str, failures: usize) -> String {
    let failures = if failures == 1 { "one failure".to_owned() } else { format!("{failures} failures") };
    format!(
        "The dice were rolled, and the answer is {}. Note what happened on the way: this turn survived {failures} \
         before the tool ran, and the tool ran exactly once. Had the connection broken after the roll, its result \
         would have been kept and used again, because rolling twice would change what happened. That is harmless \
         with dice; with a payment or an e-mail it is the whole point of the exercise.",
        quoted(result)
    )
}

/// Returns what is added to the answer if a message joined the turn.
pub(super) fn on_joined(said: &str) -> String {
    format!(
        "Your message {} joined this turn while the tool ran, so I read both at once. Ask me again if it needs an answer \
         of its own.",
        quoted(said)
    )
}

fn quoted(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = text.chars().take(LONGEST_QUOTE).collect();
    let more = if short.len() < text.len() { "..." } else { "" };
    format!("\"{short}{more}\"")
}
