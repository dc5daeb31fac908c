//! What an adapter says of its API, and what the tests do with any adapter.

use std::sync::Arc;

use everturn_kernel::{Op, Provider, Request, StreamEvent, ToolCall};
use everturn_provider::{AnswerLimits, Secret, Timeouts};
use everturn_wire::{Chunk, Echo, Failure, Message, Role, Value};
use futures_util::StreamExt as _;

/// A key that the tests look for everywhere it must not be. No rule about the look of keys would find it.
pub(crate) const KEY: &str = "correct horse battery staple";

/// The value of a further header, as secret.
pub(crate) const HEADER: (&str, &str) = ("x-team", "four-words-all-lowercase");

/// One API, for the suite.
pub(crate) trait Dialect {
    /// The path that calls arrive at, for a base URL with the path `/v1`.
    const PATH: &'static str;

    /// What the API itself has in the query of its address.
    const QUERY: Option<&'static str> = None;

    /// Whether the last event says that it is the last. Otherwise an answer is complete when its body is.
    const HAS_LAST_EVENT: bool = true;

    /// A model that is shown the images in the results of tools; `None` where the API has no place for them.
    const SEEING_MODEL: Option<&'static str>;

    /// The header that carries [`KEY`], and its value.
    const AUTHORIZATION: (&'static str, &'static str);

    /// The adapter.
    fn provider(setup: Setup) -> Arc<dyn Provider>;

    /// The parameters that the API lacks of all that there are.
    const LACKS: &'static [&'static str];

    /// The fields of a request that has the others, besides those of any request.
    fn parameters() -> Value;

    /// An answer with text, reasoning, tool calls and token counts.
    fn sample() -> Sample;

    /// An event that carries this much text.
    fn text(text: &str) -> String;

    /// Events that keep a stream open and say nothing, as servers of this API send them.
    fn pings() -> String;

    /// An event that fails the stream, with a message of the provider's.
    fn error(message: &str) -> String;

    /// Answers that end as they should and say nothing, each as its events.
    fn nothing() -> Vec<Vec<String>>;

    /// An answer that asks for these tools and says so at its end. The pieces of their arguments take turns, where
    /// the API lets them. `None` where it cannot carry such arguments at all.
    fn calls(calls: &[Asked<'_>]) -> Option<Vec<String>>;
}

/// A call as a model asks for it: its id, its name, and its arguments in pieces.
pub(crate) type Asked<'a> = (&'a str, &'a str, &'a [&'a str]);

/// The pieces of several calls in turns: the first of each, the second of each, and so on, each with its call's place.
pub(crate) fn in_turns<'a>(calls: &[Asked<'a>]) -> Vec<(usize, &'a str)> {
    let most = calls.iter().map(|(_, _, pieces)| pieces.len()).max().unwrap_or_default();
    let turn = |turn: usize| {
        calls.iter().enumerate().filter_map(move |(place, call)| Some((place, *call.2.get(turn)?)))
    };
    (0..most).flat_map(turn).collect()
}

/// Where calls arrive that have this query besides the API's own.
pub(crate) fn target<D: Dialect>(query: Option<&str>) -> String {
    let query: Vec<_> = query.into_iter().chain(D::QUERY).collect();
    if query.is_empty() { D::PATH.to_owned() } else { format!("{}?{}", D::PATH, query.join("&")) }
}

/// How the tests make an adapter.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) base_url: String,
    pub(crate) key: Secret,
    pub(crate) headers: Vec<(String, Secret)>,
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: AnswerLimits,
}

impl Setup {
    /// As an embedder would who changes nothing, for a server at this address.
    pub(crate) fn at(server: &str) -> Self {
        Self {
            base_url: format!("{server}/v1"),
            key: KEY.into(),
            headers: vec![(HEADER.0.to_owned(), HEADER.1.into())],
            timeouts: Timeouts::default(),
            limits: AnswerLimits::default(),
        }
    }
}

/// A recorded answer.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Its events, as sent.
    pub(crate) parts: Vec<String>,
    /// What they say.
    pub(crate) facts: Vec<StreamEvent>,
    /// How many of the parts say all that the answer is, so that an end in good order after them is no truncation.
    pub(crate) sufficient: usize,
}

impl Sample {
    pub(crate) fn bytes(&self) -> String {
        self.parts.concat()
    }

    /// How many bytes the first `parts` parts have.
    pub(crate) fn bytes_of(&self, parts: usize) -> usize {
        self.parts[..parts].iter().map(String::len).sum()
    }
}

/// A request that asks nothing special.
pub(crate) fn request() -> Request {
    let chunks = vec![Chunk::Text { text: "hi".into() }];
    Request {
        op: Op::default(),
        model: "model-1".into(),
        messages: vec![Message::new(Role::User, chunks)],
        tools: [].into(),
        parameters: Default::default(),
        max_output_tokens: None,
        reasoning_effort: None,
        eager_calls: false,
        trace: None,
    }
}

/// What an API wants back, as the samples have it: the host, which differs from test to test, is taken out of the
/// origin by [`call`].
pub(crate) fn echo(api: &str, data: Value) -> Echo {
    Echo { origin: api.to_owned(), data }
}

fn without_host(mut fact: StreamEvent) -> StreamEvent {
    let (StreamEvent::Echo(echo) | StreamEvent::ToolCall(ToolCall { echo: Some(echo), .. })) = &mut fact
    else {
        return fact;
    };
    let host = echo.origin.find(" 127.0.0.1:").unwrap_or_else(|| panic!("it names no host: {echo:?}"));
    echo.origin.truncate(host);
    fact
}

/// Makes a call and takes everything it tells of its answer.
pub(crate) async fn call(provider: &Arc<dyn Provider>) -> Vec<StreamEvent> {
    let mut facts = told(provider, request()).await;
    facts.retain(|fact| !matches!(fact, StreamEvent::Silent(_)));
    letters(facts)
}

/// The facts with their text letter by letter: how much of it is told at a time depends on how it arrives.
pub(crate) fn letters(facts: Vec<StreamEvent>) -> Vec<StreamEvent> {
    let each = |text: &str, fact: fn(String) -> StreamEvent| {
        text.chars().map(|letter| fact(letter.into())).collect::<Vec<_>>()
    };
    let apart = |fact| match fact {
        StreamEvent::Text(text) => each(&text, StreamEvent::Text),
        StreamEvent::Reasoning(text) => each(&text, StreamEvent::Reasoning),
        other => vec![other],
    };
    facts.into_iter().flat_map(apart).collect()
}

/// Makes this call and takes everything it tells, silences included.
pub(crate) async fn told(provider: &Arc<dyn Provider>, request: Request) -> Vec<StreamEvent> {
    let facts: Vec<_> = provider.stream(request).map(without_host).collect().await;
    let last = facts.last().expect("a call tells something");
    let terminal = |fact: &StreamEvent| matches!(fact, StreamEvent::Finished(_) | StreamEvent::Failed(_));
    assert!(
        terminal(last) && facts.iter().filter(|fact| terminal(fact)).count() == 1,
        "one end, at the end: {facts:?}"
    );
    facts
}

/// A failed call: what it told before, and its failure.
pub(crate) fn failed(mut facts: Vec<StreamEvent>) -> (Vec<StreamEvent>, Failure) {
    match facts.pop() {
        Some(StreamEvent::Failed(failure)) => (facts, failure),
        last => panic!("the call did not fail: {facts:?} {last:?}"),
    }
}
