//! What is asked of all conversations together.

use everturn_orchestrator::{Entry, Journal, Version, Wait, kernel::Millis};

use super::sample::{add, figures, head, id, turn, wait};

pub(super) async fn lists_conversations_by_activity(journal: &dyn Journal) {
    for (name, activity) in [("old", 10), ("newest", 30), ("middle", 20)] {
        add(journal, &id(name), Version(0), vec![Entry::Head(head(activity))]).await;
    }
    assert_eq!(listed(journal).await, [("newest", 30), ("middle", 20), ("old", 10)].map(owned));
    add(journal, &id("old"), Version(1), vec![Entry::Head(head(40))]).await;
    assert_eq!(listed(journal).await, [("old", 40), ("newest", 30), ("middle", 20)].map(owned));
}

async fn listed(journal: &dyn Journal) -> Vec<(String, u64)> {
    let all = journal.conversations().await.expect("listing succeeds");
    all.into_iter().map(|(id, head)| (id.to_string(), head.last_activity_at.0)).collect()
}

pub(super) async fn lists_unsealed_turns_by_their_time(journal: &dyn Journal) {
    // Those of one moment do not come in their order.
    let waiting = [
        ("later", Some(200)),
        ("too", Some(100)),
        ("at once", None),
        ("soon", Some(100)),
        ("never", Some(300)),
    ];
    for (name, wake_at) in waiting {
        let entries = vec![Entry::Head(head(0)), Entry::Turn(Box::new(turn(wake_at)))];
        add(journal, &id(name), Version(0), entries).await;
    }
    add(journal, &id("idle"), Version(0), vec![Entry::Head(head(0))]).await;
    let all = [("at once", 0), ("soon", 100), ("too", 100), ("later", 200), ("never", 300)].map(owned);
    for (before, count) in [(0, 0), (1, 1), (100, 1), (101, 3), (201, 4), (301, 5), (u64::MAX, 5)] {
        assert_eq!(due(journal, before).await, all[..count], "before {before}");
    }
    let sooner = vec![Entry::Turn(Box::new(turn(Some(50))))];
    add(journal, &id("never"), Version(1), sooner).await;
    add(journal, &id("soon"), Version(1), vec![Entry::Sealed(figures("t"))]).await;
    let left = [("at once", 0), ("never", 50), ("too", 100), ("later", 200)].map(owned);
    assert_eq!(due(journal, 1_000).await, left, "a moved wait is listed once, a sealed turn is not");
}

async fn due(journal: &dyn Journal, before: u64) -> Vec<(String, u64)> {
    let due = journal.unsealed(Millis(before)).await.expect("listing succeeds");
    let until = |found: Option<Wait>| {
        found.map_or(0, |found| {
            assert_eq!(found, wait(found.until.0), "a wait comes back whole");
            found.until.0
        })
    };
    due.into_iter().map(|(id, wait)| (id.to_string(), until(wait))).collect()
}

fn owned((name, number): (&str, u64)) -> (String, u64) {
    (name.to_owned(), number)
}
