use everturn_wire::{Image, Value};
use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::*;

fn text(text: &str) -> Chunk {
    Chunk::Text { text: text.into() }
}

fn call(id: &str) -> Chunk {
    Chunk::ToolCall {
        tool_call_id: id.into(),
        tool_name: "weather".into(),
        input: json!({ "id": id }),
        step_id: Some("t#0".to_owned().into()),
        echo: None,
    }
}

fn result(id: &str, content: &str) -> Chunk {
    Chunk::ToolResult {
        tool_call_id: id.into(),
        tool_name: String::new(),
        content: content.into(),
        is_error: false,
        step_id: Some("t#0".to_owned().into()),
        images: Vec::new(),
        decisions: Vec::new(),
        questions: Vec::new(),
    }
}

fn thought(text: &str) -> Chunk {
    Chunk::Thinking { text: text.into(), echo: None }
}

fn user(said: &str) -> Message {
    Message::new(Role::User, [text(said)])
}

fn log(messages: &[Message]) -> Vec<Arc<StoredChunk>> {
    let chunks = messages.iter().flat_map(|message| message.chunks.iter().map(|chunk| (message.role, chunk)));
    let stored = |(seq, (role, chunk)): (u64, (Role, &Arc<Chunk>))| {
        Arc::new(StoredChunk { seq, role, chunk: chunk.clone(), supersedes: None })
    };
    (1..).zip(chunks).map(stored).collect()
}

fn over(given: &[Message], log: &[Arc<StoredChunk>]) -> Opening {
    RequestHistory::read(given).unwrap().over(&log.iter().collect::<Vec<_>>())
}

fn added(opening: &Opening) -> Vec<String> {
    opening.added.iter().map(|(role, chunk)| format!("{role:?} {}", line(chunk))).collect()
}

fn line(chunk: &Chunk) -> String {
    match chunk {
        Chunk::Text { text } => text.clone(),
        Chunk::ToolCall { tool_call_id, .. } => format!("calls {tool_call_id}"),
        Chunk::ToolResult { content, step_id, tool_name, .. } => {
            format!("{content} of {tool_name} in {:?}", step_id.as_ref().map(everturn_wire::StepId::as_str))
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn what_no_model_could_be_sent_is_refused_with_its_place() {
    let assistant = |chunks: Vec<Chunk>| Message::new(Role::Assistant, chunks);
    let tool = |chunks: Vec<Chunk>| Message::new(Role::Tool, chunks);
    let image = Image { url: "http://example.com/a.png".into(), mime_type: None };
    let cases: Vec<(Vec<Message>, &str)> = vec![
        (vec![], "messages is empty"),
        (vec![user("hi"), assistant(vec![text("hello")])], "the last of the messages must be"),
        (
            vec![user("hi"), Message::new(Role::System, [text("be brief")]), user("so")],
            "messages[1] is a system",
        ),
        (vec![Message::new(Role::User, [])], "messages[0] has no chunks"),
        (vec![user("")], "messages[0]: an empty text"),
        (
            vec![user("hi"), assistant(vec![call("a")]), user("so")],
            "messages[2] comes before the result of tool call \"a\"",
        ),
        (
            vec![user("hi"), assistant(vec![call("a"), call("b")]), tool(vec![result("a", "1")])],
            "tool call \"b\" has no result",
        ),
        (
            vec![user("hi"), assistant(vec![call("a")]), tool(vec![result("a", "1"), result("a", "2")])],
            "more than once",
        ),
        (vec![user("hi"), tool(vec![result("a", "1")])], "no tool call right before it"),
        (
            vec![user("hi"), assistant(vec![call("a"), call("a")]), tool(vec![result("a", "1")])],
            "given more than once",
        ),
        (vec![Message::new(Role::User, [call("a")])], "cannot have this chunk: tool-call"),
        (
            vec![Message::new(Role::User, [Chunk::Image { url: image.url, mime_type: None }])],
            "https: URL, or a data:image/ or data:application/pdf URL in base64",
        ),
        (vec![Message::new(Role::User, [Chunk::Unknown])], "of an unknown type"),
        (vec![Message::new(Role::Unknown, [text("hi")])], "cannot have this chunk"),
    ];
    for (messages, why) in cases {
        let error = RequestHistory::read(&messages).unwrap_err().to_string();
        assert!(error.contains(why), "{error:?} does not say {why:?}");
    }
}

#[test]
fn too_much_is_refused() {
    let many = Message::new(Role::User, vec![text("a"); 10_001]);
    assert!(RequestHistory::read(&[many]).unwrap_err().to_string().contains("the most is 10000"));
    let long = user(&"a".repeat((32 << 20) + 1));
    assert!(RequestHistory::read(&[long]).unwrap_err().to_string().contains("bytes"));
}

#[test]
fn system_messages_at_the_start_are_the_prompt_of_the_turn() {
    let system =
        |text: &str| Message::new(Role::System, [Chunk::System { text: text.into(), keeps_from: None }]);
    let given = RequestHistory::read(&[system("Be brief."), system("Be kind."), user("hi")]).unwrap();
    assert_eq!(given.system_prompt.as_deref(), Some("Be brief.\n\nBe kind."));
    assert_eq!(given.prompt.unwrap().text, "hi");
    assert_eq!(RequestHistory::read(&[user("hi")]).unwrap().system_prompt, None);
}

#[test]
fn a_new_conversation_gets_all_but_the_prompt() {
    let said = Message::new(Role::Assistant, [text("hello")]);
    let opening = over(&[user("hi"), said, user("so")], &[]);
    assert_eq!(
        (added(&opening), opening.supersedes),
        (vec!["User hi".into(), "Assistant hello".into()], None)
    );
}

#[test]
fn what_is_there_stays_and_reasoning_is_no_difference() {
    let said = Message::new(Role::Assistant, [thought("hm"), text("hel"), thought("mm"), text("lo")]);
    let known = log(&[user("hi"), said]);
    let opening = over(&[user("hi"), Message::new(Role::Assistant, [text("hello")]), user("so")], &known);
    assert_eq!(opening, Opening::default());
}

#[test]
fn what_differs_is_superseded_with_the_reasoning_before_it() {
    let said = Message::new(Role::Assistant, [thought("hm"), text("hello")]);
    let known = log(&[user("hi"), said, user("more")]);
    let opening = over(&[user("hi"), Message::new(Role::Assistant, [text("bye")]), user("so")], &known);
    assert_eq!((added(&opening), opening.supersedes), (vec!["Assistant bye".into()], Some(2)));
    // The last message always belongs to the turn.
    assert_eq!(over(&[user("hi")], &known), Opening { added: Vec::new(), supersedes: Some(1) });
}

#[test]
fn real_results_take_the_place_of_others_and_know_their_step() {
    let asked = Message::new(Role::Assistant, [call("a"), call("b")]);
    let handed = Message::new(Role::Tool, [result("a", "sunny"), result("b", "(not run here)")]);
    let known = log(&[user("hi"), asked.clone(), handed]);
    let answered = Message::new(Role::Tool, [result("a", "sunny"), result("b", "rain")]);
    let opening = over(&[user("hi"), asked, answered], &known);
    assert_eq!(added(&opening), ["Tool rain of weather in Some(\"t#0\")"]);
    assert_eq!(opening.supersedes, Some(5));
}

#[test]
fn steps_of_a_caller_are_not_ours() {
    let asked = Message::new(Role::Assistant, [call("a")]);
    let opening = over(&[user("hi"), asked, Message::new(Role::Tool, [result("a", "1")])], &[]);
    assert_eq!(added(&opening)[2], "Tool 1 of weather in None");
    assert!(matches!(&opening.added[1].1, Chunk::ToolCall { step_id: None, .. }));
}

/// A valid history of a few messages, chosen so that two of them have much in common.
fn any_history() -> impl Strategy<Value = Vec<Message>> {
    let turn = (0..2u8, 0..4u8).prop_map(|(word, answer)| {
        let asked = user(["hi", "so"][usize::from(word)]);
        let said = |chunks: Vec<Chunk>| Message::new(Role::Assistant, chunks);
        match answer {
            0 => vec![asked, said(vec![text("yes")])],
            1 => vec![asked, said(vec![thought("hm"), text("y"), text("es")])],
            answer => {
                let results = Message::new(Role::Tool, [result("a", "1"), result("b", &answer.to_string())]);
                vec![asked, said(vec![call("a"), call("b")]), results, said(vec![text("done")])]
            }
        }
    });
    vec(turn, 0..4).prop_map(|turns| turns.concat())
}

/// A history as a model reads it.
fn read<'a>(chunks: impl Iterator<Item = (Role, &'a Chunk)>) -> Vec<(Role, Value)> {
    let mut read: Vec<(Role, Value)> = Vec::new();
    for (role, chunk) in chunks {
        match (chunk, read.last_mut()) {
            (Chunk::Thinking { .. }, _) => {}
            (Chunk::Text { text }, Some((Role::Assistant, Value::String(before))))
                if role == Role::Assistant =>
            {
                before.push_str(text);
            }
            (Chunk::Text { text }, _) => read.push((role, json!(text))),
            (Chunk::ToolCall { tool_call_id, .. }, _) => read.push((role, json!(["call", tool_call_id]))),
            (Chunk::ToolResult { tool_call_id, content, .. }, _) => {
                read.push((role, json!(["result", tool_call_id, content])));
            }
            other => panic!("{other:?}"),
        }
    }
    read
}

proptest! {
    /// Whatever a conversation contains, its remaining chunks plus the added ones equal the given history.
    #[test]
    fn a_model_is_sent_what_was_given(known in any_history(), given in any_history(), ends in any::<bool>()) {
        let log = log(&known);
        let mut messages = given.clone();
        let last = if ends { Message::new(Role::Tool, [result("z", "26")]) } else { user("now") };
        if ends {
            messages.extend([user("z?"), Message::new(Role::Assistant, [call("z")])]);
        }
        messages.push(last.clone());
        let opening = over(&messages, &log);
        let from = opening.supersedes.unwrap_or(u64::MAX);
        let stands = log.iter().filter(|stored| stored.seq < from).map(|stored| (stored.role, &*stored.chunk));
        let sent = stands.chain(opening.added.iter().map(|(role, chunk)| (*role, chunk)));
        let before = if ends { &messages[..] } else { &messages[..messages.len() - 1] };
        let all = before.iter().flat_map(|message| message.iter().map(|chunk| (message.role, chunk)));
        prop_assert_eq!(read(sent), read(all));
    }
}

#[test]
fn images_between_texts_stay_where_they_are() {
    let image = |name: &str| Chunk::Image { url: format!("https://x.test/{name}.png"), mime_type: None };
    for (parts, begun) in [
        (vec![image("a"), text("x")], 0),
        (vec![text("x"), text("y")], 0),
        (vec![text("x"), image("a")], 1),
        (vec![text("x"), image("a"), text("y"), image("b"), image("c"), text("z")], 3),
    ] {
        let message = Message::new(Role::User, parts.clone());
        let history = RequestHistory::read(&[user("hi"), message]).unwrap();
        let said: Vec<_> = history.said[1..].iter().map(|(_, chunk)| (**chunk).clone()).collect();
        assert_eq!(said, parts[..begun]);
        let prompt = history.prompt.unwrap();
        let images = prompt.images.into_iter().map(|image| image.url);
        let expected = parts[begun..].iter().filter_map(|part| match part {
            Chunk::Image { url, .. } => Some(url.clone()),
            _ => None,
        });
        assert!(images.eq(expected));
    }
}
