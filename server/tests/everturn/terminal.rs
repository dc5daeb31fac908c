//! A terminal that runs the program: what is shown, and which keys are pressed.

use std::{collections::VecDeque, process::ExitStatus};

use pty_process::{Pty, Size};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Child,
    time::timeout,
};
use vt100::{Callbacks, Parser, Screen};

use crate::home::{DEADLINE, Home};

const ROWS: u16 = 24;
const COLUMNS: u16 = 100;

pub(crate) const ESC: &str = "\u{1b}";
pub(crate) const CTRL_C: &str = "\u{3}";
pub(crate) const CTRL_D: &str = "\u{4}";

/// Notices when a program asks for the cursor position, which a terminal answers.
#[derive(Default)]
struct Asked(bool);

impl Callbacks for Asked {
    fn unhandled_csi(
        &mut self,
        _: &mut Screen,
        _: Option<u8>,
        _: Option<u8>,
        parameters: &[&[u16]],
        c: char,
    ) {
        self.0 |= c == 'n' && parameters == [[6]];
    }
}

pub(crate) struct Terminal {
    pty: Pty,
    child: Child,
    /// Output that is not on the screen yet.
    coming: VecDeque<u8>,
    screen: Parser<Asked>,
    _home: Home,
}

impl Terminal {
    /// Runs `everturn` with these arguments in a terminal.
    pub(crate) fn new(home: &Home, words: &[&str]) -> Self {
        Self::of_width(home, COLUMNS, words)
    }

    pub(crate) fn of_width(home: &Home, columns: u16, words: &[&str]) -> Self {
        Self::start(home, ROWS, columns, env!("CARGO_BIN_EXE_everturn"), words)
    }

    /// Runs it in a terminal of this size.
    pub(crate) fn of_size(home: &Home, rows: u16, columns: u16, words: &[&str]) -> Self {
        Self::start(home, rows, columns, env!("CARGO_BIN_EXE_everturn"), words)
    }

    pub(crate) fn running(home: &Home, program: &str, words: &[&str]) -> Self {
        Self::start(home, ROWS, COLUMNS, program, words)
    }

    fn start(home: &Home, rows: u16, columns: u16, program: &str, words: &[&str]) -> Self {
        let (pty, pts) = pty_process::open().unwrap();
        pty.resize(Size::new(rows, columns)).unwrap();
        let command = pty_process::Command::new(program).args(words).env_clear().kill_on_drop(true);
        let command =
            home.variables().into_iter().fold(command, |command, (name, value)| command.env(name, value));
        let child = command.spawn(pts).unwrap();
        let coming = VecDeque::new();
        let screen = Parser::new_with_callbacks(
            ROWS,
            if columns == 0 { COLUMNS } else { columns },
            100,
            Asked::default(),
        );
        Self { pty, child, coming, screen, _home: home.clone() }
    }

    /// Returns the screen without trailing white space.
    pub(crate) fn shown(&self) -> String {
        let screen = self.screen.screen();
        let rows = screen.rows(0, screen.size().1);
        rows.map(|row| row.trim_end().to_owned()).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    /// Whether anything on the screen is coloured.
    pub(crate) fn has_color(&self) -> bool {
        let screen = self.screen.screen();
        let (rows, columns) = screen.size();
        let mut cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        cells.any(|(row, column)| {
            screen.cell(row, column).is_some_and(|cell| cell.fgcolor() != vt100::Color::Default)
        })
    }

    /// Whether a part of this line is yellow.
    pub(crate) fn is_yellow(&self, start: &str) -> bool {
        let row = self.screen.screen().rows(0, COLUMNS).position(|row| row.starts_with(start)).unwrap();
        let cell = self.screen.screen().cell(u16::try_from(row).unwrap(), 0).unwrap();
        matches!(cell.fgcolor(), vt100::Color::Idx(3 | 11))
    }

    /// Returns the cell where this text begins.
    pub(crate) fn cell(&self, text: &str) -> vt100::Cell {
        let rows = self.screen.screen().rows(0, COLUMNS);
        let place = |(row, line): (usize, String)| {
            let column = line.split_once(text)?.0.chars().count();
            self.screen.screen().cell(u16::try_from(row).ok()?, u16::try_from(column).ok()?).cloned()
        };
        rows.enumerate().find_map(place).unwrap_or_else(|| panic!("{text:?}:\n{}", self.shown()))
    }

    /// Whether the first line with this text is dim.
    pub(crate) fn is_dim(&self, text: &str) -> bool {
        let row = self.screen.screen().rows(0, COLUMNS).position(|row| row.contains(text)).unwrap();
        let cell = self.screen.screen().cell(u16::try_from(row).unwrap(), 0).unwrap();
        cell.dim()
    }

    /// Waits until this text is on the screen, for however short a time.
    pub(crate) async fn until(&mut self, text: &str) {
        self.until_shown(|shown| shown.contains(text), &format!("{text:?} did not come")).await;
    }

    /// Waits until the screen ends with this text.
    pub(crate) async fn until_ends(&mut self, text: &str) {
        let failure = format!("it does not end with {text:?}");
        self.until_shown(|shown| shown.trim_end().ends_with(text), &failure).await;
    }

    /// Waits until this text is no longer on the screen.
    pub(crate) async fn until_gone(&mut self, text: &str) {
        self.until_shown(|shown| !shown.contains(text), &format!("{text:?} did not go")).await;
    }

    async fn until_shown(&mut self, is_wanted: impl Fn(&str) -> bool, failure: &str) {
        let wanted = async {
            while !is_wanted(&self.shown()) {
                if !self.read().await {
                    return false;
                }
            }
            true
        };
        let wanted = timeout(DEADLINE, wanted).await.unwrap_or(false);
        assert!(wanted, "{failure}; the screen shows:\n{}", self.shown());
    }

    /// Types the rest of a line and Enter, and waits until this text is on the screen.
    pub(crate) async fn enter(&mut self, line: &str, text: &str) {
        self.press(&format!("{line}\r")).await;
        self.until(text).await;
    }

    pub(crate) async fn press(&mut self, keys: &str) {
        self.pty.write_all(keys.as_bytes()).await.unwrap();
    }

    /// Waits until what is typed is kept for the next reader, although nothing reads keys: output is still processed, but
    /// nothing is echoed, and Enter stays Enter.
    pub(crate) async fn until_quiet(&self) {
        use rustix::termios::{InputModes, LocalModes, OutputModes, tcgetattr};

        let is_quiet = || {
            let mode = tcgetattr(&self.pty).unwrap();
            mode.output_modes.contains(OutputModes::OPOST)
                && !mode.local_modes.contains(LocalModes::ECHO)
                && !mode.input_modes.contains(InputModes::ICRNL)
        };
        let quiet = async {
            while !is_quiet() {
                tokio::task::yield_now().await;
            }
        };
        timeout(DEADLINE, quiet).await.expect("a quiet terminal in time");
    }

    /// Whether it is as it was before the program: it echoes, and Enter ends a line.
    pub(crate) fn is_restored(&self) -> bool {
        use rustix::termios::{InputModes, LocalModes, tcgetattr};

        let mode = tcgetattr(&self.pty).unwrap();
        mode.local_modes.contains(LocalModes::ECHO | LocalModes::ICANON)
            && mode.input_modes.contains(InputModes::ICRNL)
    }

    /// Kills the program, as `kill -9` does.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Waits until the program has ended.
    pub(crate) async fn end(&mut self) -> ExitStatus {
        let ended = async {
            while self.read().await {}
            self.child.wait().await.unwrap()
        };
        timeout(DEADLINE, ended).await.expect("the program ends in time")
    }

    /// Processes the next byte of output. Returns false at the end.
    async fn read(&mut self) -> bool {
        if self.coming.is_empty() {
            let mut bytes = [0; 4096];
            // When the other side is gone, Linux reports an error, and other systems an end.
            let read = self.pty.read(&mut bytes).await.unwrap_or(0);
            self.coming.extend(&bytes[..read]);
        }
        let byte = self.coming.pop_front();
        self.screen.process(byte.as_slice());
        if std::mem::take(&mut self.screen.callbacks_mut().0) {
            let (row, column) = self.screen.screen().cursor_position();
            self.press(&format!("\u{1b}[{};{}R", row + 1, column + 1)).await;
        }
        byte.is_some()
    }
}
