//! Searching conversations.

use std::sync::Arc;

use everturn_orchestrator::{Commit, Cursor, Head, Journal as _, MemoryJournal, Version, kernel::Millis};
use everturn_transport_http::{CallLimits, Metrics, router};
use everturn_wire::{Chunk, ConversationStatus, Role, StoredChunk, Value};

use crate::{client::get, world::World};

/// The id, title and chunks of a conversation.
type Conversation = (String, String, Vec<(Role, Chunk)>);

/// A server with these conversations, the first one last active.
async fn stored(all: Vec<Conversation>) -> World {
    let journal = Arc::new(MemoryJournal::new());
    for (age, (id, title, chunks)) in all.into_iter().enumerate() {
        let head = Head {
            created_at: Millis(1),
            last_activity_at: Millis(1_000_000 - age as u64),
            title,
            status: ConversationStatus::Idle,
            end_reason: None,
            model: None,
            end: Cursor::default(),
            last_seq: chunks.len() as u64,
        };
        let chunks = (1..).zip(chunks).map(|(seq, (role, chunk))| {
            Arc::new(StoredChunk { seq, role, chunk: Arc::new(chunk), supersedes: None })
        });
        let commit = Commit { chunks: chunks.collect(), ..Commit::new(head) };
        journal.append(&id.as_str().into(), Version(0), commit).await.unwrap();
    }
    World::serve_from(journal, |orchestrator, _| router(orchestrator, CallLimits::default(), Metrics::none()))
        .await
}

fn text(text: impl Into<String>) -> Chunk {
    Chunk::Text { text: text.into() }
}

fn said(id: &str, title: &str, messages: &[&str]) -> Conversation {
    let chunks = messages.iter().map(|message| (Role::User, text(*message)));
    (id.to_owned(), title.to_owned(), chunks.collect())
}

/// The ids on each page, up to the end.
async fn pages(world: &World, first: &str) -> Vec<Vec<String>> {
    let (mut pages, mut next) = (Vec::new(), Some(format!("/conversations?{first}")));
    while let Some(path) = next {
        let answer = get(world.address, &path).await;
        assert_eq!(answer.status, 200, "{path}");
        let link = answer.headers.get("link").map(|link| link.to_str().unwrap().to_owned());
        next = link
            .map(|link| link.strip_prefix('<').unwrap().strip_suffix(r#">; rel="next""#).unwrap().to_owned());
        let list: Value = answer.json().await;
        let ids = list.as_array().unwrap().iter().map(|listed| listed["id"].as_str().unwrap().to_owned());
        pages.push(ids.collect());
        assert!(pages.len() < 100, "it ends");
    }
    pages
}

#[tokio::test]
async fn a_hit_in_a_message_has_its_passage() {
    let mut long = said("a", "One", &["hello"]);
    long.2.push((Role::Assistant, text(format!("{}The Harvest\nis in.", "Long ago. ".repeat(50)))));
    let world = stored(vec![long, said("b", "The harvest", &["harvest"])]).await;
    let list: Value = get(world.address, "/conversations?search=harvest").await.json().await;
    let passage = &list[0]["passage"];
    assert_eq!((&passage["seq"], &passage["role"]), (&2.into(), &"assistant".into()), "{list}");
    let shown = passage["text"].as_str().unwrap();
    assert!(shown.starts_with('…') && shown.ends_with("ago. The Harvest is in."), "{shown}");
    assert_eq!(list[1].get("passage"), None, "the title has it");
    let list: Value = get(world.address, "/conversations").await.json().await;
    assert_eq!(list[0].get("passage"), None, "it is no search");
}

#[tokio::test]
async fn titles_and_messages_are_searched() {
    let thinking = Chunk::Thinking { text: "harvest".to_owned(), echo: None };
    let world = stored(vec![
        said("a", "The Harvest", &["hi"]),
        said("b", "Another", &["plan the", "GROSSE Ärger harvest"]),
        said("c", "Other", &["the", "harvest"]),
        (
            "d".to_owned(),
            "Unsaid".to_owned(),
            vec![(Role::Assistant, thinking), (Role::System, text("harvest")), (Role::Tool, text("harvest"))],
        ),
        ("e".to_owned(), String::new(), vec![(Role::Assistant, text("100% of the harvest"))]),
    ])
    .await;
    let table = [
        ("harvest", vec!["a", "b", "c", "e"]),
        ("HARVEST%20the", vec!["a", "e"]),
        ("%C3%A4rg%20gross", vec!["b"]),
        ("100%25", vec!["e"]),
        ("nothing", vec![]),
        ("th+a", vec!["a", "b", "e"]),
    ];
    for (search, expected) in table {
        let found = pages(&world, &format!("search={search}")).await;
        assert_eq!(found, [expected], "{search}");
        let one_by_one = pages(&world, &format!("search={search}&limit=1")).await;
        assert_eq!(one_by_one.concat(), found.concat(), "{search}");
        assert!(one_by_one.iter().all(|page| page.len() <= 1));
    }
}

#[tokio::test]
async fn a_request_reads_a_bounded_part_and_the_next_goes_on_there() {
    // A word at the end of a history that is too long for one request, and beyond it.
    let many = (1..=25_000).map(|n| (Role::User, text(if n == 25_000 { "needle" } else { "hay" })));
    let large = (1..=20).map(|n| {
        let end = if n == 20 { "needle" } else { "" };
        (Role::User, text("hay ".repeat(250_000) + end))
    });
    let mut all = vec![
        ("many".to_owned(), "hay".to_owned(), many.collect()),
        ("large".to_owned(), "hay".to_owned(), large.collect()),
    ];
    all.extend((0..1_200).map(|n| said(&format!("small-{n:04}"), "hay", &[])));
    all.push(said("last", "hay", &["the needle"]));
    let world = stored(all).await;
    let found = pages(&world, "search=needle").await;
    // 10,000 chunks each; 5 chunks of 1 MB, of which the last exceeds 4 MiB; 500 conversations.
    let expected: [&[&str]; 9] = [&[], &[], &["many"], &[], &[], &["large"], &[], &[], &["last"]];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_search_goes_on_after_a_conversation_that_is_gone() {
    let world = stored(vec![said("b", "", &["needle"])]).await;
    assert_eq!(pages(&world, "search=needle&before=2000000-gone/7").await, [["b"]]);
    assert_eq!(pages(&world, "search=needle&before=1000000-b/1").await, [[""; 0]]);
}

#[tokio::test]
async fn a_search_for_nothing_is_refused() {
    let world = stored(Vec::new()).await;
    for bad in [
        "search=",
        "search=%20",
        &format!("search={}", "x".repeat(201)),
        "search=x&before=1-a/",
        "before=1-a/1",
    ] {
        let answer = get(world.address, &format!("/conversations?{bad}")).await;
        assert_eq!(answer.status, 400, "{bad}");
    }
    assert_eq!(pages(&world, &format!("search={}", "x".repeat(200))).await, [[""; 0]]);
}
