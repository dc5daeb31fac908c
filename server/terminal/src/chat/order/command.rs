//! The available commands: names, arguments and descriptions.

use crate::{chat::model_settings::NAMES, nearest, printer};

/// A command.
struct Command {
    name: &'static str,
    /// Its arguments.
    words: &'static str,
    about: &'static str,
}

/// All commands, as `/help` lists them.
const COMMANDS: [Command; 22] = [
    of("/help", "", "list these commands"),
    of("/model", "[MODEL]", "choose the model or route, also for a turn that waits; alone, list them"),
    of("/retry", "[MODEL]", "answer again, optionally with another model; if a turn waits, skip the wait"),
    of("/edit", "TEXT", "replace your last message"),
    of("/file", "PATH [TEXT]", "send a PDF, an image or a text file, with what you say about it"),
    of("/stop", "", "stop the running turn"),
    of("/cancel", "", "take the last queued message back"),
    of("/allow", "[always]", "allow the tool call that waits; always: its tool in this conversation"),
    of("/deny", "[REASON]", "deny the tool call that waits"),
    of("/skip", "", "skip a field that a tool asks for, or accept its default"),
    of("/decline", "", "decline the question of a tool"),
    of("/allowed", "", "list the tools that are allowed in this conversation"),
    of("/revoke", "TOOL", "ask before each call of that tool again"),
    of("/new", "", "begin a new conversation"),
    of("/conversations", "[NUMBER]", "list the conversations, or continue one; part of its title is enough"),
    of("/compact", "", "summarize the older part of this conversation for the model now"),
    of("/tools", "", "list the tools that models are offered"),
    of("/instructions", "[TEXT]", "show or set the system prompt of this conversation; default resets it"),
    of("/set", "[NAME VALUE]", "show or set temperature, maxOutputTokens or reasoningEffort"),
    of("/settings", "[NAME VALUE]", "show or change the retry settings"),
    of("/exit", "", "leave; a turn that runs is kept"),
    of("/quit", "", "the same"),
];

const fn of(name: &'static str, words: &'static str, about: &'static str) -> Command {
    Command { name, words, about }
}

/// Maximum width in cells of a command with its arguments in the list.
const WIDTH: usize = 24;

impl Command {
    fn usage(&self) -> String {
        format!("{} {}", self.name, self.words).trim_end().to_owned()
    }
}

/// Splits a line into a command and its arguments; `None` if it does not begin with a command, but for example with a
/// path.
pub(super) fn split(line: &str) -> Option<(&str, &str)> {
    let end = line.find(char::is_whitespace).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let letters = name.strip_prefix('/')?;
    (!letters.is_empty() && letters.bytes().all(|byte| byte.is_ascii_alphabetic())).then_some((name, rest))
}

pub(super) fn is_known(name: &str) -> bool {
    COMMANDS.iter().any(|command| command.name == name)
}

/// The correct usage, for a command that is not valid.
pub(super) fn usage(name: &str) -> String {
    if let Some(known) = COMMANDS.iter().find(|command| command.name == name) {
        return format!("{}: {}.", known.usage(), known.about);
    }
    let escape = "/help lists all commands. To send it as a message, begin with a space.";
    match closest(name) {
        Some(closest) => format!("Unknown command {name}: did you mean {closest}? {escape}"),
        None => format!("Unknown command {name}. {escape}"),
    }
}

/// The command that was probably meant.
fn closest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let mut names = COMMANDS.iter().map(|command| command.name);
    names.clone().rfind(|known| known.starts_with(&name)).or_else(|| {
        // Without the slash that all have.
        let meant = nearest(&name[1..], names.clone().map(|known| &known[1..]))?;
        names.find(|known| known[1..] == *meant)
    })
}

/// The list of commands.
pub(in crate::chat) fn help() -> String {
    let row = |command: &Command| format!("{} {}", printer::pad(&command.usage(), WIDTH), command.about);
    let rows: Vec<String> = COMMANDS.iter().map(row).collect();
    format!(
        "{}\nEnter sends. Ctrl-J, Alt+Enter, or \\ before Enter begins a new line.\n\
         While a turn runs, a message is queued. Esc cancels a wait, Ctrl-C stops the turn, Ctrl-D leaves.",
        rows.join("\n")
    )
}

/// Completions of the input: commands, or arguments of a command; `models` are the names of models.
pub(in crate::chat) fn completions(typed: &str, models: &[String]) -> Vec<String> {
    match typed.split_once(' ') {
        None if typed.starts_with('/') => {
            let names = COMMANDS.iter().map(|command| command.name);
            names.filter(|name| name.starts_with(typed)).map(str::to_owned).collect()
        }
        Some((name @ ("/model" | "/retry"), start)) => {
            let found = models.iter().filter(|model| model.contains(start));
            found.map(|model| format!("{name} {model}")).collect()
        }
        Some(("/set", start)) if !start.contains(' ') => {
            let found = NAMES.iter().filter(|name| name.starts_with(start));
            found.map(|name| format!("/set {name} ")).collect()
        }
        _ => Vec::new(),
    }
}

/// The longest common prefix of all completions, if it is longer than the input.
pub(in crate::chat) fn completed(typed: &str) -> Option<String> {
    let all = completions(typed, &[]);
    let first = all.first()?;
    let shared = |end: &usize| all.iter().all(|other| other.get(..*end) == first.get(..*end));
    let end = (typed.len() + 1..=first.len()).rev().find(shared)?;
    Some(first[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_completed_as_far_as_it_is_clear() {
        for (typed, expected) in [
            ("/mo", Some("/model")),
            ("/al", Some("/allow")),
            ("/st", Some("/stop")),
            ("/model", None),
            ("/", None),
            ("mo", None),
            ("/x", None),
        ] {
            assert_eq!(completed(typed).as_deref(), expected, "{typed}");
        }
        let models = ["a/one".to_owned(), "b/two".to_owned()];
        assert_eq!(completions("/model tw", &models), ["/model b/two"]);
        assert_eq!(completions("/retry ", &models), ["/retry a/one", "/retry b/two"]);
        assert_eq!(completions("/allow", &models), ["/allow", "/allowed"]);
        assert_eq!(completions("/set t", &models), ["/set temperature "]);
        assert!(completions("/edit a", &models).is_empty());
    }

    #[test]
    fn help_has_a_line_for_each_command() {
        let help = help();
        for command in &COMMANDS {
            assert_eq!(help.lines().filter(|line| line.starts_with(&command.usage())).count().min(1), 1);
            assert!(command.usage().len() <= WIDTH);
        }
    }
}
