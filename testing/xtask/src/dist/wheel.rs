//! A Python wheel that carries the binary: `pip install everturn`.

use anyhow::Result;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use super::{contents::Contents, zip::Zip};

pub(super) fn make(contents: &Contents) -> Result<(String, Vec<u8>)> {
    let (version, machine) = (&contents.version, contents.machine.rust);
    // What the wheel runs on: a glibc that is new enough, or, without libraries, anything.
    let platforms = match contents.glibc {
        Some(minor) => vec![format!("manylinux_2_{minor}_{machine}")],
        None => vec![format!("manylinux_2_17_{machine}"), format!("musllinux_1_1_{machine}")],
    };
    let tags: String = platforms.iter().map(|platform| format!("Tag: py3-none-{platform}\n")).collect();
    let metadata = format!(
        "Metadata-Version: 2.1\nName: everturn\nVersion: {version}\n\
         Summary: LLM agent turns that survive transient provider failures\nLicense: MIT OR Apache-2.0\n\
         Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{}",
        contents.readme
    );
    let wheel = format!("Wheel-Version: 1.0\nGenerator: xtask\nRoot-Is-Purelib: false\n{tags}");
    let information = format!("everturn-{version}.dist-info");
    let mut files = vec![
        (format!("everturn-{version}.data/scripts/everturn"), 0o755, contents.binary.as_slice()),
        (format!("{information}/METADATA"), 0o644, metadata.as_bytes()),
        (format!("{information}/WHEEL"), 0o644, wheel.as_bytes()),
    ];
    let licences = contents.licences.iter();
    files.extend(
        licences.map(|(name, text)| (format!("{information}/licenses/{name}"), 0o644, text.as_slice())),
    );
    let record = format!("{information}/RECORD");
    let mut sums: String = files.iter().map(|(name, _, content)| sum(name, content)).collect();
    sums.push_str(&format!("{record},,\n"));
    files.push((record, 0o644, sums.as_bytes()));
    let mut zip = Zip::default();
    for (name, mode, content) in &files {
        zip.file(name, *mode, content, contents.level)?;
    }
    Ok((format!("everturn-{version}-py3-none-{}.whl", platforms.join(".")), zip.end()?))
}

/// Returns a line of the list of files.
fn sum(name: &str, content: &[u8]) -> String {
    let sum = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(content));
    format!("{name},sha256={sum},{}\n", content.len())
}
