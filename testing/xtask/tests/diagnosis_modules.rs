//! Checks that the top-level modules of a crate have no import cycle.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The crates without cycles among their modules.
const CRATES: [&str; 1] = ["provider/diagnosis"];

/// Which module uses which, and where.
type Arrows = BTreeMap<String, BTreeMap<String, PathBuf>>;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Returns the first path segments below `crate::` in a source: `a` and `b` of `use crate::{a::x, b}`.
fn used(source: &str) -> BTreeSet<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let code: String =
        source.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    let mut names = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            names.insert(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut begins = true;
        for (at, letter) in list.char_indices() {
            match letter {
                '}' if depth == 0 => break,
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                _ if begins && letter.is_alphanumeric() => {
                    names.insert(word(&list[at..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    names
}

/// Returns the module of each name that the crate root re-exports: `Evidence` comes from `evidence`.
fn exported(root: &str) -> BTreeMap<String, String> {
    let uses = root.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next()?.split_once("::"));
    let names = uses.flat_map(|(module, names)| {
        names.trim_matches(['{', '}']).split(',').map(|name| (name.trim().to_owned(), module.to_owned()))
    });
    names.collect()
}

fn arrows(krate: &str) -> Arrows {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join(krate).join("src");
    let exported = exported(&fs::read_to_string(folder.join("lib.rs")).unwrap());
    let mut files = Vec::new();
    sources(&folder, &mut files);
    let mut arrows = Arrows::new();
    for file in files {
        let inside = file.strip_prefix(&folder).unwrap();
        let module = inside.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        if module == "lib" {
            continue;
        }
        let names = used(&fs::read_to_string(&file).unwrap());
        let targets = names.into_iter().map(|name| exported.get(&name).cloned().unwrap_or(name));
        let arrows = arrows.entry(module.clone()).or_default();
        arrows.extend(targets.filter(|target| *target != module).map(|target| (target, file.clone())));
    }
    arrows
}

/// Returns a cycle through `at`, if there is one.
fn circle(arrows: &Arrows, path: &mut Vec<String>, done: &mut BTreeSet<String>) -> Option<Vec<String>> {
    let at = path.last().unwrap().clone();
    for target in arrows.get(&at).into_iter().flat_map(BTreeMap::keys) {
        if let Some(from) = path.iter().position(|module| module == target) {
            return Some(path[from..].to_vec());
        }
        if !done.contains(target) {
            path.push(target.clone());
            if let Some(found) = circle(arrows, path, done) {
                return Some(found);
            }
            path.pop();
        }
    }
    done.insert(at);
    None
}

fn check(arrows: &Arrows) -> Option<String> {
    let mut done = BTreeSet::new();
    let found = arrows.keys().find_map(|module| circle(arrows, &mut vec![module.clone()], &mut done))?;
    let steps = found.iter().zip(found.iter().cycle().skip(1));
    let steps = steps.map(|(from, to)| format!("{from} uses {to} in {}", arrows[from][to].display()));
    Some(steps.collect::<Vec<_>>().join("\n"))
}

#[test]
fn modules_have_no_cycles() {
    for krate in CRATES {
        let arrows = arrows(krate);
        let count: usize = arrows.values().map(BTreeMap::len).sum();
        assert!(arrows.len() > 5 && count > 10, "{krate} was not read: {arrows:?}");
        assert_eq!(check(&arrows), None, "{krate}");
    }
}

#[test]
fn a_cycle_is_found() {
    let uses = |from: &str, to: &[&str]| {
        (from.to_owned(), to.iter().map(|to| ((*to).to_owned(), PathBuf::from(from))).collect())
    };
    let arrows =
        Arrows::from([uses("a", &["b", "c"]), uses("b", &["d"]), uses("d", &["c", "b"]), uses("c", &[])]);
    assert_eq!(check(&arrows).unwrap(), "b uses d in b\nd uses b in d");
    assert_eq!(used("use crate::{a::{x, y}, B, c};\nlet z = crate::d::e();").len(), 4);
}
