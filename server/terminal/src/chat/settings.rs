//! `/settings`: shows and changes the retry settings.

use anyhow::{Result, bail};
use everturn_wire::{ConversationId, RetryPatch, RetrySettings, RetrySettingsState, Value};
use serde_json::Map;

use super::fallback::{self, Chain, FALLBACK};
use crate::remote::Remote;

const USAGE: &str = "/settings shows the retry settings, /settings NAME VALUE ... changes them for this conversation, \
                     /settings all NAME VALUE ... for all; the value default resets one. Names: enabled (on, off), preset, \
                     maxRetries, baseDelayMs, maxDelayMs (0 = no limit), jitter, revert (cooldown-expiry, never), afterContent, \
                     quota. /settings fallback MODEL OTHER ... names what is asked when MODEL fails, in that order; none \
                     in place of OTHER clears it.";

/// A parsed line.
#[derive(Debug, PartialEq)]
pub(super) struct Asked {
    /// Whether it is about all conversations, not only this one.
    all: bool,
    /// `None`: only show the settings.
    change: Option<Asking>,
}

/// A requested change.
#[derive(Debug, PartialEq)]
enum Asking {
    Settings(Box<RetryPatch>),
    Chain(Chain),
}

/// Parses the words after the command.
///
/// # Errors
/// When they are not valid settings.
pub(super) fn asked(words: &str) -> Result<Asked> {
    let mut words: Vec<&str> = words.split_whitespace().collect();
    let all = words.first() == Some(&"all");
    if all {
        words.remove(0);
    }
    if words.is_empty() {
        return Ok(Asked { all, change: None });
    }
    if let Some((_, chain)) = words.split_first().filter(|(word, _)| **word == FALLBACK) {
        let Some(chain) = Chain::of_words(chain) else {
            bail!("{FALLBACK} needs a model, and the models to ask when it fails. {USAGE}")
        };
        return Ok(Asked { all, change: Some(Asking::Chain(chain)) });
    }
    let mut settings = Map::new();
    for pair in words.chunks(2) {
        let [name, value] = pair else { bail!("{} has no value. {USAGE}", pair.join(" ")) };
        settings.insert((*name).to_owned(), of_word(value));
    }
    let is_known = |name: &String| RetrySettings::NAMES.contains(&name.as_str());
    if let Some(unknown) = settings.keys().find(|name| !is_known(name)) {
        bail!("there is no setting {unknown}. {USAGE}");
    }
    match serde_json::from_value(Value::Object(settings)) {
        Ok(change) => Ok(Asked { all, change: Some(Asking::Settings(change)) }),
        Err(error) => bail!("{error}"),
    }
}

fn of_word(word: &str) -> Value {
    match word {
        "default" => Value::Null,
        "on" => Value::Bool(true),
        "off" => Value::Bool(false),
        // A number, a boolean, or else a word.
        _ => match serde_json::from_str(word) {
            Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
            _ => Value::String(word.to_owned()),
        },
    }
}

/// Applies the change and describes the resulting settings.
///
/// # Errors
/// When the server refuses the change, or the conversation does not exist yet.
pub(super) async fn answer(asked: Asked, id: &ConversationId, remote: &Remote<'_>) -> Result<String> {
    let path = if asked.all { "/retry".to_owned() } else { format!("/conversations/{id}/retry") };
    let answer = match &asked.change {
        Some(Asking::Settings(change)) => remote.patch(&path, &**change).await?,
        Some(Asking::Chain(chain)) => match remote.get(&path).await? {
            Some(state) => remote.patch(&path, &chain.change(&state.read()?)).await?,
            None => None,
        },
        None => remote.get(&path).await?,
    };
    match answer {
        Some(answer) => Ok(told(&answer.read()?)),
        // There is no conversation before the first message.
        None if asked.change.is_none() => match remote.get("/retry").await? {
            Some(answer) => Ok(told(&answer.read()?)),
            None => bail!("the server does not support retry settings: upgrade it"),
        },
        None => {
            bail!("this conversation has not begun: say something first, or write /settings all NAME VALUE")
        }
    }
}

/// Describes the settings in effect, and which of them are set in this scope.
fn told(state: &RetrySettingsState) -> String {
    let whose = if state.conversation_id.is_some() { "this conversation" } else { "all conversations" };
    let value = |settings: &RetrySettings| serde_json::to_value(settings).unwrap_or_default();
    let (set, effective) = (value(&state.set), value(&state.effective));
    let mut lines = vec![format!("Retry settings of {whose}, from the next turn on:")];
    for name in RetrySettings::NAMES {
        let here = if set[name].is_null() { "" } else { "  (set here)" };
        if name == "fallbackChains" {
            let chains = state.effective.fallback_chains.iter().flat_map(fallback::told);
            lines.extend(chains.map(|chain| format!("  {FALLBACK:<12} {chain}{here}")));
            continue;
        }
        let shown = match &effective[name] {
            Value::Null => continue,
            Value::Bool(true) => "on".to_owned(),
            Value::Bool(false) => "off".to_owned(),
            Value::String(word) => word.clone(),
            number => number.to_string(),
        };
        // What can be withdrawn here is not kept.
        let other = if name == "afterContent" { "  (of other clients; rewind here)" } else { "" };
        lines.push(format!("  {name:<12} {shown}{here}{other}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(line: &str) -> Result<Asked, String> {
        asked(line).map_err(|error| error.to_string())
    }

    #[test]
    fn a_line_shows_or_changes_settings() {
        assert_eq!(change(""), Ok(Asked { all: false, change: None }));
        assert_eq!(change("all"), Ok(Asked { all: true, change: None }));
        let expected =
            json!({ "enabled": false, "preset": "interactive", "jitter": 0.5, "maxRetries": null });
        let changed = change("all enabled off preset interactive jitter 0.5 maxRetries default");
        let Some(Asking::Settings(patch)) = changed.unwrap().change else { panic!("it changes settings") };
        assert_eq!(serde_json::to_value(patch).unwrap(), expected);
    }

    #[test]
    fn what_is_no_setting_is_told_with_what_is_one() {
        for (line, why) in [
            ("preset", "preset has no value. /settings shows"),
            ("retries 3", "there is no setting retries. /settings shows"),
            ("maxRetries many", "maxRetries must be a whole number"),
            ("fallback", "fallback needs a model, and the models to ask when it fails. /settings shows"),
            ("enabled 3", "enabled must be true or false"),
        ] {
            let error = change(line).unwrap_err();
            assert!(error.starts_with(why), "{line}: {error}");
        }
    }

    #[test]
    fn what_is_set_here_is_marked() {
        let settings = |value| Box::new(serde_json::from_value(value).unwrap());
        let state = RetrySettingsState {
            conversation_id: Some("c".into()),
            set: settings(json!({ "baseDelayMs": 70 })),
            effective: settings(
                json!({ "preset": "interactive", "enabled": true, "baseDelayMs": 70, "afterContent": "keep" }),
            ),
        };
        let expected = [
            "Retry settings of this conversation, from the next turn on:",
            "  preset       interactive",
            "  enabled      on",
            "  baseDelayMs  70  (set here)",
            "  afterContent keep  (of other clients; rewind here)",
        ];
        assert_eq!(told(&state).lines().collect::<Vec<_>>(), expected);
    }
}
