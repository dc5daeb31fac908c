//! Checks which module of the orchestrator may use which.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The modules of the orchestrator, each with those that it may use. Each uses only modules above it, so there are no
/// cycles.
const ALLOWED: [(&str, &[&str]); 52] = [
    ("cursor", &[]),
    ("retry_scope", &[]),
    ("json", &[]),
    ("memory", &[]),
    ("names", &[]),
    ("new_id", &[]),
    ("panic", &[]),
    ("runs", &[]),
    ("sync", &["panic"]),
    // A policy as it is saved with its turn.
    ("schedule", &[]),
    ("status", &[]),
    ("telemetry", &[]),
    // What the log tells about a turn.
    ("turn_log", &[]),
    // Open questions of tools; not how they are asked.
    ("question", &[]),
    ("tool", &["new_id", "question"]),
    // Who asks; not what may be seen.
    ("caller", &[]),
    ("clock", &["panic"]),
    // Storage does not know who drives a turn or sends requests.
    ("journal", &["cursor", "json", "memory", "panic"]),
    // The tools offered to turns, and how they are saved; not how calls are handled.
    ("toolbox", &["journal", "panic", "tool"]),
    ("state", &["journal"]),
    ("permission", &["journal", "panic", "state", "tool"]),
    // What conversations set for their model, and what that means for a turn.
    ("model_settings", &["journal", "state"]),
    ("reviewer", &[]),
    // Who summarizes, and when; not how a history is cut.
    ("compaction", &[]),
    // Reads failure events back.
    ("attempt", &["cursor", "journal"]),
    ("error", &["cursor", "journal"]),
    // What nodes tell each other; not what they do about it.
    ("cluster", &["clock", "cursor", "error", "journal", "new_id"]),
    // What nodes tell each other about targets.
    ("notice", &["cluster", "journal"]),
    ("health", &["journal", "notice", "state"]),
    // What callers used: collected, saved and told; not where it comes from.
    ("usage", &["clock", "error", "journal", "new_id", "permission", "state"]),
    // How a report is requested and validated; not when.
    ("report", &["error", "json", "permission"]),
    // Compares a request with what is known; starts nothing.
    ("request_history", &["error", "json"]),
    ("frame", &["cursor", "journal"]),
    ("timed_retry", &["clock", "health", "retry_scope", "telemetry"]),
    ("observer", &["frame", "panic"]),
    // What it wakes is behind a trait, so the timer knows no conversation.
    ("timer", &["clock", "panic", "runs", "telemetry"]),
    ("pacing", &["clock", "health", "journal", "notice", "runs", "state", "telemetry", "timer", "usage"]),
    ("log", &["cursor", "frame"]),
    ("route", &["journal"]),
    // The effective settings and their storage; not who follows them.
    ("retry_settings", &["error", "journal", "retry_scope", "schedule", "state"]),
    // The port to endpoints that calls are passed through to; nothing about who asks them.
    ("upstream", &[]),
    ("model", &["error", "names", "panic", "route", "upstream"]),
    // What is offered, and replaced as a whole; not who uses it.
    ("catalog", &["journal", "model", "route", "schedule", "upstream"]),
    ("shutdown", &["error"]),
    (
        "conversation",
        &[
            "attempt",
            "clock",
            "cluster",
            "cursor",
            "error",
            "frame",
            "journal",
            "retry_scope",
            "log",
            "memory",
            "model_settings",
            "observer",
            "permission",
            "question",
            "shutdown",
            "sync",
            "telemetry",
            "timer",
            "turn_log",
            "usage",
        ],
    ),
    (
        "registry",
        &[
            "clock",
            "cluster",
            "conversation",
            "error",
            "journal",
            "memory",
            "model_settings",
            "retry_settings",
        ],
    ),
    // It drives the conversation that it was given, and finds no other.
    (
        "session",
        &[
            "attempt",
            "catalog",
            "clock",
            "cluster",
            "compaction",
            "conversation",
            "cursor",
            "error",
            "frame",
            "pacing",
            "health",
            "journal",
            "json",
            "retry_scope",
            "log",
            "memory",
            "model",
            "new_id",
            "observer",
            "panic",
            "permission",
            "report",
            "request_history",
            "model_settings",
            "retry_settings",
            "reviewer",
            "route",
            "schedule",
            "timed_retry",
            "shutdown",
            "state",
            "status",
            "telemetry",
            "timer",
            "tool",
            "toolbox",
            "usage",
        ],
    ),
    // Passes calls through, by the rules of turns; knows no conversation.
    (
        "relay",
        &[
            "caller",
            "clock",
            "pacing",
            "health",
            "journal",
            "memory",
            "model",
            "names",
            "observer",
            "new_id",
            "panic",
            "model_settings",
            "retry_settings",
            "route",
            "timed_retry",
            "session",
            "shutdown",
            "state",
            "sync",
            "telemetry",
            "upstream",
            "usage",
        ],
    ),
    // Watching starts no session.
    (
        "subscription",
        &[
            "caller",
            "clock",
            "conversation",
            "cursor",
            "error",
            "frame",
            "journal",
            "registry",
            "shutdown",
            "telemetry",
        ],
    ),
    (
        "orchestrator",
        &[
            "attempt",
            "caller",
            "catalog",
            "clock",
            "cluster",
            "conversation",
            "cursor",
            "error",
            "request_history",
            "journal",
            "json",
            "retry_scope",
            "memory",
            "model",
            "new_id",
            "notice",
            "observer",
            "registry",
            "relay",
            "report",
            "model_settings",
            "retry_settings",
            "session",
            "shutdown",
            "status",
            "subscription",
            "timer",
            "upstream",
            "usage",
        ],
    ),
    // What one caller sees of the orchestrator, and all that transports see.
    (
        "view",
        &[
            "caller",
            "cursor",
            "error",
            "journal",
            "orchestrator",
            "relay",
            "status",
            "subscription",
            "upstream",
            "usage",
        ],
    ),
    (
        "builder",
        &[
            "catalog",
            "clock",
            "cluster",
            "compaction",
            "pacing",
            "health",
            "journal",
            "memory",
            "model",
            "observer",
            "orchestrator",
            "permission",
            "report",
            "model_settings",
            "retry_settings",
            "reviewer",
            "route",
            "schedule",
            "session",
            "state",
            "status",
            "telemetry",
            "tool",
            "toolbox",
            "upstream",
            "usage",
        ],
    ),
];

fn sources(under: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(under).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    found.collect()
}

/// Returns the files of modules that contain only tests.
fn tests_of(source: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(source).unwrap();
    let names =
        text.split("#[cfg(test)]\nmod ").skip(1).filter_map(|rest| rest.lines().next()?.strip_suffix(';'));
    names.map(|name| source.with_extension("").join(name).with_extension("rs")).collect()
}

/// Returns a source without tests and comments.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let lines = code.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

fn word(text: &str) -> String {
    text.trim_start().chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

/// Returns the first segments of the paths in braces, from after the opening brace.
fn in_braces(text: &str) -> Vec<String> {
    let (mut depth, mut from, mut found) = (0, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                found.push(word(&text[from..at]));
                from = at + 1;
                if letter == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    found.retain(|name| !name.is_empty());
    found
}

/// Returns what follows each `crate::`, up to the next `::`.
fn used(code: &str) -> BTreeSet<String> {
    let after = code.match_indices("crate::").map(|(at, found)| &code[at + found.len()..]);
    after
        .flat_map(|rest| match rest.strip_prefix('{') {
            Some(inside) => in_braces(inside),
            None => vec![word(rest)],
        })
        .collect()
}

/// Returns the names that the library exports, with their modules.
fn given_out(lib: &str) -> BTreeMap<String, String> {
    let uses = lib.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next()?.split_once("::"));
    let names = uses.flat_map(|(module, names)| {
        let names = names.split(|letter: char| !letter.is_alphanumeric()).filter(|name| !name.is_empty());
        names.map(|name| (name.to_owned(), module.to_owned())).collect::<Vec<_>>()
    });
    names.collect()
}

/// Returns the modules, and which others each uses.
fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("orchestrator/src");
    let given_out = given_out(&code(&fs::read_to_string(root.join("lib.rs")).unwrap()));
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let all = sources(&root);
    let tests: BTreeSet<_> = all.iter().flat_map(|source| tests_of(source)).collect();
    for source in all.iter().filter(|source| !tests.contains(*source)) {
        let first = source.strip_prefix(&root).unwrap().components().next().unwrap();
        let module = first.as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned();
        if module == "lib" {
            continue;
        }
        let used = used(&code(&fs::read_to_string(source).unwrap())).into_iter();
        let used = used.map(|name| given_out.get(&name).cloned().unwrap_or(name));
        let used = used.filter(|name| *name != module && !name.starts_with("everturn_"));
        arrows.entry(module.clone()).or_default().extend(used);
    }
    arrows
}

#[test]
fn a_module_of_the_orchestrator_uses_only_allowed_modules() {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.into_iter().collect();
    let arrows = arrows();
    assert!(arrows["session"].contains("conversation"), "arrows are found: {arrows:?}");
    for (module, used) in &arrows {
        let allowed = allowed.get(module.as_str()).unwrap_or_else(|| panic!("{module} has no place: add it"));
        for used in used {
            assert!(allowed.contains(&used.as_str()), "{module} must not use {used}");
        }
    }
}

#[test]
fn a_module_may_only_use_those_listed_above_it() {
    for (place, (module, used)) in ALLOWED.iter().enumerate() {
        for used in *used {
            assert!(ALLOWED[..place].iter().any(|(above, _)| above == used), "{module} uses {used}");
        }
    }
}

#[test]
fn uses_are_found_in_every_notation() {
    let text = "use crate::{\n a::{B, c::D}, E,\n};\nuse crate::f;\npub(in crate::g) fn h() { crate::i::j() } // crate::k\n";
    let found: Vec<_> = used(&code(text)).into_iter().collect();
    assert_eq!(found, ["E", "a", "f", "g", "i"]);
    let given = given_out("pub use a::B;\npub use c::{D, E};\n");
    assert_eq!((given["B"].as_str(), given["E"].as_str()), ("a", "c"));
}
