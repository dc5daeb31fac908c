//! Links packed relocations where the system's loader reads them: 1.7 of 26 MB otherwise say only which addresses are relative.

use std::{env, process::Command};

/// The first glibc whose loader reads them.
const GLIBC: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|set| set == value);
    let is_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    // Of another machine, nobody knows the version.
    let is_for_here = env::var("HOST").is_ok_and(|host| is("TARGET", &host));
    if is_glibc && is_for_here && glibc().is_some_and(|version| version >= GLIBC) {
        // Linkers that do not know it ignore it, with a warning.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns the version of this machine's glibc.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
