//! Disk and clock faults, injected below an unmodified program.

use std::{
    fs,
    path::{Path, PathBuf},
    process,
    sync::OnceLock,
};

use tokio::process::Command;

use crate::home::Home;

/// The faults of one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Injection(Vec<(&'static str, String)>);

/// When a process is killed, relative to a call on its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Before,
    /// Half of the bytes are written.
    Torn,
    After,
}

impl Moment {
    pub(crate) const ALL: [(Self, &'static str); 3] =
        [(Self::Before, "before"), (Self::Torn, "torn"), (Self::After, "after")];

    pub(crate) fn word(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

impl Injection {
    /// No faults.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// Kills the process at the call with this number, from 1.
    #[must_use]
    pub(crate) fn kill(self, call: usize, moment: Moment) -> Self {
        self.with("FAULT_AT", call.to_string()).with("FAULT_MOMENT", moment.word().to_owned())
    }

    /// While `switch` exists, makes calls of these kinds fail with this error number, at most `times` times.
    #[must_use]
    pub(crate) fn failing(self, kinds: &str, errno: i32, switch: &Path, times: Option<usize>) -> Self {
        let fault = self
            .with("FAULT_KINDS", kinds.to_owned())
            .with("FAULT_ERRNO", errno.to_string())
            .with("FAULT_SWITCH", switch.display().to_string());
        match times {
            Some(times) => fault.with("FAULT_TIMES", times.to_string()),
            None => fault,
        }
    }

    /// Logs every call to this file, as a letter.
    #[must_use]
    pub(crate) fn logged(self, file: &Path) -> Self {
        self.with("FAULT_LOG", file.display().to_string())
    }

    /// Maintains in this directory what a power cut would leave.
    #[must_use]
    pub(crate) fn imaged(self, directory: &Path) -> Self {
        self.with("FAULT_IMAGE", directory.display().to_string())
    }

    /// Replaces a journal with what a power cut left in that directory.
    pub(crate) fn cut_power(home: &Home, image: &Path) {
        let journal = home.journal();
        let directory = journal.parent().unwrap();
        for entry in fs::read_dir(directory).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        for entry in fs::read_dir(image).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), directory.join(entry.file_name())).unwrap();
        }
    }

    /// Shifts the wall clock by this many seconds.
    #[must_use]
    pub(crate) fn clock(self, seconds: i64) -> Self {
        self.with("FAULT_CLOCK", seconds.to_string())
    }

    /// Applies the faults to a program to be started.
    pub(crate) fn inject(&self, command: &mut Command, home: &Home) {
        let journal = home.journal();
        let directory = journal.parent().unwrap();
        fs::create_dir_all(directory).unwrap();
        let files = directory.canonicalize().unwrap().join("everturn.db");
        command.env("LD_PRELOAD", shim()).env("FAULT_FILES", files);
        command.envs(self.0.iter().map(|(name, value)| (name, value)));
    }

    fn with(mut self, name: &'static str, value: String) -> Self {
        self.0.push((name, value));
        self
    }
}

/// Returns the shim, built once. Where SQLite could be built, there is a C compiler.
fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (fresh, shim) =
            (directory.join(format!("fault-{}.so", process::id())), directory.join("fault.so"));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/everturn/fault/shim.c");
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let built = process::Command::new(&compiler)
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"])
            .args([fresh.as_os_str(), source.as_ref()])
            .status();
        assert!(built.is_ok_and(|status| status.success()), "cannot build {source} with {compiler}");
        // Another test run may do the same; each must see a complete file.
        fs::rename(&fresh, &shim).unwrap();
        shim
    })
}
