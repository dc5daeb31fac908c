//! What a typed line is: a message, or a command that begins with a slash.

/// Asks again: the last turn if it failed or was stopped, else the last message.
pub(super) const RETRY: &str = "/retry";
/// Replaces the last message.
pub(super) const EDIT: &str = "/edit";

/// What a line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Say(String),
    /// With this model or route, if one is named.
    Retry(Option<String>),
    Edit(String),
}

impl Order {
    pub(super) fn of(line: &str) -> Self {
        let after = |command: &str| {
            let rest = line.trim().strip_prefix(command)?;
            (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
        };
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
        for line in ["/retry a b", "/retrying", "/edit", "/editor x", "hi /retry", "/help"] {
            assert_eq!(Order::of(line), Order::Say(line.to_owned()));
        }
    }
}
