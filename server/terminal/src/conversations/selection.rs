//! Finds conversations by a prefix of their ids.

use anyhow::{Context as _, Result, bail};
use everturn_orchestrator::Head;
use everturn_wire::ConversationId;

/// Maximum number of candidates that are listed.
const NAMED: usize = 5;

/// The conversation with this id, or the only one whose id has this prefix. The ellipsis of a shortened id may be
/// included.
pub(super) fn one<'a>(all: &'a [(ConversationId, Head)], asked: &str) -> Result<&'a (ConversationId, Head)> {
    let start = start(asked)?;
    let ids: Vec<&str> = all.iter().map(|(id, _)| id.as_str()).collect();
    let found = among(&ids, start)?;
    let one = found.and_then(|found| all.iter().find(|(id, _)| id.as_str() == found));
    one.with_context(|| {
        format!("no conversation's id begins with {start}: everturn conversations list names them")
    })
}

/// The requested id or prefix.
pub(crate) fn start(asked: &str) -> Result<&str> {
    match asked.trim().trim_end_matches('\u{2026}') {
        "" => bail!("{asked:?} is not a valid id: everturn conversations list names them"),
        start => Ok(start),
    }
}

/// The id that equals `start`, or the only one that begins with it; `None` if there is none.
///
/// # Errors
/// When several ids begin with it.
pub(crate) fn among<'a>(ids: &[&'a str], start: &str) -> Result<Option<&'a str>> {
    if let Some(exact) = ids.iter().find(|id| **id == start) {
        return Ok(Some(exact));
    }
    let found: Vec<&str> = ids.iter().copied().filter(|id| id.starts_with(start)).collect();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        many => {
            let named = many[..many.len().min(NAMED)].join(", ");
            let more = if many.len() > NAMED { ", ..." } else { "" };
            bail!("{} conversations begin with {start}: write more of {named}{more}", many.len())
        }
    }
}

/// The requested conversations in order, each once. Fails if any of them does not exist.
pub(super) fn several<'a>(
    all: &'a [(ConversationId, Head)],
    asked: &[String],
) -> Result<Vec<&'a (ConversationId, Head)>> {
    let mut chosen: Vec<&(ConversationId, Head)> = Vec::with_capacity(asked.len());
    for asked in asked {
        let one = one(all, asked)?;
        if !chosen.iter().any(|(id, _)| *id == one.0) {
            chosen.push(one);
        }
    }
    Ok(chosen)
}

/// Number of bytes that make every id distinct, at least 8. Ids are ASCII.
pub(super) fn telling(all: &[(ConversationId, Head)]) -> usize {
    let mut ids: Vec<&str> = all.iter().map(|(id, _)| id.as_str()).collect();
    ids.sort_unstable();
    let shared = |pair: &[&str]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
    ids.windows(2).map(|pair| shared(pair) + 1).max().unwrap_or(0).max(8)
}

#[cfg(test)]
mod tests {
    use everturn_orchestrator::kernel::Millis;

    use super::*;

    fn all(ids: &[&str]) -> Vec<(ConversationId, Head)> {
        ids.iter().map(|id| (ConversationId::from(*id), Head::new(Millis(0)))).collect()
    }

    #[test]
    fn a_beginning_is_enough_where_it_is_the_only_one() {
        let all = all(&["abc1", "abc2", "abc", "x9"]);
        for (asked, expected) in [("x", "x9"), ("abc", "abc"), ("abc1", "abc1"), ("x9\u{2026}", "x9")] {
            assert_eq!(one(&all, asked).unwrap().0.as_str(), expected);
        }
        for (asked, expected) in
            [("ab", "3 conversations begin with ab"), ("y", "no conversation"), (" ", "is not a valid id")]
        {
            let problem = one(&all, asked).unwrap_err().to_string();
            assert!(problem.contains(expected), "{problem}");
        }
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(several(&all, &words(&["x", "x9", "abc2"])).unwrap().len(), 2);
        assert!(several(&all, &words(&["x", "y"])).is_err());
    }

    #[test]
    fn shortened_ids_still_tell_conversations_apart() {
        assert_eq!(telling(&all(&["0198c2f1-7a00", "0198c2f1-7b00", "b"])), 11);
        assert_eq!(telling(&all(&["one", "two"])), 8);
        assert_eq!(telling(&[]), 8);
    }
}
