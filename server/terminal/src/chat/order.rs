//! Parses a typed line: a message, or a command, which begins with a slash.

mod command;

use super::{
    allowed::{self, Asked as Allowed},
    approval::Choice,
    attachment,
    model_settings::{self, Asked as ModelSettings},
    settings::{self, Asked as Settings},
};
pub(super) use command::{completed, completions, help};

/// Approves all calls of the tool in the conversation.
const ALWAYS: &str = "always";

/// A parsed line.
#[derive(Debug, PartialEq)]
pub(super) enum Order {
    Say(String),
    /// Retry, with this model or route if one is given.
    Retry(Option<String>),
    Edit(String),
    /// Send the file at this path, with this text.
    File(String, String),
    /// Answer the call that waits for approval.
    Answer(Choice),
    /// Take what is filled in for a field of a question, or leave it out.
    Skip,
    /// Decline the question of a tool.
    Decline,
    /// Choose this model or route, or list them.
    Model(Option<String>),
    /// Begin a new conversation.
    New,
    /// Summarize the older part of the conversation.
    Compact,
    /// Go on with the conversation that this names, or list them.
    Conversations(Option<String>),
    /// Withdraw the newest queued message.
    Cancel,
    /// End the running turn.
    Stop,
    /// Leave, even while a turn runs.
    Exit,
    Help,
    Ask(Question),
    /// An invalid command, and why.
    Wrong(String),
}

/// A request to the server over HTTP; possible at any time.
#[derive(Debug, PartialEq)]
pub(super) enum Question {
    Settings(Settings),
    ModelSettings(ModelSettings),
    Allowed(Allowed),
    Tools,
}

impl Order {
    /// Parses a line. One that begins with white space is a message.
    pub(super) fn of(line: &str) -> Self {
        let Some((name, rest)) = command::split(line) else { return Self::Say(line.trim().to_owned()) };
        let rest = rest.trim();
        let one = || (!rest.is_empty()).then(|| rest.to_owned());
        let is_bare = rest.is_empty();
        match name {
            "/retry" if !rest.contains(char::is_whitespace) => Self::Retry(one()),
            "/model" if !rest.contains(char::is_whitespace) => Self::Model(one()),
            "/edit" if !is_bare => Self::Edit(rest.to_owned()),
            "/file" if let Some((path, text)) = attachment::split(rest) => Self::File(path, text),
            "/allow" if is_bare => Self::Answer(Choice::Once),
            "/allow" if rest == ALWAYS => Self::Answer(Choice::Always),
            "/deny" => Self::Answer(Choice::Deny(one())),
            "/skip" if is_bare => Self::Skip,
            "/decline" if is_bare => Self::Decline,
            "/new" if is_bare => Self::New,
            "/compact" if is_bare => Self::Compact,
            "/conversations" => Self::Conversations(one()),
            "/cancel" if is_bare => Self::Cancel,
            "/stop" if is_bare => Self::Stop,
            "/exit" | "/quit" if is_bare => Self::Exit,
            "/help" => Self::Help,
            "/tools" if is_bare => Self::Ask(Question::Tools),
            "/settings" => match settings::asked(rest) {
                Ok(asked) => Self::Ask(Question::Settings(asked)),
                Err(error) => Self::Wrong(error.to_string()),
            },
            "/instructions" => Self::Ask(Question::ModelSettings(model_settings::instructions(rest))),
            "/set" => match model_settings::set(rest) {
                Ok(asked) => Self::Ask(Question::ModelSettings(asked)),
                Err(why) => Self::Wrong(why),
            },
            "/allowed" | "/revoke" => match allowed::asked(line) {
                Some(asked) => Self::Ask(Question::Allowed(asked)),
                None => Self::Wrong(command::usage(name)),
            },
            // It may well be the beginning of a text.
            _ if line.trim().contains('\n') && !command::is_known(name) => Self::Say(line.trim().to_owned()),
            _ => Self::Wrong(command::usage(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_only_where_it_can_be_one() {
        for (line, model) in [("/retry", None), ("/retry ", None), ("/retry a/m", Some("a/m"))] {
            assert_eq!(Order::of(line), Order::Retry(model.map(str::to_owned)), "{line:?}");
        }
        assert_eq!(Order::of("/edit two\nlines "), Order::Edit("two\nlines".to_owned()));
        assert_eq!(Order::of("/file a.pdf why?"), Order::File("a.pdf".to_owned(), "why?".to_owned()));
        assert!(matches!(Order::of("/file"), Order::Wrong(_)));
        for (line, choice) in [
            ("/allow", Choice::Once),
            ("/allow  always ", Choice::Always),
            ("/deny", Choice::Deny(None)),
            ("/deny not on a Sunday", Choice::Deny(Some("not on a Sunday".to_owned()))),
        ] {
            assert_eq!(Order::of(line), Order::Answer(choice), "{line:?}");
        }
        for (line, order) in [
            ("/model", Order::Model(None)),
            ("/model a/m", Order::Model(Some("a/m".to_owned()))),
            ("/stop", Order::Stop),
            ("/exit", Order::Exit),
            ("/quit", Order::Exit),
            ("/cancel", Order::Cancel),
            ("/help me", Order::Help),
            ("/tools", Order::Ask(Question::Tools)),
            ("/new", Order::New),
            ("/compact", Order::Compact),
            ("/conversations", Order::Conversations(None)),
            ("/conversations my week", Order::Conversations(Some("my week".to_owned()))),
        ] {
            assert_eq!(Order::of(line), order, "{line:?}");
        }
    }

    #[test]
    fn paths_comments_and_what_begins_with_a_space_are_messages() {
        for line in [
            "hi /retry",
            " /retry",
            "/etc/hosts is broken",
            "// a comment",
            "/* another */",
            "/",
            "/ 2",
            "/24 or /16?",
            "/nothing that\nis known",
        ] {
            assert_eq!(Order::of(line), Order::Say(line.trim().to_owned()));
        }
    }

    #[test]
    fn a_command_that_cannot_be_followed_says_what_to_write() {
        for (line, expected) in [
            ("/retyr", "Unknown command /retyr: did you mean /retry? /help lists all commands."),
            ("/mod", "Unknown command /mod: did you mean /model?"),
            ("/HELP", "Unknown command /HELP: did you mean /help?"),
            (
                "/zebra",
                "Unknown command /zebra. /help lists all commands. To send it as a message, begin with",
            ),
            ("/retry a b", "/retry [MODEL]: "),
            ("/edit", "/edit TEXT: "),
            ("/allow it", "/allow [always]: "),
            ("/stop it", "/stop: "),
            ("/settings jitter", "jitter has no value. /settings shows"),
            ("/revoke a b", "/revoke TOOL: "),
        ] {
            let Order::Wrong(why) = Order::of(line) else { panic!("{line}: {:?}", Order::of(line)) };
            assert!(why.starts_with(expected), "{line}: {why}");
        }
    }
}
