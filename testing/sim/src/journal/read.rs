//! Reading: written data is returned, whole and in part.

use everturn_orchestrator::{Commit, Cursor, Head, Journal, Page, Take, Version, Window, kernel::Millis};
use everturn_wire::{
    Chunk, ConversationId, ConversationStatus, DoneReason, Echo, Role, StepId, TurnMetrics, Usage, Value,
};

use super::sample::{add, chunk, chunks, commit, event, events, figures, id, load, metrics};

pub(super) async fn gives_back_what_it_was_given(journal: &dyn Journal) {
    let id = id("c");
    let (text, step_id) = ("a\u{0}\"\\\n\u{2028}🦀é".to_owned(), Some(StepId::from("t#0")));
    let input: Value = [("n", Value::from(1.5)), ("big", Value::from(u64::MAX))]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    let echo = Echo { origin: "api host".to_owned(), data: Value::from(text.clone()) };
    let (tool_call_id, tool_name) = ("call".to_owned(), "tool".to_owned());
    let call = Chunk::ToolCall {
        tool_call_id: tool_call_id.clone(),
        tool_name: tool_name.clone(),
        input,
        step_id: step_id.clone(),
        echo: Some(echo.clone()),
    };
    let result = Chunk::ToolResult {
        tool_call_id,
        tool_name,
        content: text.clone(),
        is_error: true,
        step_id,
        images: Vec::new(),
        decisions: Vec::new(),
        questions: Vec::new(),
    };
    let all = [
        (Role::System, Chunk::System { text: text.clone(), keeps_from: None }),
        (Role::User, Chunk::Image { url: "data:image/png;base64,AA==".to_owned(), mime_type: None }),
        (Role::User, Chunk::Text { text: String::new() }),
        (Role::Assistant, Chunk::Thinking { text: text.clone(), echo: None }),
        (Role::Assistant, Chunk::Thinking { text: String::new(), echo: Some(echo) }),
        (Role::Assistant, call),
        (Role::Tool, result),
        (Role::Assistant, Chunk::error(text.clone())),
    ];
    let given: Vec<_> = (1..).zip(all).map(|(seq, (role, piece))| chunk(seq, role, piece)).collect();
    let first = Commit { chunks: given.clone(), ..commit(0) };
    let mut version = add(journal, &id, Version(0), first).await;
    assert_eq!(chunks(journal, &id).await, given);
    for (status, end_reason) in [
        (ConversationStatus::Active, None),
        (ConversationStatus::Idle, Some(DoneReason::Error)),
        (ConversationStatus::Queued, None),
        (ConversationStatus::Idle, Some(DoneReason::Other(text.clone()))),
        (ConversationStatus::Closed, Some(DoneReason::Stop)),
    ] {
        let head = Head {
            created_at: Millis(1_700_000_000_000),
            last_activity_at: Millis((1 << 53) - 1),
            title: text.clone(),
            status,
            end_reason,
            model: Some("key/model".to_owned()),
            end: Cursor::from_value((1 << 53) - 1),
            last_seq: 7,
        };
        version = add(journal, &id, version, Commit::new(head.clone())).await;
        assert_eq!(load(journal, &id).await.head, head);
        let listed = journal.conversations(Page::default()).await.expect("listing succeeds");
        assert_eq!(listed, [(id.clone(), head)]);
    }
}

pub(super) async fn parts_history_into_windows(journal: &dyn Journal) {
    let id = id("c");
    let mut version = Version::default();
    for seqs in [1..4, 4..5, 5..11] {
        let chunks = seqs.map(|seq| chunk(seq, Role::User, Chunk::Text { text: seq.to_string() })).collect();
        version = add(journal, &id, version, Commit { chunks, ..commit(0) }).await;
    }
    let bounds = [None, Some(0), Some(1), Some(4), Some(9), Some(10), Some(11), Some(u64::MAX)];
    let limits = [None, Some(0), Some(1), Some(3), Some(10), Some(usize::MAX)];
    for since_seq in bounds {
        for before_seq in bounds {
            for limit in limits {
                let window = Window { since_seq, before_seq, limit, ..Window::default() };
                let all: Vec<u64> = (1..=10)
                    .filter(|seq| since_seq.is_none_or(|since| *seq > since))
                    .filter(|seq| before_seq.is_none_or(|before| *seq < before))
                    .collect();
                let newest = all.len().saturating_sub(limit.unwrap_or(usize::MAX));
                assert_eq!(seqs(journal, &id, window).await, all[newest..], "{window:?}");
                let window = Window { take: Take::Oldest, ..window };
                let oldest = all.len().min(limit.unwrap_or(usize::MAX));
                assert_eq!(seqs(journal, &id, window).await, all[..oldest], "{window:?}");
            }
        }
    }
}

async fn seqs(journal: &dyn Journal, id: &ConversationId, window: Window) -> Vec<u64> {
    let found = journal.chunks(id, window).await.expect("reading the history succeeds");
    found.iter().map(|chunk| chunk.seq).collect()
}

pub(super) async fn bounds_windows_by_their_bytes(journal: &dyn Journal) {
    let id = id("c");
    let lengths = [10, 400, 20, 30, 40];
    let chunk =
        |(seq, length): (u64, usize)| chunk(seq, Role::User, Chunk::Text { text: "é".repeat(length / 2) });
    let chunks = (1..).zip(lengths).map(chunk).collect();
    add(journal, &id, Version(0), Commit { chunks, ..commit(0) }).await;
    // Each text is wrapped in `{"type":"text","text":""}`.
    let sizes = lengths.map(|length| length + 25);
    for max_bytes in (0..=700).step_by(5) {
        for (take, order) in [(Take::Oldest, [1_u64, 2, 3, 4, 5]), (Take::Newest, [5, 4, 3, 2, 1])] {
            let mut left = max_bytes;
            let fits = |seq: &&u64| {
                let size = sizes[usize::try_from(**seq - 1).unwrap_or_default()];
                let fits = **seq == order[0] || size <= left;
                left = usize::saturating_sub(left, size);
                fits
            };
            let mut expected: Vec<u64> = order.iter().take_while(fits).copied().collect();
            expected.sort_unstable();
            let window = Window { take, max_bytes: Some(max_bytes), ..Window::default() };
            assert_eq!(seqs(journal, &id, window).await, expected, "{window:?}");
            let window = Window { limit: Some(1), ..window };
            assert_eq!(seqs(journal, &id, window).await, [order[0]], "{window:?}");
        }
    }
}

pub(super) async fn goes_on_after_a_cursor(journal: &dyn Journal) {
    let id = id("c");
    let given = [event(0, 1), event(1, 5), event(6, 1), event(7, 100), event(107, 1)];
    let (now, later) = given.split_at(3);
    let of = |part: &[_]| Commit { events: part.to_vec(), ..commit(0) };
    let version = add(journal, &id, Version(0), of(now)).await;
    add(journal, &id, version, of(later)).await;
    for after in (0..=110).chain([u64::MAX]) {
        for limit in [0, 1, 2, usize::MAX] {
            let rest = given.iter().filter(|event| event.end.value() > after).take(limit);
            let rest: Vec<_> = rest.cloned().collect();
            assert_eq!(events(journal, &id, after, limit).await, rest, "after {after}, at most {limit}");
        }
    }
}

pub(super) async fn lists_figures_in_the_order_of_the_turns(journal: &dyn Journal) {
    let id = id("c");
    let bare = TurnMetrics {
        duration_ms: None,
        context_size: Some((1 << 53) - 1),
        usage: Usage::default(),
        ..figures("a")
    };
    let given = [figures("z"), bare, figures("m")];
    let mut version = Version::default();
    for figures in given.clone() {
        version = add(journal, &id, version, commit(0).seal(figures)).await;
    }
    assert_eq!(metrics(journal, &id).await, given, "the oldest turn comes first");
}
