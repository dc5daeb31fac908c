//! Bugs planted in what clients saw: each is found, and nothing is found without one.

use everturn_wire::{Role, StoredChunk};
use serde_json::{Value, json};

use super::*;

/// Where cursors continue after the crash.
const AFTER_CRASH: u64 = 1_000;

fn event(turn: &str, mut body: Value) -> AgentEvent {
    body["conversationId"] = json!("c0");
    body["turnId"] = json!(turn);
    serde_json::from_value(body).unwrap()
}

fn text(turn: &str, delta: &str) -> AgentEvent {
    event(turn, json!({ "type": "text-delta", "delta": delta }))
}

fn chunk(seq: u64, role: Role, text: &str) -> StoredChunk {
    let role = if role == Role::User { "user" } else { "assistant" };
    let stored = json!({ "seq": seq, "role": role, "chunk": { "type": "text", "text": text } });
    serde_json::from_value(stored).unwrap()
}

/// A log of two turns. During the first, the process crashed, and the text shown until then was lost.
fn log() -> Log {
    let mut log = Log::default();
    let mut position = 0;
    let mut push = |position: &mut u64, event: AgentEvent| {
        let start = *position;
        *position += width(&event);
        log.events.push(Logged { start, end: *position, event });
    };
    let step = |turn: &str| json!({ "type": "step-complete", "stepId": format!("{turn}#0") });
    let seal = |turn: &str| {
        [json!({ "type": "done", "reason": "stop" }), json!({ "type": "turn-sealed" })]
            .map(|body| event(turn, body))
    };
    push(&mut position, event("t1", json!({ "type": "user-message", "text": "one" })));
    push(&mut position, event("t1", json!({ "type": "turn-start" })));
    position = AFTER_CRASH;
    push(
        &mut position,
        event("t1", json!({ "type": "step-rewound", "stepId": "t1#0", "reason": "a crash" })),
    );
    push(&mut position, text("t1", "Grüße, you there."));
    push(&mut position, event("t1", step("t1")));
    seal("t1").into_iter().for_each(|event| push(&mut position, event));
    push(&mut position, event("t2", json!({ "type": "user-message", "text": "two" })));
    push(&mut position, text("t2", "Bye."));
    push(&mut position, event("t2", step("t2")));
    seal("t2").into_iter().for_each(|event| push(&mut position, event));
    log.chunks = vec![
        chunk(1, Role::User, "one"),
        chunk(2, Role::Assistant, "Grüße, you there."),
        chunk(3, Role::User, "two"),
        chunk(4, Role::Assistant, "Bye."),
    ];
    log
}

/// Tells a client what follows its position, with text in pieces of this many characters.
fn read(client: &mut Client, log: &Log, from: u64, to: u64, pieces: usize) {
    client.seen.push(Seen::Asked(from));
    for Logged { start, end, event: logged } in
        log.events.iter().filter(|event| event.end > from && event.start < to)
    {
        let Some(all) = logged.body.delta() else {
            client.seen.push(Seen::Told(*end, logged.clone()));
            continue;
        };
        let mut at = from.max(*start);
        let rest = &all[(at - start) as usize..];
        for piece in rest.chars().collect::<Vec<_>>().chunks(pieces) {
            let piece = text(logged.turn_id.as_ref().unwrap().as_str(), &piece.iter().collect::<String>());
            at += width(&piece);
            if at <= to {
                client.seen.push(Seen::Told(at, piece));
            }
        }
    }
}

/// A client that saw the text that was lost, and came back in the middle of the text that replaced it.
fn client(log: &Log) -> Client {
    let mut client = Client { name: "w".to_owned(), seen: Vec::new(), is_at_end: true };
    read(&mut client, log, 0, 2, 1);
    for (end, lost) in [(6, "Grüß"[..4].to_owned()), (9, "off".to_owned())] {
        client.seen.push(Seen::Told(end, text("t1", &lost)));
    }
    read(&mut client, log, 9, AFTER_CRASH + 5, 2);
    let cursor = last(&client);
    read(&mut client, log, cursor, u64::MAX, 3);
    client
}

fn last(client: &Client) -> u64 {
    let ends = client.seen.iter().rev().find_map(|seen| match seen {
        Seen::Told(end, _) => Some(*end),
        Seen::Asked(_) => None,
    });
    ends.unwrap()
}

fn commands() -> Vec<Command> {
    vec![Command::Said("one".into()), Command::Said("two".into()), Command::TakenBack("three".into())]
}

/// Returns the place of the nth thing that was told.
fn told(client: &Client, nth: usize) -> usize {
    let places = client.seen.iter().enumerate().filter(|(_, seen)| matches!(seen, Seen::Told(..)));
    places.map(|(place, _)| place).nth(nth).unwrap()
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let log = log();
    let mut clients = vec![client(&log)];
    // One that reads all at once, one from the middle, one that goes back, and one that leaves early.
    for from in [0, 2, AFTER_CRASH + 1] {
        let mut client = Client { name: "r".to_owned(), seen: Vec::new(), is_at_end: true };
        read(&mut client, &log, from, u64::MAX, usize::MAX);
        read(&mut client, &log, AFTER_CRASH + 1, u64::MAX, 1);
        clients.push(client.clone());
        read(&mut client, &log, AFTER_CRASH + 1, AFTER_CRASH + 4, 1);
        clients.push(Client { is_at_end: false, ..client });
    }
    assert_eq!(check(&log, &clients, &commands()), Vec::<String>::new());
}

type Bug = (&'static str, fn(&mut Log, &mut Client, &mut Vec<Command>), &'static str);

/// What is wrong, how it is planted, and what is said about it.
const BUGS: [Bug; 18] = [
    ("an event is left out", |_, client, _| drop(client.seen.remove(told(client, 1))), "missed TurnStart"),
    (
        "a piece of text is left out",
        |_, client, _| drop(client.seen.remove(client.seen.len() - 5)),
        "missed TextDelta",
    ),
    (
        "an event is told twice",
        |_, client, _| {
            let place = told(client, 0);
            client.seen.insert(place, client.seen[place].clone());
        },
        "was at 1 already",
    ),
    (
        "the text before the cursor is told again on coming back",
        |log, client, _| {
            let asked = client.seen.iter().rposition(|seen| matches!(seen, Seen::Asked(_))).unwrap();
            client.seen.insert(asked + 1, Seen::Told(AFTER_CRASH + 1 + 19, log.events[3].event.clone()));
        },
        "already",
    ),
    ("two events change places", |_, client, _| client.seen.swap(1, 2), "missed UserMessage"),
    (
        "one letter is wrong",
        |_, client, _| {
            let place = client.seen.len() - 5;
            let Seen::Told(end, _) = client.seen[place] else { panic!("an event is there") };
            client.seen[place] = Seen::Told(end, text("t2", "Bue"));
        },
        "and the log has",
    ),
    (
        "text is told as another turn's",
        |_, client, _| {
            let place = client.seen.len() - 5;
            let Seen::Told(end, _) = client.seen[place] else { panic!("an event is there") };
            client.seen[place] = Seen::Told(end, text("t1", "Bye"));
        },
        "and the log has",
    ),
    (
        "lost text is not withdrawn",
        |log, client, _| {
            log.events.remove(2);
            client.seen.retain(|seen| {
                !matches!(seen, Seen::Told(_, event) if matches!(event.body, everturn_wire::EventBody::StepRewound { .. }))
            });
        },
        "after lost text that was not withdrawn",
    ),
    (
        "text is shown that was never stored",
        |log, client, _| {
            let end = log.events.last().unwrap().end;
            client.seen.push(Seen::Told(end + 4, text("t2", "Ghost"[..4].into())));
        },
        "it shows",
    ),
    (
        "an event is shown that was never stored",
        |log, client, _| {
            let event = event("t3", json!({ "type": "user-message", "text": "ghost" }));
            client.seen.push(Seen::Told(log.events.last().unwrap().end + 1, event));
        },
        "told what the log does not have",
    ),
    ("the last event never comes", |_, client, _| drop(client.seen.pop()), "it was told nothing after"),
    (
        "a server resumes after a cursor of its own",
        |_, client, _| client.seen.push(Seen::Asked(77)),
        "which it was never told",
    ),
    (
        "a turn is sealed twice",
        |log, _, _| {
            let mut seal = log.events.last().unwrap().clone();
            (seal.start, seal.end) = (seal.end, seal.end + 1);
            log.events.push(seal);
        },
        "follows the seal",
    ),
    (
        "a turn is never sealed",
        |log, client, _| {
            log.events.pop();
            client.seen.pop();
        },
        "was done and sealed [1, 0] times",
    ),
    (
        "an acknowledged message is lost",
        |_, _, commands| commands.push(Command::Said("four".into())),
        "is (0, 0) times",
    ),
    (
        "a message is said twice",
        |log, _, _| {
            let place = log.events.len() - 5;
            log.events[place].event = event("t2", json!({ "type": "user-message", "text": "one" }));
        },
        "Said(\"one\") is (2, 1) times",
    ),
    (
        "a message is said that was taken back",
        |_, _, commands| commands.push(Command::TakenBack("two".into())),
        "TakenBack(\"two\") is (1, 1) times",
    ),
    (
        "the history has other text than was shown",
        |log, _, _| log.chunks[3] = chunk(4, Role::Assistant, "Bye"),
        "and kept is",
    ),
];

#[test]
fn each_planted_bug_is_found() {
    for (what, plant, expected) in BUGS {
        let (mut log, mut commands) = (log(), commands());
        let mut client = client(&log);
        plant(&mut log, &mut client, &mut commands);
        let found = check(&log, &[client], &commands);
        assert!(found.iter().any(|found| found.contains(expected)), "{what}: {found:?}");
    }
}

/// Whatever is left out, repeated or exchanged anywhere is found.
#[test]
fn every_single_change_of_what_was_told_is_found() {
    let log = log();
    let right = client(&log);
    let of = |seen: Vec<Seen>| check(&log, &[Client { seen, ..right.clone() }], &[]);
    for place in 0..right.seen.len() {
        let is_told = |place: usize| matches!(right.seen.get(place), Some(Seen::Told(..)));
        // Text that was lost may or may not have been told.
        let is_lost = matches!(right.seen[place], Seen::Told(end, _) if (3..AFTER_CRASH).contains(&end));
        if !is_told(place) || is_lost {
            continue;
        }
        let mut seen = right.seen.clone();
        seen.remove(place);
        assert!(!of(seen).is_empty(), "{place} is left out");
        let mut seen = right.seen.clone();
        seen.insert(place, seen[place].clone());
        assert!(!of(seen).is_empty(), "{place} is repeated");
        if is_told(place + 1) {
            let mut seen = right.seen.clone();
            seen.swap(place, place + 1);
            assert!(!of(seen).is_empty(), "{place} and the next are exchanged");
        }
    }
}
