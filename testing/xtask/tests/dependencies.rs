//! Checks licences, sources and bans of dependencies according to `deny.toml`. `cargo deny check` checks the same and
//! more, where it is installed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path, process::Command};

use serde_json::Value;
use spdx::{Expression, LicenseReq, ParseMode};
use toml::Table;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

fn rules() -> Table {
    fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap()
}

/// Returns all packages of the build, with any feature, for any system.
fn packages() -> Vec<Value> {
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--format-version=1", "--locked", "--all-features"]).current_dir(root());
    let metadata: Value = serde_json::from_slice(&metadata.output().unwrap().stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn words<'t>(rules: &'t Table, section: &str, list: &str) -> Vec<&'t str> {
    let list = rules[section][list].as_array().unwrap();
    list.iter().map(|word| word.as_str().unwrap_or_else(|| word["name"].as_str().unwrap())).collect()
}

fn is_allowed(licence: &str, allowed: &[&str]) -> bool {
    let expression = Expression::parse_mode(licence, ParseMode::LAX).unwrap();
    expression.evaluate(|needed: &LicenseReq| allowed.contains(&needed.to_string().as_str()))
}

#[test]
fn every_dependency_is_under_an_allowed_licence() {
    let rules = rules();
    let allowed = words(&rules, "licenses", "allow");
    let packages = packages();
    assert!(packages.len() > 200);
    for package in &packages {
        let (name, licence) = (&package["name"], package["license"].as_str());
        let licence = licence.unwrap_or_else(|| panic!("{name} names no licence"));
        assert!(is_allowed(licence, &allowed), "{name} is under {licence}: see deny.toml");
    }
    let is_used = |word: &&str| {
        packages.iter().any(|package| {
            let rest: Vec<&str> = allowed.iter().filter(|other| *other != word).copied().collect();
            package["license"].as_str().is_some_and(|licence| !is_allowed(licence, &rest))
        })
    };
    let unused: Vec<&&str> = allowed.iter().filter(|word| !is_used(word)).collect();
    assert!(unused.is_empty(), "no dependency needs {unused:?}: remove them from deny.toml");
}

#[test]
fn every_dependency_comes_from_the_registry_and_none_is_banned() {
    let rules = rules();
    let banned = words(&rules, "bans", "deny");
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        match package["source"].as_str() {
            Some(source) => assert!(source.starts_with("registry+"), "{name} comes from {source}"),
            None => {
                assert!(name == "xtask" || name.starts_with("everturn"), "{name} is not of this workspace");
            }
        }
        assert!(!banned.contains(&name), "{name} is banned in deny.toml");
    }
}
