//! Fragments as servers actually send them.

use serde_json::json;

use super::*;

fn fragment<'a>(index: Option<u64>, id: &'a str, name: &'a str, arguments: &'a str) -> Fragment<'a> {
    Fragment { index, id, name, arguments, echo: None }
}

fn assemble(fragments: &[Fragment<'_>], cut: bool) -> Result<Vec<ToolCall>, AssemblyError> {
    let mut assembly = Assembly::default();
    for &fragment in fragments {
        assembly.add(fragment)?;
    }
    assembly.finish("call_s", cut)
}

/// Returns ids, names and raw or parsed arguments, one call per line.
fn shown(fragments: &[Fragment<'_>]) -> Vec<String> {
    let line = |call: ToolCall| match call.arguments {
        Arguments::Parsed(value) => format!("{} {} {value}", call.id, call.name),
        Arguments::Malformed { raw, reason } => {
            format!("{} {} malformed {raw:?}: {reason}", call.id, call.name)
        }
    };
    assemble(fragments, false).unwrap().into_iter().map(line).collect()
}

#[test]
fn fragments_find_their_call() {
    let interleaved = [
        fragment(Some(0), "a", "f", ""),
        fragment(Some(1), "b", "g", "{\"x\""),
        fragment(Some(0), "", "", "{\"y\":"),
        fragment(Some(1), "", "", ":1}"),
        fragment(Some(0), "", "", "2}"),
    ];
    assert_eq!(shown(&interleaved), ["a f {\"y\":2}", "b g {\"x\":1}"]);
    let repeated = [fragment(Some(0), "a", "f", "{"), fragment(Some(0), "a", "f", "}")];
    assert_eq!(shown(&repeated), ["a f {}"], "id and name come with every piece");
    let same_index = [fragment(Some(0), "a", "f", "{}"), fragment(Some(0), "b", "f", "{}")];
    assert_eq!(shown(&same_index), ["a f {}", "b f {}"], "every call has index 0");
    let reused = [same_index[0], same_index[1], fragment(Some(0), "", "", " ")];
    assert_eq!(shown(&reused), ["a f {}", "b f {}"], "what follows belongs to the later one");
    let uncounted = [
        fragment(None, "a", "f", "{\"x\":"),
        fragment(None, "", "", "1"),
        fragment(None, "a", "", "}"),
        fragment(None, "b", "f", "{}"),
    ];
    assert_eq!(shown(&uncounted), ["a f {\"x\":1}", "b f {}"], "no index");
    let bare = [fragment(None, "", "f", "{}"), fragment(None, "", "f", "{}")];
    assert_eq!(shown(&bare), ["call_s_0 f {}", "call_s_1 f {}"], "neither index nor id");
}

#[test]
fn ids_are_unique_whatever_the_provider_sent() {
    let twice = [
        fragment(Some(0), "a", "f", ""),
        fragment(Some(1), "a", "g", ""),
        fragment(Some(2), "a_1", "g", ""),
        fragment(Some(3), "", "h", ""),
    ];
    assert_eq!(shown(&twice), ["a f {}", "a_1 g {}", "a_1_2 g {}", "call_s_3 h {}"]);
}

#[test]
fn arguments_are_complete_json_or_malformed() {
    let one = |arguments, cut| {
        assemble(&[fragment(Some(0), "a", "f", arguments)], cut).unwrap().remove(0).arguments
    };
    assert_eq!(one("", false), Arguments::Parsed(json!({})));
    assert_eq!(one(" {\"a\":[1]}\n", false), Arguments::Parsed(json!({"a": [1]})));
    assert_eq!(one("{\"a\":1}", true), Arguments::Parsed(json!({"a": 1})), "an object that closes is whole");
    for (raw, cut) in
        [("{\"a\":", false), ("12", false), ("{}{}", false), ("null", false), ("", true), ("{\"a", true)]
    {
        let Arguments::Malformed { raw: kept, reason } = one(raw, cut) else { panic!("{raw:?} was taken") };
        assert_eq!(kept, raw);
        assert_eq!(reason.contains("cut off"), cut, "{reason}");
    }
}

#[test]
fn nameless_and_too_many_calls_are_errors() {
    assert_eq!(assemble(&[fragment(Some(0), "a", "", "{}")], false), Err(AssemblyError::Nameless));
    let flood: Vec<_> = (0..=MOST_CALLS as u64).map(|index| fragment(Some(index), "", "f", "")).collect();
    assert_eq!(assemble(&flood, false), Err(AssemblyError::TooMany));
    assert_eq!(assemble(&flood[1..], false).map(|calls| calls.len()), Ok(MOST_CALLS));
}

#[test]
fn a_call_keeps_the_first_echo_sent_with_it() {
    let echo = |data: u32| Echo { origin: "api host".into(), data: data.into() };
    let (one, two) = (echo(1), echo(2));
    let calls = assemble(
        &[
            fragment(Some(0), "a", "f", ""),
            Fragment { echo: Some(&one), ..fragment(Some(0), "", "", "{}") },
            Fragment { echo: Some(&two), ..fragment(Some(0), "", "", "") },
            fragment(Some(1), "b", "f", "{}"),
        ],
        false,
    );
    let echoes: Vec<_> = calls.unwrap().into_iter().map(|call| call.echo).collect();
    assert_eq!(echoes, [Some(one), None]);
}

#[test]
fn arguments_with_too_many_values_are_not_parsed() {
    let half = format!("{{\"a\":[{}]}}", vec!["{}"; MOST_VALUES / 4].join(","));
    let fragments = [fragment(Some(0), "a", "f", &half), fragment(Some(1), "b", "f", &half)];
    let calls = assemble(&fragments, false).unwrap();
    assert!(matches!(calls[0].arguments, Arguments::Parsed(_)));
    let Arguments::Malformed { raw, reason } = &calls[1].arguments else { panic!("parsed") };
    assert!(*raw == half && reason.contains("values"), "{reason}");
}
