//! Checks that the notes are true and the code stays readable.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::BTreeSet, fs, path::Path, process::Command};

/// Maximum length of a source file, without its tests.
const SOURCE_LINES: usize = 500;
/// The architecture must be readable in one sitting.
const ARCHITECTURE_LINES: usize = 150;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// Returns the committed files, relative to the root.
fn files() -> Vec<String> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).unwrap();
    let names = names.split_terminator('\0').map(str::to_owned);
    // Skips a file that was removed, when that is not committed yet.
    names.filter(|name| root().join(name).exists()).collect()
}

/// Returns a committed file's text; `None` for a binary file.
fn text(name: &str) -> Option<String> {
    String::from_utf8(fs::read(root().join(name)).unwrap()).ok()
}

/// Returns the words in single backticks outside of fenced blocks.
fn quoted(text: &str) -> Vec<&str> {
    let mut fenced = false;
    let prose = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    prose.flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
}

/// Whether a word can only be a path in the repository.
fn is_path(word: &str, top: &BTreeSet<&str>) -> bool {
    let plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
    let source = [".rs", ".mjs"].iter().any(|ending| word.ends_with(ending));
    let below = word.split_once('/').is_some_and(|(first, _)| top.contains(first));
    plain && !word.starts_with('/') && (source || below)
}

#[test]
fn every_path_in_the_prose_exists() {
    let files = files();
    let top: BTreeSet<&str> = files.iter().filter_map(|file| Some(file.split_once('/')?.0)).collect();
    let prose = files.iter().filter(|file| {
        let top_level = ["README.md", "tasks.md"].contains(&file.as_str());
        top_level
            || (["notes/", "docs/"].iter().any(|folder| file.starts_with(folder)) && file.ends_with(".md"))
    });
    for file in prose {
        for word in quoted(&text(file).unwrap()).into_iter().filter(|word| is_path(word, &top)) {
            assert!(root().join(word).exists(), "{file} names `{word}`, which does not exist");
        }
    }
}

/// Returns the targets of relative links outside of fenced blocks.
fn links(text: &str) -> Vec<&str> {
    let outside = text.split("```").step_by(2);
    let targets =
        outside.flat_map(|part| part.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0)));
    targets.filter(|target| !target.contains("://") && !target.starts_with('<')).collect()
}

/// Returns the anchors of a document's headings, as GitHub names them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings =
        text.lines().filter_map(|line| Some(line.strip_prefix('#')?.trim_start_matches('#').trim()));
    let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    headings
        .map(|heading| heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-"))
        .collect()
}

#[test]
fn every_link_in_the_prose_resolves() {
    let prose = files().into_iter().filter(|file| file.ends_with(".md") && !file.contains("/vendor/"));
    for file in prose {
        let (document, folder) = (text(&file).unwrap(), root().join(&file).parent().unwrap().to_owned());
        for link in links(&document) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { root().join(&file) } else { folder.join(path) };
            assert!(target.exists(), "{file} links to {link}, which does not exist");
            if !anchor.is_empty() {
                let headings = anchors(&fs::read_to_string(target).unwrap());
                assert!(headings.contains(anchor), "{file} links to {link}, which has no such heading");
            }
        }
    }
}

#[test]
fn links_and_anchors_are_read() {
    let document = "[a](b.md#c), [d](#e-f), <http://x>, [x](https://y)\n```\n[g](h)\n```\n![i](j.png)";
    assert_eq!(links(document), ["b.md#c", "#e-f", "j.png"]);
    assert!(anchors("# A\n\n## Retry settings, again").contains("retry-settings-again"));
}

#[test]
fn paths_are_distinguished_from_other_words() {
    let top = BTreeSet::from(["kernel", "wire"]);
    let words = quoted(
        "a `kernel/src/turn.rs` and\n```\n`kernel/fenced`\n```\n`cargo test`, `/ws`, `main/large`, `gone.rs`",
    );
    let paths: Vec<&str> = words.into_iter().filter(|word| is_path(word, &top)).collect();
    assert_eq!(paths, ["kernel/src/turn.rs", "gone.rs"]);
}

#[test]
fn the_property_test_of_the_readme_is_a_tested_one() {
    let (readme, example) = ("README.md", "kernel/examples/fake_sleep_property.rs");
    let [readme, example] = [readme, example].map(|file| text(file).unwrap());
    let quoted = readme.split("```").find(|block| block.contains("proptest! {")).unwrap();
    let (fence, code) = quoted.split_once('\n').unwrap();
    assert_eq!(fence, "rust,ignore", "it is run as an example, not as a doctest");
    assert!(example.contains(code), "the README quotes another test than the example runs:\n{code}");
}

#[test]
fn the_architecture_is_short() {
    if let Ok(text) = fs::read_to_string(root().join("notes/architecture.md")) {
        let lines = text.lines().count();
        assert!(
            lines <= ARCHITECTURE_LINES,
            "notes/architecture.md has {lines} lines, {ARCHITECTURE_LINES} is the most"
        );
    }
}

/// Returns the number of lines of a source file before its test module.
fn source_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let test = lines.windows(2).position(|pair| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod "));
    test.unwrap_or(lines.len())
}

#[test]
fn no_source_file_is_too_long() {
    let test = |file: &str| file.split('/').any(|part| part == "tests" || part == "tests.rs");
    let sources: Vec<String> =
        files().into_iter().filter(|file| file.ends_with(".rs") && !test(file)).collect();
    assert!(sources.len() > 10);
    for file in sources {
        let lines = source_lines(&text(&file).unwrap());
        assert!(
            lines <= SOURCE_LINES,
            "{file} has {lines} lines without its tests, {SOURCE_LINES} is the most: split it"
        );
    }
}

#[test]
fn the_prose_has_no_open_ends_and_names_nothing_outside() {
    // Concatenated so that this file does not contain them.
    let open = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    let outside = [concat!("/wo", "rk"), concat!("../sha", "red")];
    let word = |text: &str, words: &[&str]| {
        words.iter().any(|word| {
            text.match_indices(word).any(|(at, _)| {
                let before = text[..at].chars().next_back();
                let after = text[at + word.len()..].chars().next();
                let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
                !part(after) && (word.starts_with('/') || !part(before))
            })
        })
    };
    // Third-party files are copied unchanged.
    for file in files().into_iter().filter(|file| !file.starts_with("server/page/asset/vendor/")) {
        for (line, content) in text(&file).iter().flat_map(|text| text.lines()).enumerate() {
            assert!(!word(content, &open), "{file}:{} leaves something open", line + 1);
            assert!(!word(content, &outside), "{file}:{} names something outside the repository", line + 1);
        }
    }
}
