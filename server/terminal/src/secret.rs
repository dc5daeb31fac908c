//! Asks for a secret in the terminal, without showing it.

use std::io::{self, Write as _};

use anyhow::{Result, bail};
use crossterm::{
    event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
    terminal::{disable_raw_mode, enable_raw_mode},
};

/// Maximum length, in bytes.
const LONGEST: usize = 16 << 10;

/// Switches the terminal back when it is dropped.
struct Raw;

impl Drop for Raw {
    fn drop(&mut self) {
        // Nothing better can be done.
        let _ = disable_raw_mode();
    }
}

/// Prints the question to standard error, and reads a line that is not shown. `None` = it is empty.
///
/// # Errors
/// When the terminal cannot be read, or the person presses Ctrl-C.
pub fn ask_secret(question: &str) -> Result<Option<String>> {
    let mut out = io::stderr();
    let read = {
        // Before the question: what is pasted at once must not be shown, either.
        enable_raw_mode()?;
        let _raw = Raw;
        // The terminal does not add the carriage return now.
        write!(out, "{}", question.replace('\n', "\r\n"))?;
        out.flush()?;
        line()
    };
    writeln!(out)?;
    Ok(Some(read?).filter(|text| !text.trim().is_empty()))
}

fn line() -> Result<String> {
    let mut text = String::new();
    loop {
        let key = match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => key,
            Event::Paste(pasted) => {
                text.push_str(&pasted);
                continue;
            }
            _ => continue,
        };
        match key {
            KeyEvent { code: KeyCode::Enter, .. } => return Ok(text),
            KeyEvent { code: KeyCode::Char('j' | 'm'), modifiers: KeyModifiers::CONTROL, .. } => {
                return Ok(text);
            }
            KeyEvent { code: KeyCode::Char('c' | 'd'), modifiers: KeyModifiers::CONTROL, .. }
            | KeyEvent { code: KeyCode::Esc, .. } => {
                bail!("cancelled: nothing was kept")
            }
            KeyEvent { code: KeyCode::Backspace, .. } => {
                text.pop();
            }
            KeyEvent { code: KeyCode::Char('u'), modifiers: KeyModifiers::CONTROL, .. } => text.clear(),
            KeyEvent { code: KeyCode::Char(c), modifiers, .. }
                // Both together are AltGr.
                if text.len() < LONGEST
                    && modifiers.contains(KeyModifiers::CONTROL) == modifiers.contains(KeyModifiers::ALT) =>
            {
                text.push(c);
            }
            _ => {}
        }
    }
}
