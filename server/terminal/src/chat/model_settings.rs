//! `/instructions` and `/set`: what this conversation sets for its model.

use std::{
    str::FromStr,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use everturn_wire::{ConversationId, ModelSettings};

use crate::{remote::Remote, visible::visible, wording};

const USAGE: &str = "/set shows what this conversation sets for its model, /set NAME VALUE ... changes it; the value default resets \
                     one. Names: temperature (0 to 2), maxOutputTokens, reasoningEffort (a word such as low or high). \
                     /instructions TEXT sets the system prompt.";

/// The names that `/set` takes.
pub(super) const NAMES: [&str; 3] = ["temperature", "maxOutputTokens", "reasoningEffort"];

/// Given in place of a value, or of a text, to reset it.
const DEFAULT: &str = "default";

/// Maximum length of displayed instructions, in characters.
const SHOWN: usize = 300;

/// A parsed line.
#[derive(Debug, PartialEq)]
pub(super) enum Asked {
    /// Show all settings.
    Show,
    /// Show the whole system prompt.
    ShowInstructions,
    /// Set or reset the system prompt.
    Instruct(Option<String>),
    Set(Vec<Change>),
}

/// A parameter to set, or to reset.
#[derive(Debug, PartialEq)]
pub(super) enum Change {
    Temperature(Option<f64>),
    MaxOutputTokens(Option<u32>),
    ReasoningEffort(Option<String>),
}

/// Parses the text after `/instructions`.
pub(super) fn instructions(text: &str) -> Asked {
    match text.trim() {
        "" => Asked::ShowInstructions,
        DEFAULT => Asked::Instruct(None),
        text => Asked::Instruct(Some(text.to_owned())),
    }
}

/// Parses the words after `/set`.
///
/// # Errors
/// Returns what is wrong with them, for people.
pub(super) fn set(words: &str) -> Result<Asked, String> {
    let words: Vec<&str> = words.split_whitespace().collect();
    if words.is_empty() {
        return Ok(Asked::Show);
    }
    let change = |pair: &[&str]| match pair {
        [name, value] => Change::of(name, value),
        _ => Err(format!("{} has no value. {USAGE}", pair.join(" "))),
    };
    words.chunks(2).map(change).collect::<Result<_, _>>().map(Asked::Set)
}

impl Change {
    fn of(name: &str, value: &str) -> Result<Self, String> {
        let value = (value != DEFAULT).then_some(value);
        match NAMES.iter().position(|known| known.eq_ignore_ascii_case(name)) {
            Some(0) => number(name, "a number", value).map(Self::Temperature),
            Some(1) => number(name, "a whole number", value).map(Self::MaxOutputTokens),
            Some(_) => Ok(Self::ReasoningEffort(value.map(str::to_owned))),
            None => Err(format!("there is no parameter {name}. {USAGE}")),
        }
    }

    fn apply(self, settings: &mut ModelSettings) {
        match self {
            Self::Temperature(value) => settings.temperature = value,
            Self::MaxOutputTokens(value) => settings.max_output_tokens = value,
            Self::ReasoningEffort(value) => settings.reasoning_effort = value,
        }
    }
}

fn number<T: FromStr>(name: &str, kind: &str, value: Option<&str>) -> Result<Option<T>, String> {
    let read = value.map(str::parse).transpose();
    read.map_err(|_| format!("{name} must be {kind}, or {DEFAULT}. {USAGE}"))
}

/// What is set for a conversation that begins with its first message, which takes it along.
#[derive(Default)]
pub(super) struct First(Mutex<Option<(ConversationId, ModelSettings)>>);

impl First {
    /// What the first message of this conversation sets.
    pub(super) fn of(&self, id: &ConversationId) -> Option<ModelSettings> {
        let first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first
            .as_ref()
            .filter(|(of, settings)| of == id && !settings.is_empty())
            .map(|(_, settings)| settings.clone())
    }

    fn put(&self, id: &ConversationId, settings: ModelSettings) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((id.clone(), settings));
    }

    /// The conversation has begun: the server has its settings.
    pub(super) fn taken(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Applies the change, and describes the resulting settings.
///
/// # Errors
/// When the server cannot be asked, or refuses the change.
pub(super) async fn answer(
    asked: Asked,
    id: &ConversationId,
    remote: &Remote<'_>,
    first: &First,
) -> Result<String> {
    let path = format!("/conversations/{id}/model-settings");
    let kept = remote.get(&path).await?.map(|answer| answer.read()).transpose()?;
    // There is no conversation before the first message.
    let exists = kept.is_some();
    let mut settings: ModelSettings = kept.or_else(|| first.of(id)).unwrap_or_default();
    match asked {
        Asked::Show => return Ok(told(&settings)),
        Asked::ShowInstructions => return Ok(told_instructions(&settings)),
        Asked::Instruct(text) => settings.system_prompt = text,
        Asked::Set(changes) => changes.into_iter().for_each(|change| change.apply(&mut settings)),
    }
    let settings = settings.trimmed();
    if exists {
        let answer =
            remote.post_with(&path, &settings).await?.context("the conversation was deleted meanwhile")?;
        return Ok(told(&answer.read()?));
    }
    settings.check().map_err(anyhow::Error::msg)?;
    first.put(id, settings.clone());
    Ok(told(&settings))
}

fn told_instructions(settings: &ModelSettings) -> String {
    match &settings.system_prompt {
        Some(text) => format!("Instructions of this conversation:\n{}", visible(text)),
        None => "This conversation has no instructions of its own: /instructions TEXT sets them.".to_owned(),
    }
}

fn told(settings: &ModelSettings) -> String {
    let own = |value: Option<String>| value.unwrap_or_else(|| "as configured".to_owned());
    let ModelSettings { system_prompt, temperature, max_output_tokens, reasoning_effort } = settings;
    let rows = [
        ("instructions", system_prompt.as_ref().map(|text| wording::one_line(text, SHOWN))),
        (NAMES[0], temperature.map(|value| value.to_string())),
        (NAMES[1], max_output_tokens.map(|value| value.to_string())),
        (NAMES[2], reasoning_effort.as_ref().map(|word| wording::one_line(word, SHOWN))),
    ];
    let rows = rows.map(|(name, value)| format!("  {name:<15} {}", own(value)));
    format!("What this conversation sets for its model, from the next turn on:\n{}", rows.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_sets_and_resets() {
        assert_eq!(set(""), Ok(Asked::Show));
        assert_eq!(
            set("temperature 0.2 maxoutputtokens default reasoningEffort low"),
            Ok(Asked::Set(vec![
                Change::Temperature(Some(0.2)),
                Change::MaxOutputTokens(None),
                Change::ReasoningEffort(Some("low".to_owned())),
            ]))
        );
        assert_eq!(instructions(" "), Asked::ShowInstructions);
        assert_eq!(
            instructions(" Be brief.\nAlways. "),
            Asked::Instruct(Some("Be brief.\nAlways.".to_owned()))
        );
        assert_eq!(instructions("default"), Asked::Instruct(None));
    }

    #[test]
    fn what_cannot_be_set_is_told_with_what_can() {
        for (line, why) in [
            ("temperature", "temperature has no value. /set shows"),
            ("temperature warm", "temperature must be a number, or default. /set shows"),
            ("maxOutputTokens 1.5", "maxOutputTokens must be a whole number, or default. /set shows"),
            ("top_p 1", "there is no parameter top_p. /set shows"),
        ] {
            let error = set(line).unwrap_err();
            assert!(error.starts_with(why), "{line}: {error}");
        }
    }

    #[test]
    fn what_is_set_first_belongs_to_one_conversation() {
        let (first, settings) =
            (First::default(), ModelSettings { temperature: Some(0.2), ..ModelSettings::default() });
        first.put(&"a".into(), settings.clone());
        assert_eq!((first.of(&"a".into()), first.of(&"b".into())), (Some(settings), None));
        first.taken();
        assert_eq!(first.of(&"a".into()), None);
    }
}
