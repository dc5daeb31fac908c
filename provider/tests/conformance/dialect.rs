//! How adapters describe their API to the suite, and helpers for all of them.

use std::sync::Arc;

use everturn_kernel::{Op, Provider, Request, StreamEvent, ToolCall};
use everturn_provider::{AnswerLimits, HttpClient, HttpConfig, Secret, Timeouts};
use everturn_wire::{Chunk, Echo, Failure, Message, Role, Value};
use futures_util::StreamExt as _;

/// A key that must not appear anywhere. No rule about the form of keys would find it.
pub(crate) const KEY: &str = "correct horse battery staple";

/// Another secret header.
pub(crate) const HEADER: (&str, &str) = ("x-team", "four-words-all-lowercase");

/// An API under test.
pub(crate) trait Dialect {
    /// The path of calls, for a base URL with the path `/v1`.
    const PATH: &'static str;

    /// The query that the API itself uses.
    const QUERY: Option<&'static str> = None;

    /// Whether the API has a terminal event. Otherwise an answer is complete when its body is.
    const HAS_LAST_EVENT: bool = true;

    /// A model that receives images in tool results; `None` if the API does not support them.
    const SEEING_MODEL: Option<&'static str>;

    /// The header that carries [`KEY`], and its value.
    const AUTHORIZATION: (&'static str, &'static str);

    /// The adapter.
    fn provider(setup: Setup) -> Arc<dyn Provider>;

    /// The parameters that the API lacks.
    const LACKS: &'static [&'static str];

    /// The additional fields of a request that has all other parameters.
    fn parameters() -> Value;

    /// An answer with text, reasoning, tool calls and token counts.
    fn sample() -> Sample;

    /// Returns an event with this text.
    fn text(text: &str) -> String;

    /// Returns events that keep a stream open without content, as servers of this API send them.
    fn pings() -> String;

    /// Returns an event that fails the stream with this provider message.
    fn error(message: &str) -> String;

    /// Returns answers that end properly but are empty, each as its events.
    fn nothing() -> Vec<Vec<String>>;

    /// Returns an answer that calls these tools. The fragments of their arguments are interleaved if the API allows it.
    /// `None` if the API cannot carry such arguments.
    fn calls(calls: &[Asked<'_>]) -> Option<Vec<String>>;
}

/// A call by a model: its id, its name, and its arguments in fragments.
pub(crate) type Asked<'a> = (&'a str, &'a str, &'a [&'a str]);

/// Interleaves the fragments of several calls: the first of each, the second of each, and so on, with the index of
/// their call.
pub(crate) fn in_turns<'a>(calls: &[Asked<'a>]) -> Vec<(usize, &'a str)> {
    let most = calls.iter().map(|(_, _, pieces)| pieces.len()).max().unwrap_or_default();
    let turn = |turn: usize| {
        calls.iter().enumerate().filter_map(move |(place, call)| Some((place, *call.2.get(turn)?)))
    };
    (0..most).flat_map(turn).collect()
}

/// Returns the request target of calls with this query besides the API's own.
pub(crate) fn target<D: Dialect>(query: Option<&str>) -> String {
    let query: Vec<_> = query.into_iter().chain(D::QUERY).collect();
    if query.is_empty() { D::PATH.to_owned() } else { format!("{}?{}", D::PATH, query.join("&")) }
}

/// The settings of an adapter under test.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) base_url: String,
    pub(crate) key: Secret,
    pub(crate) headers: Vec<(String, Secret)>,
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: AnswerLimits,
    /// The certificate of an authority to trust.
    pub(crate) authority: Option<Vec<u8>>,
}

impl Setup {
    /// Creates the default setup for a server at this URL.
    pub(crate) fn at(server: &str) -> Self {
        Self {
            base_url: format!("{server}/v1"),
            key: KEY.into(),
            headers: vec![(HEADER.0.to_owned(), HEADER.1.into())],
            timeouts: Timeouts::default(),
            limits: AnswerLimits::default(),
            authority: None,
        }
    }

    /// Returns the client of the adapter.
    pub(crate) fn http(&self) -> HttpClient {
        let config = HttpConfig { timeouts: self.timeouts, system_proxy: false };
        HttpClient::trusting(config, self.authority.clone().into_iter().collect()).unwrap()
    }
}

/// A recorded answer.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// The events, as sent.
    pub(crate) parts: Vec<String>,
    /// The expected events.
    pub(crate) facts: Vec<StreamEvent>,
    /// Number of parts that contain the complete answer, so that a clean end after them is not a truncation.
    pub(crate) sufficient: usize,
}

impl Sample {
    pub(crate) fn bytes(&self) -> String {
        self.parts.concat()
    }

    /// Returns the length of the first `parts` parts, in bytes.
    pub(crate) fn bytes_of(&self, parts: usize) -> usize {
        self.parts[..parts].iter().map(String::len).sum()
    }
}

/// Returns a minimal request.
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

/// Returns an echo as in the samples. [`call`] removes the host from the origin, because it differs between tests.
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

/// Makes a call and collects its events.
pub(crate) async fn call(provider: &Arc<dyn Provider>) -> Vec<StreamEvent> {
    let mut facts = told(provider, request()).await;
    facts.retain(|fact| !matches!(fact, StreamEvent::Silent(_)));
    letters(facts)
}

/// Splits text events into single letters, because their grouping depends on timing.
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

/// Makes this call and collects its events, including silences.
pub(crate) async fn told(provider: &Arc<dyn Provider>, request: Request) -> Vec<StreamEvent> {
    let mut facts: Vec<_> = provider.stream(request).map(without_host).collect().await;
    // How much the adapter holds depends on how the body was split.
    facts.retain(|fact| !matches!(fact, StreamEvent::Collected(_)));
    let last = facts.last().expect("a call tells something");
    let terminal = |fact: &StreamEvent| matches!(fact, StreamEvent::Finished(_) | StreamEvent::Failed(_));
    assert!(
        terminal(last) && facts.iter().filter(|fact| terminal(fact)).count() == 1,
        "one end, at the end: {facts:?}"
    );
    facts
}

/// Splits the events of a failed call into the events before the failure, and the failure.
pub(crate) fn failed(mut facts: Vec<StreamEvent>) -> (Vec<StreamEvent>, Failure) {
    match facts.pop() {
        Some(StreamEvent::Failed(failure)) => (facts, failure),
        last => panic!("the call did not fail: {facts:?} {last:?}"),
    }
}
