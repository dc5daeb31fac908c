//! A package for Debian: an `ar` archive of two tarballs.

use anyhow::Result;

use super::{
    archive::{Tar, gzip},
    contents::Contents,
};

/// Where the package puts the binary. The unit in the repository is for binaries that are installed by hand.
const BINARY: &str = "/usr/bin/everturn";
const BINARY_BY_HAND: &str = "/usr/local/bin/everturn";

pub(super) fn make(contents: &Contents) -> Result<(String, Vec<u8>)> {
    let name = format!("everturn_{}_{}.deb", contents.version, contents.machine.debian);
    let (data, size) = data(contents)?;
    let mut control = Tar::new(contents.time);
    control.file("./control", 0o644, description(contents, size).as_bytes())?;
    let mut deb = b"!<arch>\n".to_vec();
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", gzip(&control.end(), contents.level)?),
        ("data.tar.gz", gzip(&data, contents.level)?),
    ];
    for (name, member) in members {
        deb.extend(
            format!("{name:<16}{:<12}0     0     100644  {:<10}`\n", contents.time, member.len()).bytes(),
        );
        deb.extend_from_slice(&member);
        deb.resize(deb.len().next_multiple_of(2), b'\n');
    }
    Ok((name, deb))
}

/// Returns the files, and their size in bytes.
fn data(contents: &Contents) -> Result<(Vec<u8>, usize)> {
    let mut files: Vec<(String, u32, Vec<u8>)> = vec![(BINARY.to_owned(), 0o755, contents.binary.clone())];
    let [bash, zsh, fish] = &contents.completions;
    let completions = [
        ("/usr/share/bash-completion/completions/everturn", bash),
        ("/usr/share/zsh/vendor-completions/_everturn", zsh),
        ("/usr/share/fish/vendor_completions.d/everturn.fish", fish),
    ];
    files.extend(completions.map(|(path, (_, script))| (path.to_owned(), 0o644, script.clone())));
    for (name, page) in &contents.manuals {
        files.push((format!("/usr/share/man/man1/{name}.gz"), 0o644, gzip(page, contents.level)?));
    }
    let unit = String::from_utf8_lossy(&contents.unit).replace(BINARY_BY_HAND, BINARY);
    files.push(("/usr/lib/systemd/system/everturn.service".to_owned(), 0o644, unit.into_bytes()));
    let copyright = contents.licences.iter().flat_map(|(_, text)| [text.as_slice(), b"\n"]).flatten();
    files.push(("/usr/share/doc/everturn/copyright".to_owned(), 0o644, copyright.copied().collect()));
    files.sort();

    let mut tar = Tar::new(contents.time);
    let mut directories: Vec<String> = Vec::new();
    for (path, mode, content) in &files {
        for (at, _) in path.match_indices('/').skip(1) {
            let parent = format!(".{}", &path[..at]);
            if !directories.contains(&parent) {
                tar.directory(&parent, 0)?;
                directories.push(parent);
            }
        }
        tar.file(&format!(".{path}"), *mode, content)?;
    }
    Ok((tar.end(), files.iter().map(|(_, _, content)| content.len()).sum()))
}

fn description(contents: &Contents, size: usize) -> String {
    let depends = match contents.glibc {
        Some(minor) => format!("Depends: libc6 (>= 2.{minor}), libgcc-s1\n"),
        None => String::new(),
    };
    format!(
        "Package: everturn\nVersion: {}\nArchitecture: {}\nMaintainer: The Everturn authors\nSection: net\n\
         Priority: optional\nInstalled-Size: {}\n{depends}Recommends: ca-certificates\n\
         Description: LLM agent turns that survive transient provider failures\n \
         A server with a web page, a terminal client, an HTTP and WebSocket API, and endpoints\n \
         for OpenAI clients, useChat and CopilotKit.\n",
        contents.version,
        contents.machine.debian,
        size.div_ceil(1024),
    )
}
