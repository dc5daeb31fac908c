//! Secrets in answers, however they are split.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const KEY: &str = "sk-proj-sk-sk-0123456789";

fn mask() -> Mask {
    let mut whole = Whole::default();
    whole.add(KEY);
    whole.add("too-short");
    Mask::new(&whole)
}

/// Returns what is yielded for an answer with these events.
fn masked(events: impl IntoIterator<Item = StreamEvent>) -> Vec<StreamEvent> {
    let mut mask = mask();
    let end = StreamEvent::Finished(FinishReason::Stop);
    events.into_iter().chain([end]).flat_map(|event| mask.take(event)).flatten().collect()
}

fn texts(pieces: &[&str]) -> String {
    let told = masked(pieces.iter().map(|piece| StreamEvent::Text((*piece).to_owned())));
    let text = |event: &StreamEvent| match event {
        StreamEvent::Text(text) => text.clone(),
        _ => String::new(),
    };
    told.iter().map(text).collect()
}

#[test]
fn a_whole_secret_is_replaced_and_its_parts_are_not() {
    assert_eq!(texts(&["the key is sk-proj-sk-sk-0123456789."]), "the key is [redacted].");
    assert_eq!(texts(&["sk-proj-", "sk-sk-0123456789", "!"]), "sk-[redacted]!");
    assert_eq!(
        texts(&["sk-proj-...", " too-short ", "sk-proj-sk-sk-012345678"]),
        "sk-proj-... too-short sk-proj-sk-sk-012345678"
    );
    assert_eq!(texts(&["sk-proj-sk-proj-sk-sk-0123456789"]), "sk-proj-[redacted]");
}

#[test]
fn text_that_cannot_be_a_secret_is_not_delayed() {
    let mut mask = mask();
    for text in ["yes", "s", "sk-", "sk-no", "a longer text about sk-proj keys"] {
        let event = StreamEvent::Text(text.to_owned());
        assert_eq!(mask.take(event.clone()), [None, Some(event)], "{text}");
    }
    assert_eq!(mask.take(StreamEvent::Text("sk-p".into())), [None, Some(StreamEvent::Text("sk-".into()))]);
    let kept = Some(StreamEvent::Text("p".into()));
    let thought = StreamEvent::Reasoning("hm".into());
    assert_eq!(mask.take(thought.clone()), [kept, Some(thought)]);
}

#[test]
fn everything_that_is_kept_or_shown_is_masked() {
    let arguments = json!({ "a": [{ KEY: 1 }], "b": format!("export KEY={KEY}") });
    let echo = Echo { origin: "o".into(), data: json!({ "signature": KEY }) };
    let call = |arguments| {
        StreamEvent::ToolCall(ToolCall { id: KEY.into(), name: KEY.into(), arguments, echo: None })
    };
    let malformed = Arguments::Malformed { raw: format!("{{{KEY}"), reason: format!("what is {KEY}") };
    let told = masked([
        StreamEvent::Reasoning(KEY.into()),
        StreamEvent::Echo(echo),
        call(Arguments::Parsed(arguments)),
        call(malformed),
        StreamEvent::CallHere(KEY.into()),
        StreamEvent::Reported(Box::new(Reported {
            model: Some(KEY.into()),
            system_fingerprint: Some(KEY.into()),
            service_tier: Some(KEY.into()),
            cost: None,
        })),
        StreamEvent::Finished(FinishReason::Other(KEY.into())),
    ]);
    let shown = format!("{told:?}");
    assert_eq!((shown.matches(KEY).count(), shown.matches(MARK).count()), (0, 15), "{shown}");
}

proptest! {
    #[test]
    fn no_split_reveals_it(before in "[a-z-]{0,9}", after in "(sk-|[a-z-]){0,6}", cuts in prop::collection::vec(0..60_usize, 0..60)) {
        let whole = format!("{before}{KEY}{after}");
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(whole.len())).chain([0, whole.len()]).collect();
        cuts.sort_unstable();
        let pieces: Vec<&str> = cuts.windows(2).map(|cut| &whole[cut[0]..cut[1]]).collect();
        let told = texts(&pieces);
        prop_assert!(!told.contains(&KEY[SHOWN..]), "{told}");
        prop_assert!(told.contains(MARK) && told.starts_with(&before) && told.ends_with(&after), "{told}");
    }

    #[test]
    fn other_text_stays(pieces in prop::collection::vec("(sk-|proj-|0|[a-z])*", 0..9)) {
        let whole = pieces.concat();
        prop_assume!(!whole.contains(KEY));
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        prop_assert_eq!(texts(&pieces), whole);
    }
}
