//! What a typed line is: a message, or a command that begins with a slash.

use super::approval::Choice;

/// Asks again: the last turn if it failed or was stopped, else the last message.
pub(super) const RETRY: &str = "/retry";
/// Replaces the last message.
pub(super) const EDIT: &str = "/edit";

/// Allows the tool call that waits for an answer; with `always`, each call of that tool in the conversation.
const ALLOW: &str = "/allow";
const ALWAYS: &str = "always";
/// Denies it, perhaps with a reason.
const DENY: &str = "/deny";

/// What a line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Say(String),
    /// With this model or route, if one is named.
    Retry(Option<String>),
    Edit(String),
    /// A tool call that waits for an answer has it.
    Answer(Choice),
}

impl Order {
    pub(super) fn of(line: &str) -> Self {
        let after = |command: &str| {
            let rest = line.trim().strip_prefix(command)?;
            (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
        };
        match (after(ALLOW), after(DENY)) {
            (Some(""), _) => return Self::Answer(Choice::Once),
            (Some(ALWAYS), _) => return Self::Answer(Choice::Always),
            (_, Some(reason)) => {
                let reason = (!reason.is_empty()).then(|| reason.to_owned());
                return Self::Answer(Choice::Deny(reason));
            }
            _ => {}
        }
        match (after(RETRY), after(EDIT)) {
            (Some(""), _) => Self::Retry(None),
            // Several words are no model: then it is a message that begins so.
            (Some(model), _) if !model.contains(char::is_whitespace) => Self::Retry(Some(model.to_owned())),
            (_, Some(text)) if !text.is_empty() => Self::Edit(text.to_owned()),
            _ => Self::Say(line.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_only_where_it_can_be_one() {
        for (line, model) in [("/retry", None), (" /retry ", None), ("/retry a/m", Some("a/m"))] {
            assert_eq!(Order::of(line), Order::Retry(model.map(str::to_owned)), "{line:?}");
        }
        assert_eq!(Order::of("/edit two\nlines "), Order::Edit("two\nlines".to_owned()));
        for (line, choice) in [
            ("/allow", Choice::Once),
            ("/allow  always ", Choice::Always),
            ("/deny", Choice::Deny(None)),
            ("/deny not on a Sunday", Choice::Deny(Some("not on a Sunday".to_owned()))),
        ] {
            assert_eq!(Order::of(line), Order::Answer(choice), "{line:?}");
        }
        for line in [
            "/allow it",
            "/allowed",
            "/denying",
            "/retry a b",
            "/retrying",
            "/edit",
            "/editor x",
            "hi /retry",
            "/help",
        ] {
            assert_eq!(Order::of(line), Order::Say(line.to_owned()));
        }
    }
}
