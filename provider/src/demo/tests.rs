//! The demo fails, then answers.

use everturn_kernel::Op;
use everturn_wire::{Category, Message};
use futures_util::StreamExt as _;

use super::*;

fn request(said: &[&str], step: u32, attempt: u32) -> Request {
    let user = |text: &&str| Message::new(Role::User, [Chunk::Text { text: (*text).into() }]);
    Request {
        op: Op { step, attempt },
        model: Demo::MODEL.into(),
        messages: said.iter().map(user).collect(),
        tools: [].into(),
        parameters: Default::default(),
        max_output_tokens: None,
        reasoning_effort: None,
        eager_calls: false,
        trace: None,
    }
}

async fn told(request: Request) -> Vec<StreamEvent> {
    Demo.stream(request).collect().await
}

fn text(facts: &[StreamEvent]) -> String {
    facts
        .iter()
        .filter_map(|fact| if let StreamEvent::Text(text) = fact { Some(text.as_str()) } else { None })
        .collect()
}

fn failed(facts: &[StreamEvent]) -> &Failure {
    let [StreamEvent::Failed(failure)] = facts else { panic!("{facts:?}") };
    failure
}

#[tokio::test(start_paused = true)]
async fn the_first_turn_fails_twice_and_answers() {
    let overloaded = told(request(&["hi"], 0, 0)).await;
    let failure = failed(&overloaded);
    assert_eq!((failure.category, failure.retryable), (Category::Overloaded, true));
    let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    assert_eq!(failure.message, format!("HTTP 529: {body}"));
    assert_eq!(failure.code.as_deref(), Some("529"));
    let broken = told(request(&["hi"], 0, 1)).await;
    assert_eq!((failed(&broken).code.as_deref(), failed(&broken).retryable), (Some("502"), true));
    let facts = told(request(&["hi there"], 0, 2)).await;
    assert!(matches!(facts[0], StreamEvent::Reasoning(_)));
    let text = text(&facts);
    assert!((60..=100).contains(&text.split_whitespace().count()), "{text}");
    assert!(text.contains("\"hi there\"") && text.contains("two failures"), "{text}");
    let [.., StreamEvent::Usage(usage), StreamEvent::Finished(FinishReason::Stop)] = facts.as_slice() else {
        panic!("{facts:?}")
    };
    assert!(usage.input_tokens == 2 && usage.output_tokens > 60);
}

#[tokio::test(start_paused = true)]
async fn later_turns_fail_once_and_later_steps_never() {
    assert_eq!(failed(&told(request(&["a", "b"], 0, 0)).await).code.as_deref(), Some("529"));
    assert!(text(&told(request(&["a", "b"], 0, 1)).await).contains("survive a failure"));
    assert!(!text(&told(request(&["a"], 1, 0)).await).is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_dice_tool_is_called_once() {
    let properties = json!({"sides": {"type": "integer"}, "colour": {"type": "string"}});
    let dice = ToolSpec {
        name: DICE.into(),
        description: String::new(),
        parameters: json!({"type": "object", "properties": properties}),
    };
    let mut first = request(&["Roll the Dice"], 0, 2);
    first.tools = [dice].into();
    let facts = told(first.clone()).await;
    let [.., StreamEvent::ToolCall(call), StreamEvent::Usage(_), StreamEvent::Finished(reason)] =
        facts.as_slice()
    else {
        panic!("{facts:?}")
    };
    assert_eq!((reason, call.name.as_str()), (&FinishReason::ToolCalls, DICE));
    assert_eq!(call.arguments, Arguments::Parsed(json!({"sides": 6})), "only what the schema has");
    let result = Chunk::ToolResult {
        tool_call_id: call.id.clone(),
        tool_name: DICE.into(),
        content: "5".into(),
        is_error: false,
        step_id: None,
        images: Vec::new(),
        decisions: Vec::new(),
        questions: Vec::new(),
    };
    let mut second = first.clone();
    second.op = Op { step: 1, attempt: 0 };
    second.messages.push(Message::new(Role::Tool, [result]));
    let answer = text(&told(second.clone()).await);
    assert!(answer.contains("\"5\"") && answer.contains("2 failures"), "{answer}");
    assert!((60..=100).contains(&answer.split_whitespace().count()), "{answer}");
    second.messages.extend(request(&["and the tool again"], 0, 0).messages);
    let both = text(&told(second.clone()).await);
    assert!(both.starts_with(&answer) && both.contains("\"and the tool again\" joined this turn"), "{both}");
    second.op = Op { step: 0, attempt: 1 };
    let again = told(second).await;
    let called = |fact: &StreamEvent| matches!(fact, StreamEvent::ToolCall(next) if next.id != call.id);
    assert!(again.iter().any(called), "an earlier turn's roll is not this turn's, and ids differ: {again:?}");
    first.tools = [].into();
    assert!(!text(&told(first).await).is_empty(), "without the tool it just answers");
}

#[tokio::test(start_paused = true)]
async fn text_is_streamed_in_pieces() {
    let begun = tokio::time::Instant::now();
    let facts = told(request(&["a"], 1, 0)).await;
    let words =
        facts.iter().filter(|fact| matches!(fact, StreamEvent::Text(_) | StreamEvent::Reasoning(_))).count();
    assert_eq!(begun.elapsed(), PER_WORD * u32::try_from(words).unwrap());
}

#[tokio::test(start_paused = true)]
async fn another_model_is_not_found() {
    let mut other = request(&["a"], 0, 5);
    other.model = "gpt".into();
    let facts = told(other).await;
    assert_eq!((failed(&facts).category, failed(&facts).retryable), (Category::NotFound, false));
}
