//! What the artifacts contain.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};
use flate2::Compression;

use crate::step::output;

/// The names of a machine's architecture.
pub(super) struct Machine {
    pub(super) rust: &'static str,
    /// Debian's and the container images'.
    pub(super) debian: &'static str,
    pub(super) node: &'static str,
}

const MACHINES: [Machine; 2] = [
    Machine { rust: "x86_64", debian: "amd64", node: "x64" },
    Machine { rust: "aarch64", debian: "arm64", node: "arm64" },
];

pub(super) struct Contents {
    pub(super) version: String,
    pub(super) machine: &'static Machine,
    /// The time of the commit, in seconds since 1970.
    pub(super) time: u64,
    pub(super) level: Compression,
    /// Without symbols.
    pub(super) binary: Vec<u8>,
    /// The libraries that the binary needs, with their absolute paths; none if it is static.
    pub(super) libraries: Vec<(String, Vec<u8>)>,
    /// The oldest glibc 2.x with which the binary runs; `None` if it is static.
    pub(super) glibc: Option<u32>,
    /// Manual pages, by file name.
    pub(super) manuals: Vec<(String, Vec<u8>)>,
    /// bash, zsh and fish.
    pub(super) completions: [(&'static str, Vec<u8>); 3],
    pub(super) unit: Vec<u8>,
    pub(super) readme: String,
    pub(super) licences: [(&'static str, Vec<u8>); 2],
}

impl Contents {
    /// Reads everything from the repository and, for manual pages and completions, from the binary. `scratch` exists.
    pub(super) fn read(root: &Path, binary: &Path, scratch: &Path, level: Compression) -> Result<Self> {
        let read = |path: &str| fs::read(root.join(path)).with_context(|| format!("cannot read {path}"));
        let printed = |arguments: &[&str]| output(Command::new(binary).args(arguments));
        let version = printed(&["--version"])?;
        let version = version.split_whitespace().nth(1).context("`everturn --version` printed no version")?;
        let Some(machine) = MACHINES.iter().find(|machine| machine.rust == std::env::consts::ARCH) else {
            bail!("no artifacts are defined for {}", std::env::consts::ARCH);
        };
        let time = output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root))?;
        let libraries = libraries(binary)?;
        let stripped = scratch.join("everturn");
        output(Command::new("strip").arg("-o").arg(&stripped).arg(binary))?;
        let bytes = fs::read(&stripped)?;
        fs::remove_file(&stripped)?;
        let completions = |shell: &str| printed(&["completions", shell]).map(String::into_bytes);
        Ok(Self {
            version: version.to_owned(),
            machine,
            time: time.trim().parse().context("`git log` printed no time")?,
            level,
            glibc: (!libraries.is_empty()).then(|| oldest_glibc(&bytes)),
            libraries,
            binary: bytes,
            manuals: manuals(binary, &scratch.join("man"))?,
            completions: [
                ("everturn.bash", completions("bash")?),
                ("_everturn", completions("zsh")?),
                ("everturn.fish", completions("fish")?),
            ],
            unit: read("server/packaging/everturn.service")?,
            readme: String::from_utf8(read("server/README.md")?)?,
            licences: [("LICENSE-APACHE", read("LICENSE-APACHE")?), ("LICENSE-MIT", read("LICENSE-MIT")?)],
        })
    }

    /// Returns everything but the binary, with paths as in the tarball.
    pub(super) fn documents(&self) -> impl Iterator<Item = (String, &[u8])> {
        let manuals = self.manuals.iter().map(|(name, page)| (format!("man/{name}"), page.as_slice()));
        let completions =
            self.completions.iter().map(|(name, script)| (format!("completions/{name}"), script.as_slice()));
        let licences = self.licences.iter().map(|(name, text)| ((*name).to_owned(), text.as_slice()));
        let others = [
            ("README.md".to_owned(), self.readme.as_bytes()),
            ("everturn.service".to_owned(), self.unit.as_slice()),
        ];
        manuals.chain(completions).chain(licences).chain(others)
    }
}

fn manuals(binary: &Path, folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    output(Command::new(binary).arg("man").arg(folder))?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        pages.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
    }
    fs::remove_dir_all(folder)?;
    pages.sort();
    Ok(pages)
}

/// Returns the libraries that a binary loads, and the loader itself.
fn libraries(binary: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    // It fails if the binary is static.
    let listed = output(Command::new("ldd").arg(binary)).unwrap_or_default();
    let paths = listed.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    let read = |path: &str| Ok((path.to_owned(), fs::read(PathBuf::from(path))?));
    paths.map(read).collect()
}

/// Returns the newest version of glibc that a binary names, as the 36 of 2.36.
fn oldest_glibc(binary: &[u8]) -> u32 {
    const NAME: &[u8] = b"GLIBC_2.";
    let versions = binary.windows(NAME.len() + 3).filter_map(|window| {
        let digits = window.strip_prefix(NAME)?;
        let digits = digits.split(|byte| !byte.is_ascii_digit()).next()?;
        str::from_utf8(digits).ok()?.parse().ok()
    });
    versions.max().unwrap_or(0)
}
