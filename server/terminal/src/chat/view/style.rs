//! Text styles.

use crossterm::style::Colored;

/// The style of a piece of text. Nothing is expressed by colour alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) bold: bool,
    pub(super) dim: bool,
    pub(super) italic: bool,
    pub(super) underline: bool,
    pub(super) strike: bool,
    pub(super) is_code: bool,
}

impl Style {
    pub(super) const PLAIN: Self =
        Self { bold: false, dim: false, italic: false, underline: false, strike: false, is_code: false };
    pub(super) const DIM: Self = Self { dim: true, ..Self::PLAIN };
    pub(super) const BOLD: Self = Self { bold: true, ..Self::PLAIN };
    pub(super) const CODE: Self = Self { is_code: true, ..Self::PLAIN };

    /// The escape sequence that sets this style, whatever the previous one.
    pub(super) fn escape(self) -> String {
        let code = self.is_code && !Colored::ansi_color_disabled_memoized();
        let set = [
            (self.bold, ";1"),
            (self.dim, ";2"),
            (self.italic, ";3"),
            (self.underline, ";4"),
            (self.strike, ";9"),
            (code, ";36"),
        ];
        let set: String = set.into_iter().filter_map(|(is_set, code)| is_set.then_some(code)).collect();
        format!("\u{1b}[0{set}m")
    }
}
