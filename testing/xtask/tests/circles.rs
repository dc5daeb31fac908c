//! Checks that the modules of a crate have no import cycles: not at the top, and not inside any module.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// The segments of a module's path; none for the crate itself.
type Name = Vec<String>;

/// The modules of a crate: which uses which.
type Arrows = BTreeMap<Name, BTreeSet<Name>>;

/// The source files of a crate by module, without those of tests.
type Modules = BTreeMap<Name, String>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// Returns the folders with the sources of the workspace's crates.
fn crates() -> Vec<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version=1"]).current_dir(root());
    let metadata: Value = serde_json::from_slice(&cargo.output().unwrap().stdout).unwrap();
    let manifests = metadata["packages"].as_array().unwrap().iter().map(|package| &package["manifest_path"]);
    manifests
        .map(|path| Path::new(path.as_str().unwrap()).with_file_name("src"))
        .filter(|src| src.is_dir())
        .collect()
}

fn read(folder: &Path, name: &Name, modules: &mut Modules) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if path.is_dir() {
            read(&path, &[name.as_slice(), &[stem.to_owned()]].concat(), modules);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let is_root = name.is_empty() && ["lib", "main"].contains(&stem);
            let name = if is_root { Name::new() } else { [name.as_slice(), &[stem.to_owned()]].concat() };
            modules.insert(name, fs::read_to_string(path).unwrap());
        }
    }
}

/// Reads a crate, without its tests and comments.
fn modules(src: &Path) -> Modules {
    let mut modules = Modules::new();
    read(src, &Name::new(), &mut modules);
    let mut tests = BTreeSet::new();
    for (name, source) in &modules {
        for rest in source.split("#[cfg(test)]\nmod ").skip(1) {
            let module = word(rest);
            if rest[module.len()..].starts_with(';') {
                tests.insert([name.as_slice(), &[module]].concat());
            }
        }
    }
    modules.retain(|name, _| !(1..=name.len()).any(|length| tests.contains(&name[..length])));
    for source in modules.values_mut() {
        let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
        *source = code.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n");
    }
    modules
}

fn word(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

/// Returns the paths in a tree of imports such as `a::{b, c::D}`, after a prefix. Stops where the tree ends.
fn paths(prefix: &Name, text: &str, found: &mut Vec<Name>) {
    let mut path = prefix.clone();
    let mut rest = text.trim_start();
    loop {
        if let Some(list) = rest.strip_prefix('{') {
            return items(list).iter().for_each(|item| paths(&path, item, found));
        }
        let segment = word(rest);
        if segment.is_empty() {
            break;
        }
        rest = &rest[segment.len()..];
        match segment.as_str() {
            "self" => {}
            "super" => drop(path.pop()),
            _ => path.push(segment),
        }
        let Some(after) = rest.strip_prefix("::") else { break };
        rest = after;
    }
    found.push(path);
}

/// Splits a list at the commas of its own level, up to its closing brace.
fn items(list: &str) -> Vec<&str> {
    let (mut depth, mut from, mut found) = (0, 0, Vec::new());
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                found.push(list[from..at].trim());
                from = at + 1;
                if letter == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    found.retain(|item| !item.is_empty());
    found
}

/// Returns the paths within the crate that a module mentions.
fn used(module: &Name, code: &str) -> Vec<Name> {
    let mut found = Vec::new();
    for (start, prefix) in [("crate::", Vec::new()), ("super::", parent(module)), ("self::", module.clone())]
    {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back().unwrap_or(' ');
            // The first segment of a path alone says where it begins.
            if !before.is_alphanumeric() && !matches!(before, '_' | ':' | '$') {
                paths(&prefix, &code[at + start.len()..], &mut found);
            }
        }
    }
    found
}

fn parent(module: &Name) -> Name {
    module[..module.len().saturating_sub(1)].to_vec()
}

/// Returns what each module gives out by `pub use`, with the path that it comes from.
fn exported(modules: &Modules) -> BTreeMap<Name, Name> {
    let mut exported = BTreeMap::new();
    for (module, code) in modules {
        for rest in code.split("pub").skip(1) {
            let rest =
                if rest.starts_with('(') { rest.split_once(')').map_or("", |(_, rest)| rest) } else { rest };
            let Some(tree) = rest.trim_start().strip_prefix("use ") else { continue };
            let prefix = match () {
                () if tree.starts_with("crate::") => Name::new(),
                () if tree.starts_with("super::") => parent(module),
                () => module.clone(),
            };
            let tree = tree.strip_prefix("crate::").or_else(|| tree.strip_prefix("super::")).unwrap_or(tree);
            let mut found = Vec::new();
            paths(&prefix, tree, &mut found);
            for path in found.into_iter().filter(|path| !path.is_empty()) {
                exported.insert([module.as_slice(), &path[path.len() - 1..]].concat(), path);
            }
        }
    }
    exported
}

/// Returns the module in which what a path names is written.
fn owner(path: &Name, modules: &Modules, exported: &BTreeMap<Name, Name>) -> Name {
    let mut path = path.clone();
    // A chain of exports has an end, unless it is one that only looks like it.
    for _ in 0..8 {
        let length =
            (0..=path.len()).rev().find(|length| modules.contains_key(&path[..*length])).unwrap_or(0);
        let given = path.get(..=length).and_then(|name| exported.get(name));
        match given {
            Some(from) if !path.starts_with(from) => path = [from.as_slice(), &path[length + 1..]].concat(),
            _ => return path[..length].to_vec(),
        }
    }
    path
}

fn arrows(modules: &Modules) -> Arrows {
    let exported = exported(modules);
    let owners = |module, code| {
        used(module, code).iter().map(|path| owner(path, modules, &exported)).collect::<BTreeSet<_>>()
    };
    modules.iter().map(|(module, code)| (module.clone(), owners(module, code))).collect()
}

/// Returns which children of a module use which others.
fn between(arrows: &Arrows, inside: &[String]) -> BTreeMap<String, BTreeSet<String>> {
    let child = |name: &Name| name.strip_prefix(inside).and_then(<[_]>::first).cloned();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (from, targets) in arrows {
        let Some(from) = child(from) else { continue };
        found
            .entry(from.clone())
            .or_default()
            .extend(targets.iter().filter_map(child).filter(|to| *to != from));
    }
    found
}

/// Returns the groups of modules that use each other, directly or through others of the group.
fn circles(uses: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reached = |from: &String| {
        let (mut found, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(at) = open.pop() {
            for to in uses.get(at).into_iter().flatten() {
                if found.insert(to) {
                    open.push(to);
                }
            }
        }
        found
    };
    let reached: BTreeMap<_, _> = uses.keys().map(|from| (from, reached(from))).collect();
    let circle = |module: &&String| {
        let back = reached[*module]
            .iter()
            .filter(|other| reached.get(**other).is_some_and(|they| they.contains(*module)));
        back.map(|name| (**name).clone()).collect::<Vec<_>>()
    };
    reached.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

#[test]
fn modules_have_no_cycles() {
    let crates = crates();
    assert!(crates.len() > 15, "{crates:?}");
    let (mut found, mut count) = (BTreeSet::new(), 0);
    for src in crates {
        let name = src.parent().unwrap().strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        let modules = modules(&src);
        let arrows = arrows(&modules);
        let rooms: BTreeSet<Name> = modules.keys().map(parent).collect();
        for room in rooms {
            let uses = between(&arrows, &room);
            count += uses.values().map(BTreeSet::len).sum::<usize>();
            found.extend(circles(&uses).into_iter().map(|circle| (name.clone(), room.join("::"), circle)));
        }
    }
    assert!(count > 500, "imports are found: {count}");
    assert!(found.is_empty(), "modules that use each other: {found:#?}");
}

#[test]
fn a_cycle_is_found_wherever_it_is() {
    let module =
        |path: &str| path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect::<Name>();
    let sources = [
        ("", "mod a;\nmod b;\npub use a::{A, Other};\n"),
        ("a", "use crate::b::B;\n"),
        ("b", "use crate::{A, c};\n"),
        ("c", "fn f() { self::d::g(); }"),
        ("c::d", "use super::e::{f, g};\n"),
        ("c::e", "pub(super) fn h() { super::super::c::d::i() }"),
    ];
    let modules: Modules = sources.map(|(name, code)| (module(name), code.to_owned())).into();
    let arrows = arrows(&modules);
    assert_eq!(circles(&between(&arrows, &[])), BTreeSet::from([module("a::b")]));
    assert_eq!(circles(&between(&arrows, &module("c"))), BTreeSet::from([module("d::e")]));
    let uses = BTreeMap::from([
        ("a".to_owned(), BTreeSet::from(["b".to_owned()])),
        ("b".to_owned(), BTreeSet::new()),
    ]);
    assert!(circles(&uses).is_empty());
}
