//! Zip archives, byte for byte the same for the same contents.

use std::io::Write as _;

use anyhow::Result;
use flate2::{Compression, Crc, write::DeflateEncoder};

/// 1980-01-01, the first day that the format knows.
const DATE: u16 = 0x0021;

#[derive(Default)]
pub(super) struct Zip {
    bytes: Vec<u8>,
    /// The directory at the end.
    directory: Vec<u8>,
    count: u16,
}

impl Zip {
    /// Adds a file with this Unix mode.
    pub(super) fn file(&mut self, name: &str, mode: u32, content: &[u8], level: Compression) -> Result<()> {
        let mut encoder = DeflateEncoder::new(Vec::new(), level);
        encoder.write_all(content)?;
        let packed = encoder.finish()?;
        let mut crc = Crc::new();
        crc.update(content);
        let begin = u32::try_from(self.bytes.len())?;

        // What both headers contain: version 2.0, no flags, deflate, time, date, checksum, sizes, lengths of name and extra field.
        let mut common = Vec::new();
        for number in [20, 0, 8, 0, DATE] {
            common.extend(number.to_le_bytes());
        }
        for number in [crc.sum(), u32::try_from(packed.len())?, u32::try_from(content.len())?] {
            common.extend(number.to_le_bytes());
        }
        common.extend(u16::try_from(name.len())?.to_le_bytes());
        common.extend([0; 2]);

        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(&common);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(&packed);
        // Made by Unix; no comment, first disk, not text, mode of a regular file, place.
        self.directory.extend(b"PK\x01\x02\x14\x03");
        self.directory.extend(&common);
        self.directory.extend([0; 6]);
        self.directory.extend(((0o100_000 | mode) << 16).to_le_bytes());
        self.directory.extend(begin.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.count += 1;
        Ok(())
    }

    pub(super) fn end(mut self) -> Result<Vec<u8>> {
        let begin = u32::try_from(self.bytes.len())?;
        self.bytes.extend(&self.directory);
        self.bytes.extend(b"PK\x05\x06\0\0\0\0");
        self.bytes.extend(self.count.to_le_bytes());
        self.bytes.extend(self.count.to_le_bytes());
        self.bytes.extend(u32::try_from(self.directory.len())?.to_le_bytes());
        self.bytes.extend(begin.to_le_bytes());
        self.bytes.extend([0; 2]);
        Ok(self.bytes)
    }
}
