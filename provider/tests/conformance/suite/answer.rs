//! Successful answers in every form.

use everturn_kernel::StreamEvent;
use everturn_provider::AnswerLimits;
use everturn_sim::{Loopback, Reply};
use everturn_wire::Category;

use crate::dialect::{Dialect, Setup, call, failed, letters, request, told};

async fn answered<D: Dialect>(reply: Reply) -> Vec<StreamEvent> {
    let server = Loopback::start([reply]).await;
    let facts = call(&D::provider(Setup::at(&server.base_url()))).await;
    assert_eq!(server.counts().requests, 1);
    facts
}

pub(crate) async fn a_calm_stream<D: Dialect>() {
    let sample = D::sample();
    assert_eq!(answered::<D>(Reply::sse(&sample.parts)).await, sample.facts);
    assert_eq!(answered::<D>(Reply::sse(&sample.parts).unsplit()).await, sample.facts, "in one write");
}

pub(crate) async fn every_byte_its_own_write<D: Dialect>() {
    let sample = D::sample();
    assert_eq!(answered::<D>(Reply::sse(&sample.parts).split_every(1)).await, sample.facts);
}

pub(crate) async fn other_framings<D: Dialect>() {
    let sample = D::sample();
    let reply = Reply::sse(&sample.parts);
    assert_eq!(answered::<D>(reply.clone().content_length()).await, sample.facts);
    assert_eq!(answered::<D>(reply.close_delimited()).await, sample.facts);
    for end in ["\r\n", "\r"] {
        let reply = Reply::sse([sample.bytes().replace('\n', end)]).split_every(7);
        assert_eq!(answered::<D>(reply).await, sample.facts, "lines that end with {end:?}");
    }
    let tight = sample.bytes().replace("data: ", "data:").replace("event: ", "event:");
    assert_eq!(answered::<D>(Reply::sse([tight])).await, sample.facts, "no space after the colon");
}

pub(crate) async fn data_on_several_lines<D: Dialect>() {
    let sample = D::sample();
    // A line feed between JSON tokens changes nothing.
    for end in ["\n", "\r\n", "\r"] {
        let bytes = sample.bytes().replace("data: {", "data: {\ndata:\ndata:").replace('\n', end);
        assert_eq!(answered::<D>(Reply::sse([bytes]).split_every(5)).await, sample.facts, "{end:?}");
    }
}

pub(crate) async fn comments_and_fields_nobody_asked_for<D: Dialect>() {
    let sample = D::sample();
    let noise = ": keep-alive\n\nid: 7\nretry: 1\nunknown\n\n: another\n\n\n";
    let parts = sample.parts.iter().flat_map(|part| [noise, part.as_str()]);
    let marked = ["\u{FEFF}"].into_iter().chain(parts);
    assert_eq!(answered::<D>(Reply::sse(marked)).await, sample.facts);
    let unlabelled = Reply::status(200).body(sample.bytes());
    assert_eq!(answered::<D>(unlabelled).await, sample.facts, "without a content type");
}

pub(crate) async fn a_character_that_is_split_over_two_events<D: Dialect>() {
    let sample = D::sample();
    let halves = [D::text("a<first>"), D::text("<second>b")]
        .map(|part| part.replace("<first>", "\\ud83d").replace("<second>", "\\ude00"));
    let facts = answered::<D>(Reply::sse(halves.into_iter().chain(sample.parts))).await;
    let expected = letters(vec![StreamEvent::Text("a\u{1F600}b".into())]);
    assert_eq!(facts, [expected, sample.facts].concat());
}

pub(crate) async fn a_large_event<D: Dialect>() {
    let large = "0123456789abcdef".repeat(8 << 16);
    let sample = D::sample();
    let parts = [D::text(&large)].into_iter().chain(sample.parts);
    let server = Loopback::start([Reply::sse(parts)]).await;
    let mut facts = told(&D::provider(Setup::at(&server.base_url())), request()).await;
    assert!(facts.remove(0) == StreamEvent::Text(large), "the text is not what was sent");
    assert_eq!(letters(facts), sample.facts);
}

pub(crate) async fn text_that_arrives_together_is_told_together<D: Dialect>() {
    const PARTS: usize = 200;
    let sample = D::sample();
    let parts = [vec![D::text("word "); PARTS], sample.parts].concat();
    let each_its_own_chunk = Reply::sse(parts);
    for (reply, most) in [(each_its_own_chunk.clone().unsplit(), PARTS / 20), (each_its_own_chunk, PARTS / 4)]
    {
        let server = Loopback::start([reply]).await;
        let facts = told(&D::provider(Setup::at(&server.base_url())), request()).await;
        let is_text = |fact: &&StreamEvent| matches!(fact, StreamEvent::Text(_));
        let texts = facts.iter().take_while(is_text).count();
        assert!((1..=most).contains(&texts), "{PARTS} pieces became {texts} facts");
        let expected = [vec![StreamEvent::Text("word ".into()); PARTS], sample.facts.clone()].concat();
        assert_eq!(letters(facts), letters(expected));
    }
}

pub(crate) async fn an_event_over_the_limit<D: Dialect>() {
    let server = Loopback::start([Reply::sse([D::text("a"), D::text(&"b".repeat(2000))])]).await;
    let mut setup = Setup::at(&server.base_url());
    setup.limits = AnswerLimits { event: 2000, ..setup.limits };
    let (told, failure) = failed(call(&D::provider(setup)).await);
    assert_eq!(told, [StreamEvent::Text("a".into())]);
    assert_eq!((failure.category, failure.retryable), (Category::InvalidResponse, false));
    assert!(failure.message.contains("more than 2000 bytes"), "{}", failure.message);
}

pub(crate) async fn an_answer_over_the_limit<D: Dialect>() {
    let endless = vec![D::text("0123456789"); 100];
    let server = Loopback::start([Reply::sse(endless)]).await;
    let mut setup = Setup::at(&server.base_url());
    setup.limits = AnswerLimits { answer: 25, ..setup.limits };
    let (told, failure) = failed(call(&D::provider(setup)).await);
    assert_eq!(told, letters(vec![StreamEvent::Text("0123456789".into()); 2]));
    assert_eq!((failure.category, failure.retryable), (Category::InvalidResponse, false));
    assert!(failure.message.contains("limit of 25 bytes"), "{}", failure.message);
}
