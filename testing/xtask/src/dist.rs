//! `cargo xtask dist`: what is released, made without a network and without a container engine.

mod archive;
mod check;
mod contents;
mod deb;
mod npm;
mod oci;
mod wheel;
mod zip;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use flate2::Compression;

use crate::{
    step::{output, run},
    workspace,
};
use contents::Contents;

/// The target of a binary without dependencies, and the C compiler that building for it needs.
const STATIC: &str = "x86_64-unknown-linux-musl";
const STATIC_COMPILER: &str = "musl-gcc";

/// Builds the binary as it is released, and makes every artifact of it. Prints where they are.
pub(crate) fn build(root: &Path) -> Result<()> {
    let target = target_directory(root)?;
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--profile", "dist", "--locked", "--package", "everturn", "--features", "full"]);
    let built = if can_link_statically() {
        command.args(["--target", STATIC]);
        target.join(STATIC).join("dist/everturn")
    } else {
        println!(
            "the binary will need glibc: a static one needs `rustup target add {STATIC}` and {STATIC_COMPILER}"
        );
        target.join("dist/everturn")
    };
    run(command.current_dir(root))?;
    let folder = target.join("artifacts");
    make(root, &built, &folder, Compression::best())?;
    println!("{}", folder.display());
    Ok(())
}

/// Makes every artifact of a binary that is built already, installs each into an empty environment, and runs the demo there.
pub(crate) fn check(root: &Path, binary: &Path) -> Result<()> {
    let folder = target_directory(root)?.join("artifacts-check");
    let artifacts = make(root, binary, &folder.join("artifacts"), Compression::fast())?;
    check::all(&artifacts, &folder)
}

/// The artifacts of one release.
struct Artifacts {
    folder: PathBuf,
    /// The version, as in the names of the files.
    version: String,
    tarball: String,
    deb: String,
    wheel: String,
    npm: String,
    image: String,
}

/// Makes the artifacts in a folder, which is emptied first.
fn make(root: &Path, binary: &Path, folder: &Path, level: Compression) -> Result<Artifacts> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(folder)?;
    let contents = Contents::read(root, binary, folder, level)?;
    let mut sums = String::new();
    let mut write = |(name, bytes): (String, Vec<u8>)| -> Result<String> {
        let path = folder.join(&name);
        fs::write(&path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
        // As `sha256sum --check` reads them.
        sums.push_str(&format!("{}  {name}\n", archive::sha256(&bytes)));
        println!("{:6.1} MB  {name}", bytes.len() as f64 / 1e6);
        Ok(name)
    };
    let tarball = write(archive::tarball(&contents)?)?;
    let deb = write(deb::make(&contents)?)?;
    let wheel = write(wheel::make(&contents)?)?;
    let npm = write(npm::make(&contents)?)?;
    let image = write(oci::make(&contents)?)?;
    fs::write(folder.join("SHA256SUMS"), sums)?;
    Ok(Artifacts { folder: folder.to_owned(), version: contents.version, tarball, deb, wheel, npm, image })
}

fn can_link_statically() -> bool {
    let has_target = output(Command::new("rustc").args(["--print", "target-libdir", "--target", STATIC]))
        .is_ok_and(|folder| Path::new(folder.trim()).is_dir());
    has_target && output(Command::new(STATIC_COMPILER).arg("--version")).is_ok()
}

fn target_directory(root: &Path) -> Result<PathBuf> {
    workspace::metadata(root).map(|metadata| workspace::target(&metadata))
}
