//! The interactive prompt; the editor runs on a separate thread.
//!
//! The editor reads keys through crossterm, like the listener that is used while a turn runs. Events that one of them
//! has read but not consumed are available to the other.

use std::{
    borrow::Cow,
    io::{self, BufRead as _, Write as _},
    sync::mpsc::{self, Sender},
    thread,
};

use anyhow::{Context as _, Result};
use crossterm::{
    event::Event,
    execute,
    style::Colored,
    terminal::{Clear, ClearType},
};
use reedline::{
    Color, ColumnarMenu, Completer, CompletionResult, EditCommand, EditMode, Emacs, FileBackedHistory,
    KeyCode, KeyModifiers, MenuBuilder as _, PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent,
    ReedlineMenu, ReedlineRawEvent, Signal, SimpleMatchHighlighter, Span, Suggestion,
    default_emacs_keybindings,
};
use tokio::sync::oneshot;

use super::order;

/// Number of messages in the input history.
const HISTORY: usize = 1000;

/// The command that Ctrl-C sends to the editor; by default, Ctrl-C would end the prompt, whatever is typed.
const INTERRUPT: &str = "interrupt";

/// The menu of completions.
const MENU: &str = "words";

/// The result of prompting for a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Message(String),
    /// The person pressed Ctrl-C.
    Interrupted,
    /// End of input.
    End,
}

/// Prompts for messages. The program can exit without waiting for the prompt.
pub(super) struct Prompt {
    ask: Sender<(String, oneshot::Sender<Answer>)>,
}

impl Prompt {
    /// Starts the prompt; `models` are completed where a model is expected.
    pub(super) fn start(models: Vec<String>) -> Result<Self> {
        let (ask, asked) = mpsc::channel::<(String, oneshot::Sender<Answer>)>();
        thread::Builder::new().name("prompt".to_owned()).spawn(move || {
            let mut editor = Editor::new(models);
            while let Ok((draft, answer)) = asked.recv() {
                // Fails if nobody waits any more.
                let _ = answer.send(editor.ask(draft));
            }
        })?;
        Ok(Self { ask })
    }

    /// Prompts for the next message, starting with this draft.
    pub(super) async fn next(&self, draft: String) -> Result<Answer> {
        let (answer, answered) = oneshot::channel();
        self.ask.send((draft, answer)).ok().context("the prompt ended")?;
        answered.await.context("the prompt ended")
    }
}

enum Editor {
    Line(Box<Reedline>),
    /// For terminals that do not report the cursor position: their own line editing.
    Plain,
}

impl Editor {
    fn new(models: Vec<String>) -> Self {
        let mut keys = default_emacs_keybindings();
        let new_line = ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
        keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('j'), new_line);
        let interrupt = ReedlineEvent::ExecuteHostCommand(INTERRUPT.to_owned());
        keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('c'), interrupt);
        let complete = [ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext];
        keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, ReedlineEvent::UntilFound(complete.to_vec()));
        let menu = ColumnarMenu::default().with_name(MENU).with_marker(SIGN);
        // Only the menu uses colours.
        let has_color = !Colored::ansi_color_disabled_memoized();
        let line = Reedline::create()
            .with_completer(Box::new(Words { models }))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_edit_mode(Box::new(Keymap { emacs: Emacs::new(keys), is_escaped: false }))
            .use_bracketed_paste(true)
            .with_highlighter(Box::new(SimpleMatchHighlighter::default()))
            .with_ansi_colors(has_color);
        let line = match FileBackedHistory::new(HISTORY) {
            Ok(history) => line.with_history(Box::new(history)),
            Err(_) => line,
        };
        Self::Line(Box::new(line))
    }

    fn ask(&mut self, draft: String) -> Answer {
        let answer = self.read(draft);
        // Clears a list of completions that may still be shown.
        let _ = execute!(io::stdout(), Clear(ClearType::FromCursorDown));
        answer
    }

    fn read(&mut self, draft: String) -> Answer {
        if let Self::Line(editor) = self {
            if !draft.is_empty() {
                editor.run_edit_commands(&[EditCommand::InsertString(draft)]);
            }
            loop {
                match editor.read_line(&Sign) {
                    Ok(Signal::Success(text)) => return Answer::Message(text),
                    // As in a shell, Ctrl-C first clears the line.
                    Ok(Signal::HostCommand(_)) if !editor.current_buffer_contents().is_empty() => {
                        editor.run_edit_commands(&[EditCommand::Clear]);
                    }
                    Ok(Signal::HostCommand(_) | Signal::CtrlC) => return Answer::Interrupted,
                    Ok(_) => return Answer::End,
                    Err(_) => break,
                }
            }
            super::key::restore();
            *self = Self::Plain;
        }
        plain().unwrap_or(Answer::End)
    }
}

/// Emacs keys, and a backslash right before Enter for a new line.
struct Keymap {
    emacs: Emacs,
    /// Whether the last key was a backslash.
    is_escaped: bool,
}

impl EditMode for Keymap {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let event = Event::from(event);
        let code = event.as_key_event().map(|key| (key.code, key.modifiers));
        let is_backslash = code.is_some_and(|(code, _)| code == KeyCode::Char('\\'));
        if std::mem::replace(&mut self.is_escaped, is_backslash)
            && code == Some((KeyCode::Enter, KeyModifiers::NONE))
        {
            return ReedlineEvent::Edit(vec![EditCommand::Backspace, EditCommand::InsertNewline]);
        }
        ReedlineRawEvent::try_from(event).map_or(ReedlineEvent::None, |event| self.emacs.parse_event(event))
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.emacs.edit_mode()
    }
}

/// Completes commands, and models after commands that take one.
struct Words {
    models: Vec<String>,
}

impl Completer for Words {
    fn complete(&mut self, line: &str, place: usize) -> CompletionResult {
        let typed = line.get(..place).unwrap_or(line);
        let suggestion = |value: String| Suggestion {
            display_override: value.split_once(' ').map(|(_, model)| model.to_owned()),
            span: Span::new(0, place),
            value,
            ..Suggestion::default()
        };
        let found = order::completions(typed, &self.models).into_iter().map(suggestion);
        CompletionResult::fresh(found.collect::<Vec<_>>())
    }
}

fn plain() -> io::Result<Answer> {
    let mut out = io::stdout();
    out.write_all(SIGN.as_bytes())?;
    out.flush()?;
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line)?;
    Ok(if read > 0 { Answer::Message(line) } else { Answer::End })
}

const SIGN: &str = "> ";

/// The prompt before a message.
struct Sign;

impl reedline::Prompt for Sign {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn get_prompt_color(&self) -> Color {
        Color::Default
    }

    fn get_prompt_multiline_color(&self) -> Color {
        Color::Default
    }

    fn get_indicator_color(&self) -> Color {
        Color::Default
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(SIGN)
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("search {:?}: ", search.term))
    }
}
