//! Queries over all conversations.

use everturn_orchestrator::{Commit, Head, Journal, ListCursor, Page, Version, Wait, kernel::Millis};
use everturn_wire::{CallerName, Chunk, DoneReason, Role};

use super::sample::{
    add, chunk, chunks, commit, event, events, figures, head, id, load, moment, turn, until,
};

pub(super) async fn lists_conversations_by_activity(journal: &dyn Journal) {
    for (name, activity) in [("old", 10), ("newest", 30), ("middle", 20)] {
        add(journal, &id(name), Version(0), commit(activity)).await;
    }
    assert_eq!(listed(journal).await, [("newest", 30), ("middle", 20), ("old", 10)].map(owned));
    add(journal, &id("old"), version(journal, "old").await, commit(40)).await;
    assert_eq!(listed(journal).await, [("old", 40), ("newest", 30), ("middle", 20)].map(owned));
}

pub(super) async fn lists_conversations_page_by_page(journal: &dyn Journal) {
    let all = [("b", 30), ("a", 20), ("c", 20), ("d", 20), ("e", 10)];
    for (name, activity) in [all[2], all[4], all[0], all[3], all[1]] {
        add(journal, &id(name), Version(0), commit(activity)).await;
    }
    let all = all.map(owned);
    for limit in [0, 1, 2, 5, 6] {
        for seen in 0..=all.len() {
            let after = seen
                .checked_sub(1)
                .map(|last| ListCursor { last_activity_at: Millis(all[last].1), id: id(&all[last].0) });
            let page = Page { after, limit: Some(limit), ..Page::default() };
            let end = all.len().min(seen + limit);
            assert_eq!(on(journal, page.clone()).await, all[seen..end], "{page:?}");
        }
    }
    // A conversation that is no longer listed is still a valid position.
    let after = Some(ListCursor { last_activity_at: Millis(20), id: id("bb") });
    assert_eq!(on(journal, Page { after, ..Page::default() }).await, all[2..]);
}

pub(super) async fn lists_the_conversations_of_one_caller(journal: &dyn Journal) {
    let all = [("a@ann", 60), ("b@ben", 50), ("b@ann", 40), ("ann", 30), ("c@anna", 20), ("d@ann", 10)];
    for (name, activity) in all {
        add(journal, &id(name), Version(0), commit(activity)).await;
    }
    add(journal, &id("ephemeral:x@ann"), Version(0), commit(70)).await;
    let of = |name: &str| Page { caller: CallerName::parse(name).ok(), ..Page::default() };
    let anns = [("a@ann", 60), ("b@ann", 40), ("d@ann", 10)].map(owned);
    assert_eq!(on(journal, of("ann")).await, anns);
    assert_eq!(on(journal, of("ben")).await, [owned(("b@ben", 50))]);
    assert_eq!(on(journal, of("a")).await, []);
    assert_eq!(listed(journal).await, all.map(owned));
    // Another's conversation is a valid position.
    for (after, rest) in [("a@ann", 1), ("b@ben", 1), ("b@ann", 2)] {
        let at =
            all.iter().find(|(name, _)| *name == after).map(|(_, at)| Millis(*at)).expect("it is listed");
        let after = Some(ListCursor { last_activity_at: at, id: id(after) });
        let page = Page { after, limit: Some(1), ..of("ann") };
        assert_eq!(on(journal, page).await, anns[rest..=rest]);
    }
}

async fn on(journal: &dyn Journal, page: Page) -> Vec<(String, u64)> {
    let all = journal.conversations(page).await.expect("listing succeeds");
    all.into_iter().map(|(id, head)| (id.to_string(), head.last_activity_at.0)).collect()
}

async fn listed(journal: &dyn Journal) -> Vec<(String, u64)> {
    on(journal, Page::default()).await
}

pub(super) async fn renames_for_good(journal: &dyn Journal) {
    let titled =
        |title: &str| Head { title: title.to_owned(), end_reason: Some(DoneReason::Error), ..head(10) };
    let title = async || load(journal, &id("c")).await.head.title;
    assert!(!journal.rename(&id("c"), "x".to_owned()).await.expect("it answers"), "there is none");
    let made = add(journal, &id("c"), Version(0), Commit::new(titled(""))).await;
    let last = add(journal, &id("c"), made, Commit::new(titled("first"))).await;
    assert_eq!(title().await, "first");
    assert!(journal.rename(&id("c"), "renamed".to_owned()).await.expect("it is renamed"));
    assert_eq!(title().await, "renamed");
    assert_eq!(load(journal, &id("c")).await.head.end_reason, Some(DoneReason::Error), "it is as it was");
    // The writer continues with the title and version that it knows.
    add(journal, &id("c"), last, Commit::new(titled("first"))).await;
    assert_eq!(title().await, "renamed");
}

pub(super) async fn removes_all_of_a_conversation(journal: &dyn Journal) {
    for name in ["gone", "stays"] {
        let all = commit(10)
            .chunk(chunk(1, Role::User, Chunk::Text { text: "hi".to_owned() }))
            .event(event(0, 10))
            .turn(turn(until(100)));
        add(journal, &id(name), Version(0), all).await;
    }
    assert!(journal.remove(&id("gone")).await.expect("it is removed"));
    assert!(!journal.remove(&id("gone")).await.expect("it answers"), "it is gone already");
    assert!(journal.load(&id("gone")).await.expect("loading succeeds").is_none());
    assert!(chunks(journal, &id("gone")).await.is_empty());
    assert!(events(journal, &id("gone"), 0, 10).await.is_empty());
    assert_eq!(journal.unsealed(Millis(u64::MAX)).await.expect("listing succeeds").len(), 1);
    assert_eq!(chunks(journal, &id("stays")).await.len(), 1);
    // Another conversation with the same name starts from zero.
    add(journal, &id("gone"), Version(0), commit(20)).await;
    assert!(chunks(journal, &id("gone")).await.is_empty());
}

pub(super) async fn lists_unsealed_turns_by_their_time(journal: &dyn Journal) {
    // Waits with the same end are not in the order of their conversations.
    let waiting = [
        ("later", until(200)),
        ("too", until(100)),
        ("at once", Wait::Now),
        ("soon", until(100)),
        ("never", until(300)),
    ];
    for (name, wait) in waiting {
        add(journal, &id(name), Version(0), commit(0).turn(turn(wait))).await;
    }
    add(journal, &id("idle"), Version(0), commit(0)).await;
    let all = waits([("at once", 0), ("soon", 100), ("too", 100), ("later", 200), ("never", 300)]);
    for (before, count) in [(0, 0), (1, 1), (100, 1), (101, 3), (201, 4), (301, 5), (u64::MAX, 5)] {
        assert_eq!(due(journal, before).await, all[..count], "before {before}");
    }
    let sooner = commit(0).turn(turn(until(50)));
    add(journal, &id("never"), version(journal, "never").await, sooner).await;
    add(journal, &id("soon"), version(journal, "soon").await, commit(0).seal(figures("t"))).await;
    let left = waits([("at once", 0), ("never", 50), ("too", 100), ("later", 200)]);
    assert_eq!(due(journal, 1_000).await, left, "a moved wait is listed once, a sealed turn is not");
}

pub(super) async fn lists_no_turn_that_waits_for_a_person_alone(journal: &dyn Journal) {
    let (person, given_up) = (Wait::Person { until: None }, Wait::Person { until: Some(moment(100)) });
    for (name, wait) in [("asks", person), ("asks until", given_up), ("at once", Wait::Now)] {
        add(journal, &id(name), Version(0), commit(0).turn(turn(wait))).await;
        assert_eq!(load(journal, &id(name)).await.turn, Some(turn(wait)), "{name}");
    }
    let listed = [("at once".to_owned(), Wait::Now), ("asks until".to_owned(), given_up)];
    assert_eq!(due(journal, u64::MAX).await, listed);
    assert_eq!(due(journal, 100).await, listed[..1]);
    // The person answers; in another turn, a person is asked.
    add(journal, &id("asks"), version(journal, "asks").await, commit(0).turn(turn(Wait::Now))).await;
    add(journal, &id("at once"), version(journal, "at once").await, commit(0).turn(turn(person))).await;
    let listed = [("asks".to_owned(), Wait::Now), ("asks until".to_owned(), given_up)];
    assert_eq!(due(journal, u64::MAX).await, listed);
}

async fn version(journal: &dyn Journal, name: &str) -> Version {
    load(journal, &id(name)).await.version
}

async fn due(journal: &dyn Journal, before: u64) -> Vec<(String, Wait)> {
    let due = journal.unsealed(Millis(before)).await.expect("listing succeeds");
    due.into_iter().map(|turn| (turn.id.to_string(), turn.wait)).collect()
}

/// Returns waits until these times; 0 = none.
fn waits<const N: usize>(all: [(&str, u64); N]) -> [(String, Wait); N] {
    all.map(|(name, at)| (name.to_owned(), if at == 0 { Wait::Now } else { until(at) }))
}

fn owned((name, number): (&str, u64)) -> (String, u64) {
    (name.to_owned(), number)
}
