//! A person's input while a turn runs.

mod draft;
mod listener;
mod quiet;

use std::{io, panic};

use crate::Interrupt;
use crossterm::{
    event::{
        DisableBracketedPaste, EnableBracketedPaste, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers,
    },
    execute,
    terminal::{disable_raw_mode, enable_raw_mode},
};

use super::approval::Choice;
pub(super) use draft::Draft;
use listener::Listener;
pub(super) use quiet::Quiet;

/// A person's action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// End the turn instead of waiting.
    Cancel,
    /// Ask again now instead of waiting.
    RetryNow,
    /// End the turn, whatever its state.
    Stop,
    /// Leave; the turn keeps running.
    Leave,
    /// Answer the call that waits for approval.
    Answer(Choice),
    /// The draft changed.
    Edited,
    /// Send this during or after the answer.
    Send(String),
}

/// Actions of single keys that depend on the turn's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Acts {
    /// R asks again now.
    pub(super) asks_now: bool,
    /// Y, A and N answer a call that waits for approval.
    pub(super) answers: bool,
}

/// The keys of a terminal, and requests to end the program. Restores the terminal when dropped.
pub(super) struct Keys<'a> {
    interrupt: &'a mut Interrupt,
    /// The listener is dropped before the terminal is restored, so that it does not take later input.
    raw: Option<(Listener, Raw)>,
    draft: Draft,
}

impl<'a> Keys<'a> {
    /// Reads only requests to end the program, no keys.
    pub(super) fn none(interrupt: &'a mut Interrupt) -> Self {
        Self { interrupt, raw: None, draft: Draft::default() }
    }

    /// Takes over the terminal.
    pub(super) fn of_terminal(interrupt: &'a mut Interrupt) -> io::Result<Self> {
        let raw = Raw::enter()?;
        Ok(Self { raw: Some((Listener::start()?, raw)), ..Self::none(interrupt) })
    }

    /// The message being typed.
    pub(super) fn draft(&self) -> &Draft {
        &self.draft
    }

    /// Restores the terminal. Returns the unsent draft, and whether the person wants to leave; keys pressed as the turn
    /// ended count, too.
    pub(super) fn end(mut self) -> (String, bool) {
        let Some((mut listener, raw)) = self.raw.take() else { return (String::new(), false) };
        let mut leaves = false;
        for event in listener.rest() {
            match meaning(event, Acts::default(), &mut self.draft) {
                Some(Key::Leave) => leaves = true,
                // No turn is left to queue it after.
                Some(Key::Send(text)) => drop(self.draft.paste(&text)),
                _ => {}
            }
        }
        drop(raw);
        (self.draft.text().to_owned(), leaves)
    }

    /// The person's next action. A key without an action is typed into the draft. Cancel-safe.
    pub(super) async fn next(&mut self, acts: Acts) -> Key {
        loop {
            let Some((events, _)) = &mut self.raw else {
                self.interrupt.next().await;
                return Key::Stop;
            };
            tokio::select! {
                () = self.interrupt.next() => return Key::Stop,
                event = events.next() => match event {
                    Some(Ok(event)) => {
                        if let Some(key) = meaning(event, acts, &mut self.draft) {
                            return key;
                        }
                    }
                    // The terminal is gone.
                    Some(Err(_)) | None => self.raw = None,
                },
            }
        }
    }
}

/// What an input event means. Single keys act on the turn only while the draft is empty.
fn meaning(event: Event, acts: Acts, draft: &mut Draft) -> Option<Key> {
    let key = match event {
        Event::Paste(text) => return draft.paste(&text),
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        _ => return None,
    };
    match key {
        KeyEvent { code: KeyCode::Char('c'), modifiers: KeyModifiers::CONTROL, .. } => Some(Key::Stop),
        KeyEvent { code: KeyCode::Char('d'), modifiers: KeyModifiers::CONTROL, .. } if draft.is_empty() => {
            Some(Key::Leave)
        }
        KeyEvent { code: KeyCode::Esc, .. } if draft.is_empty() => Some(Key::Cancel),
        KeyEvent { code: KeyCode::Char('r' | 'R'), modifiers, .. }
            if draft.is_empty() && acts.asks_now && !modifiers.contains(KeyModifiers::CONTROL) =>
        {
            Some(Key::RetryNow)
        }
        KeyEvent { code: KeyCode::Char(c), modifiers, .. }
            if draft.is_empty() && acts.answers && !modifiers.contains(KeyModifiers::CONTROL) =>
        {
            answer(c).or_else(|| draft.press(key))
        }
        key => draft.press(key),
    }
}

fn answer(c: char) -> Option<Key> {
    let choice = match c.to_ascii_lowercase() {
        'y' => Choice::Once,
        'a' => Choice::Always,
        'n' => Choice::Deny(None),
        _ => return None,
    };
    Some(Key::Answer(choice))
}

/// Raw mode: no line editing or echo until dropped.
struct Raw;

impl Raw {
    fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        // A terminal without bracketed paste sends pasted text as keys.
        let _ = execute!(io::stdout(), EnableBracketedPaste);
        Ok(Self)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        leave_raw();
    }
}

/// Does nothing if the terminal is gone.
fn leave_raw() {
    let _ = execute!(io::stdout(), DisableBracketedPaste);
    let _ = disable_raw_mode();
}

/// Restores the terminal as it was before the program. Does nothing if the terminal is gone.
pub(super) fn restore() {
    leave_raw();
    quiet::leave();
}

/// Makes a panic restore the terminal before printing its message.
pub(super) fn restore_on_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let _ = disable_raw_mode();
        quiet::leave();
        report(panic);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the last of these keys means.
    fn last(keys: &str, acts: Acts) -> (Option<Key>, String) {
        let mut draft = Draft::default();
        let mut key = None;
        for c in keys.chars() {
            let event = match c {
                '\u{1b}' => KeyEvent::from(KeyCode::Esc),
                '\u{3}' => KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
                '\u{4}' => KeyEvent::new(KeyCode::Char('d'), KeyModifiers::CONTROL),
                '\u{12}' => KeyEvent::new(KeyCode::Char('r'), KeyModifiers::CONTROL),
                '\r' => KeyEvent::from(KeyCode::Enter),
                c => KeyEvent::from(KeyCode::Char(c)),
            };
            key = meaning(Event::Key(event), acts, &mut draft);
        }
        (key, draft.text().to_owned())
    }

    #[test]
    fn keys_act_on_a_turn_while_nothing_is_typed() {
        for (keys, may_ask_now, expected, draft) in [
            ("\u{1b}", true, Some(Key::Cancel), ""),
            ("r", true, Some(Key::RetryNow), ""),
            ("R", true, Some(Key::RetryNow), ""),
            ("\u{12}", true, None, ""),
            ("\u{3}", true, Some(Key::Stop), ""),
            ("r", false, Some(Key::Edited), "r"),
            ("or", true, Some(Key::Edited), "or"),
            ("or\u{1b}", true, Some(Key::Edited), ""),
            ("or\u{3}", true, Some(Key::Stop), "or"),
            ("or\r", true, Some(Key::Send("or".to_owned())), ""),
            (" \r", true, None, " "),
            ("\u{4}", true, Some(Key::Leave), ""),
            ("or\u{4}", true, None, "or"),
        ] {
            let acts = Acts { asks_now: may_ask_now, ..Acts::default() };
            assert_eq!(last(keys, acts), (expected, draft.to_owned()), "{keys:?}");
        }
    }

    #[test]
    fn a_letter_answers_only_what_is_asked_and_at_the_start_of_a_line() {
        let deny = || Some(Key::Answer(Choice::Deny(None)));
        for (keys, answers, expected, draft) in [
            ("y", true, Some(Key::Answer(Choice::Once)), ""),
            ("A", true, Some(Key::Answer(Choice::Always)), ""),
            ("n", true, deny(), ""),
            ("y", false, Some(Key::Edited), "y"),
            ("oy", true, Some(Key::Edited), "oy"),
            ("o\u{1b}n", true, deny(), ""),
        ] {
            let acts = Acts { answers, ..Acts::default() };
            assert_eq!(last(keys, acts), (expected, draft.to_owned()), "{keys:?}");
        }
    }
}
