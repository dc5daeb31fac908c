//! Bugs planted in what was told: each is found, and nothing is found without one. And the verdict is that of a search.

mod search;

use Outcome::{Stale, Stored, Unknown};
use Told::{Listed, Loaded, Read, Removed};

use super::*;

fn one(journal: usize, began: u64, ended: u64, told: Told) -> Operation {
    Operation { journal, began, ended, told, may_lag: false }
}

fn append(mark: &str, expected: u64, outcome: Outcome) -> Told {
    Told::Appended(Append { mark: mark.to_owned(), expected: Version(expected), outcome })
}

fn loaded(version: u64, mark: &str) -> Told {
    Loaded(Some((Version(version), mark.to_owned())))
}

fn read(from: Option<&str>, marks: &[&str]) -> Told {
    let marks = marks.iter().map(|mark| (*mark).to_owned()).collect();
    Read { from: from.map(str::to_owned), marks }
}

/// Two journals use a conversation, which is removed and begun again.
fn history() -> Vec<Operation> {
    vec![
        one(0, 1, 4, append("a", 0, Stored(Version(10)))),
        one(1, 2, 5, append("b", 0, Stale(Version(10)))),
        one(1, 6, 7, loaded(10, "a")),
        one(1, 8, 11, append("c", 10, Stored(Version(12)))),
        one(0, 9, 12, append("d", 10, Stale(Version(12)))),
        one(3, 13, 14, loaded(12, "c")),
        // Stored after it was given up.
        one(0, 15, 17, append("e", 12, Unknown)),
        one(1, 18, 19, loaded(12, "c")),
        one(1, 20, 21, loaded(15, "e")),
        one(1, 22, 23, append("f", 15, Stored(Version(17)))),
        // Never stored.
        one(0, 24, 25, append("u", 17, Unknown)),
        one(0, 26, 27, read(None, &["a", "c", "e", "f"])),
        one(1, 28, 33, Removed(Some(true))),
        one(0, 29, 30, read(Some("c"), &["c", "e", "f"])),
        one(0, 31, 32, append("g", 17, Stale(Version(0)))),
        one(0, 34, 35, Loaded(None)),
        one(0, 36, 39, append("h", 0, Stored(Version(20)))),
        one(1, 37, 38, Listed(None)),
        one(1, 40, 41, Listed(Some("h".to_owned()))),
        one(1, 42, 43, append("i", 17, Stale(Version(20)))),
        one(2, 44, 45, loaded(20, "h")),
        one(2, 46, 47, read(Some("a"), &["h"])),
    ]
}

/// Replaces what was told in the operation that began at this time.
fn tell(history: &mut [Operation], began: u64, told: Told) {
    history.iter_mut().find(|one| one.began == began).unwrap().told = told;
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    assert_eq!(check(&history()), Vec::<String>::new());
    assert_eq!(check(&[]), Vec::<String>::new());
}

/// The last append before the removal lost its answer and was read, but never loaded.
#[test]
fn a_refusal_may_name_a_version_that_nobody_else_was_told() {
    let mut history = history();
    tell(&mut history, 24, append("u", 17, Unknown));
    tell(&mut history, 26, read(None, &["a", "c", "e", "f", "u"]));
    tell(&mut history, 29, append("j", 17, Stale(Version(18))));
    assert_eq!(check(&history), Vec::<String>::new());
    // But not before that append began.
    tell(&mut history, 13, append("k", 10, Stale(Version(18))));
    assert!(check(&history).iter().any(|found| found.contains("is older than journal 3 from 13 to 14")));
}

type Bug = (&'static str, fn(&mut Vec<Operation>), &'static str);

/// What is wrong, how it is planted, and what is said about it.
const BUGS: [Bug; 23] = [
    (
        "an append at an old version is accepted",
        |all| all.push(one(0, 50, 51, append("x", 10, Stored(Version(30))))),
        "both follow version 10",
    ),
    (
        "two first appends are accepted",
        |all| {
            all.retain(|one| one.began < 28);
            all.push(one(0, 50, 51, append("x", 0, Stored(Version(30)))));
        },
        "all begin it",
    ),
    (
        "two appends get one version",
        |all| all.push(one(0, 50, 51, append("x", 20, Stored(Version(20))))),
        "both have version 20",
    ),
    (
        "an append gets an older version than the one before",
        |all| all.push(one(0, 50, 51, append("x", 20, Stored(Version(18))))),
        "version 18 follows version 20",
    ),
    (
        "an append for the removed conversation is stored in the new one",
        |all| tell(all, 42, append("i", 17, Stored(Version(21)))),
        "version 20 follows version 21",
    ),
    (
        "a refused append is stored",
        |all| tell(all, 46, read(Some("a"), &["h", "i"])),
        "i is read, and was told Stale(Version(20))",
    ),
    (
        "an append that was told not to be stored is",
        |all| tell(all, 15, append("e", 12, Outcome::NotStored)),
        "e is read, and was told NotStored",
    ),
    (
        "an acknowledged append is lost",
        |all| tell(all, 26, read(None, &["a", "c", "e"])),
        "is older than journal 1 from 22 to 23",
    ),
    (
        "an acknowledged append is lost, and others follow the one before",
        |all| tell(all, 24, append("u", 15, Stored(Version(18)))),
        "both follow version 15",
    ),
    (
        "an append is lost that others followed",
        |all| {
            tell(all, 20, loaded(12, "c"));
            tell(all, 26, read(None, &["a", "c", "f"]));
            tell(all, 29, read(Some("c"), &["c", "f"]));
        },
        "f follows version 15, which is lost",
    ),
    ("a load is outdated", |all| tell(all, 13, loaded(10, "a")), "is older than journal 0 from 9 to 12"),
    (
        "a load has the version of one append and the content of another",
        |all| tell(all, 13, loaded(12, "a")),
        "a has the versions 10 and 12",
    ),
    ("a load goes back", |all| tell(all, 44, loaded(17, "f")), "is older than journal 1 from 42 to 43"),
    (
        "a load has what is appended later",
        |all| tell(all, 6, loaded(12, "c")),
        "is older than journal 1 from 6 to 7",
    ),
    (
        "an append whose outcome is unknown is read before it began",
        |all| tell(all, 13, loaded(15, "e")),
        "is older than journal 3 from 13 to 14",
    ),
    ("a refusal is outdated", |all| tell(all, 42, append("i", 15, Stale(Version(17)))), "is older than"),
    (
        "an append is refused at its own version",
        |all| tell(all, 9, append("d", 10, Stale(Version(10)))),
        "refused although that is the version",
    ),
    (
        "a refusal names a version that never was",
        |all| tell(all, 9, append("d", 10, Stale(Version(11)))),
        "nobody stored that version",
    ),
    (
        "a reading lacks one in the middle",
        |all| tell(all, 26, read(None, &["a", "e", "f"])),
        r#"stored is ["a", "c", "e", "f"]"#,
    ),
    (
        "a reading has what was removed",
        |all| tell(all, 46, read(None, &["a", "c", "e", "f", "h"])),
        r#"stored is ["h"]"#,
    ),
    (
        "a reading has what nobody wrote",
        |all| tell(all, 46, read(None, &["h", "z"])),
        "z is read, which nobody appended",
    ),
    (
        "it is there after its removal",
        |all| tell(all, 34, loaded(17, "f")),
        "is older than journal 0 from 31 to 32",
    ),
    ("it is not there before its removal", |all| tell(all, 13, Loaded(None)), "is older than"),
];

#[test]
fn each_planted_bug_is_found() {
    for (what, plant, expected) in BUGS {
        let mut history = history();
        plant(&mut history);
        let found = check(&history);
        assert!(found.iter().any(|found| found.contains(expected)), "{what}: {found:?}");
    }
}

/// What may lag may lack what others did before, but neither what its own journal did, nor has it what comes later.
#[test]
fn an_outdated_reading_is_found_where_it_matters() {
    let lagging = |began: u64, told: Told| {
        let mut history = history();
        history.iter_mut().filter(|one| one.journal != 2).for_each(|one| one.may_lag = true);
        tell(&mut history, began, told);
        check(&history)
    };
    assert_eq!(lagging(13, loaded(10, "a")), Vec::<String>::new());
    assert_eq!(lagging(42, append("i", 15, Stale(Version(17)))).len(), 1, "it has listed what is newer");
    assert_eq!(lagging(18, loaded(10, "a")).len(), 1, "it has stored what is newer");
    assert_eq!(lagging(6, loaded(12, "c")).len(), 1, "it is appended later");
    assert_eq!(lagging(44, loaded(17, "f")).len(), 1, "this one may not lag");
}

/// Small histories, right and wrong, of which a search knows whether there is a linearization.
#[test]
fn the_verdict_is_that_of_a_search() {
    let (mut right, mut wrong, mut removed) = (0, 0, 0);
    for seed in 0..40_000 {
        let Some(history) = search::history(&mut fastrand::Rng::with_seed(seed)) else { continue };
        let (found, is_linearizable) = (check(&history), search::is_linearizable(&history));
        assert_eq!(found.is_empty(), is_linearizable, "seed {seed}: {found:?} in {history:#?}");
        *if is_linearizable { &mut right } else { &mut wrong } += 1;
        removed += usize::from(history.iter().any(|one| matches!(one.told, Removed(_))));
    }
    assert!(
        right > 5_000 && wrong > 5_000 && removed > 2_000,
        "{right} right, {wrong} wrong, {removed} removed"
    );
}
