//! The terminal between a prompt and a turn, when neither reads keys.

#[cfg(unix)]
use std::{
    io,
    sync::{Mutex, PoisonError},
};

#[cfg(unix)]
use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// The mode that the terminal had before.
#[cfg(unix)]
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Keeps keys that are pressed while nothing reads them, for the next reader, until dropped. Otherwise, the terminal would
/// echo them, and turn Enter into Ctrl-J, which begins a new line here. Raw mode is entered and left on top of this.
pub(in crate::chat) struct Quiet;

impl Quiet {
    /// Does nothing if standard input is not a terminal.
    pub(in crate::chat) fn enter() -> Self {
        #[cfg(unix)]
        if let Ok(mode) = tcgetattr(io::stdin()) {
            let mut quiet = mode.clone();
            quiet.input_modes.remove(InputModes::ICRNL);
            quiet.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            if tcsetattr(io::stdin(), OptionalActions::Now, &quiet).is_ok() {
                *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(mode);
            }
        }
        Self
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        leave();
    }
}

/// Restores the mode that the terminal had before.
pub(super) fn leave() {
    #[cfg(unix)]
    if let Some(mode) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &mode);
    }
}
