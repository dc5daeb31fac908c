//! The projection against a plain map.

use std::collections::HashMap;

use everturn_ports::{ListCursor, Moment};
use everturn_wire::CallerName;

use super::*;

/// Numbers that look random, and are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// What is known of a conversation.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    version: u64,
    born: String,
    owner: NodeId,
    head: Head,
    wait: Option<Wait>,
}

fn head(at: u64, title: &str) -> Head {
    Head {
        created_at: Millis(1),
        last_activity_at: Millis(at),
        title: title.to_owned(),
        status: ConversationStatus::Idle,
        end_reason: None,
        model: None,
        end: Cursor::from_value(at),
        last_seq: at,
    }
}

fn append(version: u64, born: &str, head: Head) -> Append<'_> {
    Append { version, born, owner: Some("node".into()), head, wait: None }
}

#[test]
fn it_says_what_a_plain_map_would() {
    let mut random = Random(7);
    let (mut index, mut known) = (Projection::default(), HashMap::<ConversationId, Known>::new());
    let mut titles = HashMap::<ConversationId, String>::new();
    for version in 1..4_000 {
        let id = [
            "a",
            "b",
            "c",
            "ephemeral:d",
            "ephemeral:e",
            "ephemeral",
            "ephemerals",
            "a@ann",
            "b@ann",
            "a@bob",
        ];
        let id = ConversationId::from(id[usize::try_from(random.below(10)).unwrap()]);
        let was = known.get(&id).cloned();
        match random.below(8) {
            0 => {
                let is_listed = was.is_some() && !id.is_ephemeral();
                assert_eq!(index.remove(&id), is_listed);
                known.remove(&id);
                titles.remove(&id);
            }
            1 => {
                let title = random.below(3).to_string();
                let born = was.as_ref().map_or("nothing", |was| &was.born);
                let event = index.rename(&id, born, &title);
                if let Some(was) = known.get_mut(&id) {
                    let is_listed = was.head.title != title && !id.is_ephemeral();
                    was.head.title.clone_from(&title);
                    titles.insert(id.clone(), title);
                    let head = was.head.clone();
                    assert_eq!(event, is_listed.then(|| Listed { id: id.clone(), head, wait: was.wait }));
                }
            }
            _ => {
                let mut head = head(random.below(5), &random.below(2).to_string());
                head.model = [None, Some("m".to_owned()), Some("n".to_owned())]
                    [usize::try_from(random.below(3)).unwrap()]
                .clone();
                head.end_reason = (random.below(2) == 0).then_some(DoneReason::Error);
                if random.below(2) == 0 {
                    head.status = ConversationStatus::Active;
                }
                let moment = Moment { at: Millis(random.below(5)), decided_ms: 1 };
                let wait = [
                    None,
                    Some(Wait::Now),
                    Some(Wait::Until(moment)),
                    Some(Wait::Person { until: None }),
                    Some(Wait::Person { until: Some(moment) }),
                ][usize::try_from(random.below(5)).unwrap()];
                let born = was.as_ref().map_or_else(|| version.to_string(), |was| was.born.clone());
                let owner = NodeId::from(["x", "y"][usize::try_from(random.below(2)).unwrap()]);
                let given =
                    Append { version, born: &born, owner: Some(owner.clone()), head: head.clone(), wait };
                let event = index.append(&id, given);
                if let Some(title) = titles.get(&id) {
                    head.title.clone_from(title);
                }
                let shown = |head: &Head| {
                    (head.status, head.title.clone(), head.model.clone(), head.end_reason.clone())
                };
                let is_told = was.is_none_or(|was| shown(&was.head) != shown(&head)) && !id.is_ephemeral();
                assert_eq!(event, is_told.then(|| Listed { id: id.clone(), head: head.clone(), wait }));
                known.insert(id.clone(), Known { version, born, owner, head, wait });
                // Delivered again.
                assert_eq!(index.append(&id, append(version, "other", super::tests::head(9, "x"))), None);
            }
        }
        check(&index, &known, &mut random);
    }
}

fn check(index: &Projection, known: &HashMap<ConversationId, Known>, random: &mut Random) {
    let mut listed: Vec<_> = known.iter().filter(|(id, _)| !id.is_ephemeral()).collect();
    listed.sort_by(|(a, x), (b, y)| {
        y.head.last_activity_at.cmp(&x.head.last_activity_at).then_with(|| a.cmp(b))
    });
    let listed: Vec<_> = listed.into_iter().map(|(id, known)| (id.clone(), known.head.clone())).collect();
    assert_eq!(index.page(&Page::default()), listed);
    let after = ListCursor { last_activity_at: Millis(random.below(5)), id: "b".into() };
    let page = Page { after: Some(after.clone()), limit: Some(2), ..Page::default() };
    let is_after = |id: &ConversationId, head: &Head| {
        (Reverse(head.last_activity_at), id) > (Reverse(after.last_activity_at), &after.id)
    };
    let rest: Vec<_> = listed.iter().filter(|(id, head)| is_after(id, head)).take(2).cloned().collect();
    assert_eq!(index.page(&page), rest);
    for caller in ["ann", "bob", "cleo"] {
        let page = Page { caller: CallerName::parse(caller).ok(), ..page.clone() };
        let rest = listed.iter().filter(|(id, head)| is_after(id, head) && page.is_of_caller(id)).take(2);
        assert_eq!(index.page(&page), rest.cloned().collect::<Vec<_>>());
    }

    let before = Millis(random.below(6));
    let unsealed = known.iter().filter_map(|(id, known)| {
        let wait = known.wait.filter(|wait| wait.due_at().is_some_and(|at| at < before))?;
        Some(Unsealed { id: id.clone(), wait, owner: Some(known.owner.clone()) })
    });
    let mut unsealed: Vec<_> = unsealed.collect();
    unsealed.sort_by(|a, b| a.wait.due_at().cmp(&b.wait.due_at()).then_with(|| a.id.cmp(&b.id)));
    assert_eq!(index.unsealed(before), unsealed);

    let mut idle: Vec<_> = known
        .iter()
        .filter(|(id, known)| {
            id.is_ephemeral() && known.wait.is_none() && known.head.last_activity_at < before
        })
        .map(|(id, known)| (id.clone(), known.version))
        .collect();
    idle.sort();
    assert_eq!(index.idle(before), idle);
    let ids = ["f".into(), "ephemeral:d".into(), "none".into()];
    let waits = ids.iter().filter_map(|id: &ConversationId| Some((id.clone(), known.get(id)?.wait?)));
    assert_eq!(index.waits(&ids.iter().collect::<Vec<_>>()), waits.collect::<Vec<_>>());
}

#[test]
fn a_title_is_of_the_conversation_that_was_renamed() {
    let (mut index, id) = (Projection::default(), ConversationId::from("c"));
    let title = |index: &Projection| index.page(&Page::default())[0].1.title.clone();
    // The last message of each subject, in the order of the stream: the title is older than the append.
    assert_eq!(index.rename(&id, "first", "renamed"), None);
    index.append(&id, append(5, "first", head(1, "asked")));
    assert_eq!(title(&index), "renamed");
    assert!(index.remove(&id));
    index.append(&id, append(7, "second", head(1, "asked")));
    assert_eq!(title(&index), "asked");
    // It was written after the removal, by somebody who had not noticed.
    assert_eq!(index.rename(&id, "first", "late"), None);
    index.append(&id, append(8, "second", head(1, "asked")));
    assert_eq!(title(&index), "asked");
}

#[test]
fn an_entry_is_small() {
    assert!(size_of::<Entry>() <= 80, "{}", size_of::<Entry>());
}
