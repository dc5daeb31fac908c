//! What a person does while a turn runs.

mod listener;

use std::{io, panic};

use crossterm::{
    event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
    terminal::{disable_raw_mode, enable_raw_mode},
};

use crate::interrupt::Interrupt;
use listener::Listener;

/// What a person wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// No more waiting: end the turn.
    Cancel,
    /// No more waiting: ask again now.
    RetryNow,
    /// End the turn, whatever it does.
    Stop,
}

/// The keys of a terminal, one by one, and requests to end the program. The terminal is its user's again when this is
/// dropped.
pub(super) struct Keys<'a> {
    interrupt: &'a mut Interrupt,
    /// The listener goes before the terminal is given back: what is typed then is not for it.
    raw: Option<(Listener, Raw)>,
}

impl<'a> Keys<'a> {
    /// Only requests to end the program.
    pub(super) fn none(interrupt: &'a mut Interrupt) -> Self {
        Self { interrupt, raw: None }
    }

    /// Takes the terminal over.
    pub(super) fn of_terminal(interrupt: &'a mut Interrupt) -> io::Result<Self> {
        let raw = Raw::enter()?;
        Ok(Self { interrupt, raw: Some((Listener::start()?, raw)) })
    }

    /// What the person wants next. May be dropped at any time.
    pub(super) async fn next(&mut self) -> Key {
        loop {
            let Some((events, _)) = &mut self.raw else {
                self.interrupt.next().await;
                return Key::Stop;
            };
            tokio::select! {
                () = self.interrupt.next() => return Key::Stop,
                event = events.next() => match event {
                    Some(Ok(Event::Key(key))) => {
                        if let Some(key) = meaning(key) {
                            return key;
                        }
                    }
                    Some(Ok(_)) => {}
                    // The terminal is gone.
                    Some(Err(_)) | None => self.raw = None,
                },
            }
        }
    }
}

fn meaning(key: KeyEvent) -> Option<Key> {
    if key.kind != KeyEventKind::Press {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Esc => Some(Key::Cancel),
        KeyCode::Char('c') if control => Some(Key::Stop),
        KeyCode::Char('r' | 'R') if !control => Some(Key::RetryNow),
        _ => None,
    }
}

/// The terminal without line editing and echo, until dropped.
struct Raw;

impl Raw {
    fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        Ok(Self)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = disable_raw_mode();
    }
}

/// Makes a panic give the terminal back before it says anything.
pub(super) fn restore_on_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let _ = disable_raw_mode();
        report(panic);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_keys_mean_something() {
        let key = |code, modifiers| meaning(KeyEvent::new(code, modifiers));
        assert_eq!(key(KeyCode::Esc, KeyModifiers::NONE), Some(Key::Cancel));
        assert_eq!(key(KeyCode::Char('r'), KeyModifiers::NONE), Some(Key::RetryNow));
        assert_eq!(key(KeyCode::Char('R'), KeyModifiers::SHIFT), Some(Key::RetryNow));
        assert_eq!(key(KeyCode::Char('r'), KeyModifiers::CONTROL), None);
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Stop));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), None);
    }
}
