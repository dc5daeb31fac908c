//! Tar and gzip, byte for byte the same for the same contents.

use std::io::Write as _;

use anyhow::{Result, ensure};
use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};

use super::contents::Contents;

/// The size of a block, of which an archive consists.
const BLOCK: usize = 512;

/// An archive in the format ustar, without compression.
pub(super) struct Tar {
    bytes: Vec<u8>,
    /// The time of every entry, in seconds since 1970.
    time: u64,
}

impl Tar {
    pub(super) fn new(time: u64) -> Self {
        Self { bytes: Vec::new(), time }
    }

    /// Adds a directory; `owner` is its user and group.
    pub(super) fn directory(&mut self, path: &str, owner: u32) -> Result<()> {
        self.header(&format!("{path}/"), 0o755, owner, 0, b'5')
    }

    /// Adds a file of root.
    pub(super) fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<()> {
        self.header(path, mode, 0, content.len(), b'0')?;
        self.bytes.extend_from_slice(content);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
        Ok(())
    }

    fn header(&mut self, path: &str, mode: u32, owner: u32, size: usize, kind: u8) -> Result<()> {
        let mut header = [0; BLOCK];
        let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        ensure!(path.len() < 100, "{path} is too long for ustar");
        put(0, path);
        put(100, &format!("{mode:07o}"));
        put(108, &format!("{owner:07o}"));
        put(116, &format!("{owner:07o}"));
        put(124, &format!("{size:011o}"));
        put(136, &format!("{:011o}", self.time));
        // The checksum counts itself as spaces.
        put(148, "        ");
        put(257, "ustar\u{0}00");
        header[156] = kind;
        let sum: u32 = header.iter().copied().map(u32::from).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\u{0} ").as_bytes());
        self.bytes.extend_from_slice(&header);
        Ok(())
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        self.bytes
    }
}

/// Compresses without a name or time, so that the result depends on the content alone.
pub(super) fn gzip(bytes: &[u8], level: Compression) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), level);
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// Returns the SHA-256 of these bytes, in hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The binary with its manual pages, completions and unit.
pub(super) fn tarball(contents: &Contents) -> Result<(String, Vec<u8>)> {
    let name = format!("everturn-{}-{}-linux", contents.version, contents.machine.rust);
    let mut tar = Tar::new(contents.time);
    tar.directory(&name, 0)?;
    tar.file(&format!("{name}/everturn"), 0o755, &contents.binary)?;
    for (path, content) in contents.documents() {
        tar.file(&format!("{name}/{path}"), 0o644, content)?;
    }
    Ok((format!("{name}.tar.gz"), gzip(&tar.end(), contents.level)?))
}
