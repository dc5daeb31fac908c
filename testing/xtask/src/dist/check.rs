//! Installs each artifact into an empty environment, and runs the demo there.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde_json::Value;

use super::{Artifacts, archive::sha256, oci};
use crate::step::output;

/// Installs everything below `folder`, then runs all demos at once: each waits for the better part of 20 s.
pub(super) fn all(artifacts: &Artifacts, folder: &Path) -> Result<()> {
    output(
        Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(&artifacts.folder),
    )
    .context("the checksums")?;
    let place = |name: &str| -> Result<PathBuf> {
        let place = folder.join(name);
        if place.exists() {
            fs::remove_dir_all(&place)?;
        }
        fs::create_dir_all(&place)?;
        Ok(place)
    };
    let installed = [
        ("tarball", tarball(artifacts, &place("tarball")?)),
        ("deb", deb(artifacts, &place("deb")?)),
        ("wheel", wheel(artifacts, &place("wheel")?)),
        ("npm", npm(artifacts, &place("npm")?)),
        ("image", image(artifacts, &place("image")?)),
    ];
    let mut demos = Vec::new();
    for (name, installed) in installed {
        let command = installed.with_context(|| format!("the {name} cannot be installed"))?;
        let home = place(&format!("{name}-home"))?;
        demos.push((name, thread::spawn(move || demo(command, &home))));
    }
    for (name, demo) in demos {
        demo.join()
            .map_err(|_| anyhow!("a panic"))
            .flatten()
            .with_context(|| format!("the demo of the {name}"))?;
        println!("the demo runs from the {name}");
    }
    Ok(())
}

/// Runs the demo without any of this environment's variables. It fails twice on purpose.
fn demo(mut command: Command, home: &Path) -> Result<()> {
    let events = output(command.env("HOME", home).args(["run", "--json", "hello"]))?;
    let types: Vec<Value> = events.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let count = |kind: &str| types.iter().filter(|event| event["type"] == kind).count();
    ensure!(count("provider-retry") == 2 && count("done") == 1, "the turn did not go as it should: {events}");
    Ok(())
}

/// A command with no environment but its own.
fn alone(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    command
}

fn tarball(artifacts: &Artifacts, place: &Path) -> Result<Command> {
    unpack(&artifacts.folder.join(&artifacts.tarball), place)?;
    let folder = place.join(artifacts.tarball.trim_end_matches(".tar.gz"));
    for document in ["man/everturn.1", "completions/_everturn", "completions/everturn.fish", "LICENSE-MIT"] {
        ensure!(folder.join(document).is_file(), "it lacks {document}");
    }
    output(Command::new("bash").arg("-n").arg(folder.join("completions/everturn.bash")))?;
    Ok(alone(&folder.join("everturn")))
}

fn deb(artifacts: &Artifacts, place: &Path) -> Result<Command> {
    let deb = artifacts.folder.join(&artifacts.deb);
    let field = output(Command::new("dpkg-deb").arg("--field").arg(&deb).arg("Version"))?;
    ensure!(field.trim() == artifacts.version, "its version is {field}");
    output(Command::new("dpkg-deb").arg("--extract").arg(&deb).arg(place))?;
    for file in ["share/man/man1/everturn.1.gz", "lib/systemd/system/everturn.service"] {
        ensure!(place.join("usr").join(file).is_file(), "it lacks {file}");
    }
    Ok(alone(&place.join("usr/bin/everturn")))
}

fn wheel(artifacts: &Artifacts, place: &Path) -> Result<Command> {
    output(Command::new("python3").args(["-m", "venv"]).arg(place))?;
    let mut install = Command::new(place.join("bin/pip"));
    install.args(["install", "--no-index", "--no-cache-dir", "--disable-pip-version-check"]);
    output(install.arg(artifacts.folder.join(&artifacts.wheel)))?;
    Ok(alone(&place.join("bin/everturn")))
}

fn npm(artifacts: &Artifacts, place: &Path) -> Result<Command> {
    let mut install = Command::new("npm");
    install.args(["install", "--offline", "--no-audit", "--no-fund"]).current_dir(place);
    output(install.env("npm_config_cache", place.join("cache")).arg(artifacts.folder.join(&artifacts.npm)))?;
    Ok(alone(&place.join("node_modules/.bin/everturn")))
}

/// Unpacks the image as an engine does, and returns its command in a root of its own.
fn image(artifacts: &Artifacts, place: &Path) -> Result<Command> {
    let (image, root) = (place.join("image"), place.join("root"));
    fs::create_dir_all(&image)?;
    fs::create_dir_all(&root)?;
    unpack(&artifacts.folder.join(&artifacts.image), &image)?;
    let index: Value = serde_json::from_slice(&fs::read(image.join("index.json"))?)?;
    let manifest: Value = serde_json::from_slice(&fs::read(blob(&image, &index["manifests"][0])?)?)?;
    for layer in manifest["layers"].as_array().context("no layers")? {
        unpack(&blob(&image, layer)?, &root)?;
    }
    let config: Value = serde_json::from_slice(&fs::read(blob(&image, &manifest["config"])?)?)?;
    let config = &config["config"];
    let program = config["Entrypoint"][0].as_str().context("no entry point")?;
    let mut command;
    if output(Command::new("id").arg("-u"))?.trim() == "0" {
        command = alone(Path::new("/usr/sbin/chroot"));
        command.arg(format!("--userspec={0}:{0}", oci::USER));
    } else {
        command = alone(Path::new("/usr/bin/unshare"));
        command.args(["--map-root-user", "--root"]);
    }
    for variable in config["Env"].as_array().context("no environment")? {
        let (name, value) = variable.as_str().and_then(|set| set.split_once('=')).context("a variable")?;
        command.env(name, value);
    }
    command.arg(root).arg(program);
    Ok(command)
}

/// Returns the file to which a descriptor refers, if its content is right.
fn blob(image: &Path, descriptor: &Value) -> Result<PathBuf> {
    let digest = descriptor["digest"].as_str().unwrap_or_default();
    let Some(sum) = digest.strip_prefix("sha256:") else { bail!("{digest:?} is not a digest") };
    let path = image.join("blobs/sha256").join(sum);
    let content = fs::read(&path)?;
    ensure!(sha256(&content) == sum && descriptor["size"] == content.len(), "{} is damaged", path.display());
    Ok(path)
}

fn unpack(archive: &Path, place: &Path) -> Result<()> {
    output(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(place)).map(drop)
}
