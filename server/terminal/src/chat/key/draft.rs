//! A message being typed while a turn runs.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use reedline::LineBuffer;

use super::{super::order, Key};

/// A message being typed while a turn runs.
#[derive(Default)]
pub(crate) struct Draft(LineBuffer);

impl Draft {
    pub(crate) fn text(&self) -> &str {
        self.0.get_buffer()
    }

    /// The byte offset of the cursor.
    pub(crate) fn cursor(&self) -> usize {
        self.0.insertion_point()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Inserts text, including line breaks, without sending it.
    pub(super) fn paste(&mut self, text: &str) -> Option<Key> {
        self.0.insert_str(&text.replace("\r\n", "\n").replace('\r', "\n"));
        Some(Key::Edited)
    }

    /// Applies a key; `None` if it has no effect.
    pub(super) fn press(&mut self, key: KeyEvent) -> Option<Key> {
        let line = &mut self.0;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter if key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT) => {
                line.insert_newline();
            }
            KeyCode::Char('j') if control => line.insert_newline(),
            KeyCode::Enter if line.get_buffer()[..line.insertion_point()].ends_with('\\') => {
                line.delete_left_grapheme();
                line.insert_newline();
            }
            KeyCode::Enter => return self.send(),
            KeyCode::Tab => {
                let typed = line.get_buffer();
                let completed = order::completed(typed).filter(|_| line.insertion_point() == typed.len());
                line.set_buffer(completed?);
                line.move_to_end();
            }
            KeyCode::Esc => line.clear(),
            KeyCode::Char('u') if control => line.clear_to_insertion_point(),
            KeyCode::Char('k') if control => line.clear_to_end(),
            KeyCode::Char('w') if control => line.delete_word_left(),
            KeyCode::Char('a') if control => line.move_to_start(),
            KeyCode::Char('e') if control => line.move_to_end(),
            KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => line.insert_char(c),
            KeyCode::Backspace => line.delete_left_grapheme(),
            KeyCode::Delete => line.delete_right_grapheme(),
            KeyCode::Left => line.move_left(),
            KeyCode::Right => line.move_right(),
            KeyCode::Home => line.move_to_start(),
            KeyCode::End => line.move_to_end(),
            _ => return None,
        }
        Some(Key::Edited)
    }

    fn send(&mut self) -> Option<Key> {
        // Leading white space makes a command a message.
        let text = self.text().trim_end().to_owned();
        if text.is_empty() {
            return None;
        }
        self.0.clear();
        Some(Key::Send(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited_and_a_paste_is_whole() {
        let mut draft = Draft::default();
        let keys = [KeyCode::Char('b'), KeyCode::Left, KeyCode::Char('a'), KeyCode::Up, KeyCode::End];
        for key in keys {
            draft.press(KeyEvent::from(key));
        }
        assert_eq!((draft.text(), draft.cursor()), ("ab", 2));
        draft.paste("1\r\n2\r3\n");
        assert_eq!(draft.text(), "ab1\n2\n3\n");
        let sent = draft.press(KeyEvent::from(KeyCode::Enter));
        assert_eq!(sent, Some(Key::Send("ab1\n2\n3".to_owned())));
        assert!(draft.is_empty());
    }

    #[test]
    fn three_ways_to_begin_a_new_line() {
        let mut draft = Draft::default();
        let backslash = KeyEvent::from(KeyCode::Char('\\'));
        for (key, expected) in [
            (KeyEvent::new(KeyCode::Char('j'), KeyModifiers::CONTROL), "a\n"),
            (KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT), "a\n\n"),
            (backslash, "a\n\n\\"),
            (KeyEvent::from(KeyCode::Enter), "a\n\n\n"),
        ] {
            if draft.is_empty() {
                draft.paste("a");
            }
            assert_eq!(draft.press(key), Some(Key::Edited), "{key:?}");
            assert_eq!(draft.text(), expected, "{key:?}");
        }
        draft.paste("b\\c");
        let sent = draft.press(KeyEvent::from(KeyCode::Enter));
        assert_eq!(sent, Some(Key::Send("a\n\n\nb\\c".to_owned())));
    }

    #[test]
    fn tab_completes_a_command() {
        let mut draft = Draft::default();
        draft.paste("/mo");
        assert_eq!(draft.press(KeyEvent::from(KeyCode::Tab)), Some(Key::Edited));
        assert_eq!((draft.text(), draft.cursor()), ("/model", 6));
        assert_eq!(draft.press(KeyEvent::from(KeyCode::Tab)), None);
    }
}
