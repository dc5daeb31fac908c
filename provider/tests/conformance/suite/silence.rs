//! Silent peers. The clock is paused, and advances when all tasks wait.

use std::time::Duration;

use everturn_kernel::{Silence, StreamEvent};
use everturn_provider::Timeouts;
use everturn_sim::{Gate, Loopback, Reply};
use everturn_wire::{Category, Failure};
use tokio::time::Instant;

use crate::dialect::{Dialect, Setup, call, failed, letters, request, told};

/// Calls a server that falls silent. Returns the duration of the call, too.
async fn silenced<D: Dialect>(reply: Reply) -> (Vec<StreamEvent>, Failure, Duration) {
    let server = Loopback::start([reply]).await;
    let provider = D::provider(Setup::at(&server.base_url()));
    let begun = Instant::now();
    let (told, failure) = failed(call(&provider).await);
    let waited = begun.elapsed();
    server.until(|seen| seen.abandoned == 1).await;
    assert_eq!(server.counts().requests, 1);
    (told, failure, waited)
}

fn assert_timeout(failure: &Failure, waited: Duration, expected: Duration) {
    assert_eq!((failure.category, failure.retryable), (Category::Timeout, true), "{failure:?}");
    assert!(failure.message.contains(&format!("{expected:?}")), "it says how long: {}", failure.message);
    let late = waited.checked_sub(expected);
    assert!(late.is_some_and(|late| late < Duration::from_millis(50)), "waited {waited:?} for {expected:?}");
}

pub(crate) async fn no_response_at_all<D: Dialect>() {
    let (told, failure, waited) = silenced::<D>(Reply::sse(D::sample().parts).hold(&Gate::new())).await;
    assert_eq!(told, []);
    assert_timeout(&failure, waited, Timeouts::default().first_byte);
}

pub(crate) async fn no_body_after_the_head<D: Dialect>() {
    let (told, failure, waited) =
        silenced::<D>(Reply::sse(D::sample().parts).stall_at(0, &Gate::new())).await;
    assert_eq!(told, []);
    assert_timeout(&failure, waited, Timeouts::default().idle);
}

pub(crate) async fn silence_after_every_part<D: Dialect>() {
    let sample = D::sample();
    for parts in 1..sample.parts.len() {
        let reply = Reply::sse(&sample.parts).stall_before(parts, &Gate::new());
        let (told, failure, waited) = silenced::<D>(reply).await;
        assert!(sample.facts.starts_with(&told), "{told:?}");
        assert_timeout(&failure, waited, Timeouts::default().idle);
    }
}

pub(crate) async fn silence_inside_an_event<D: Dialect>() {
    let sample = D::sample();
    let reply = Reply::sse(&sample.parts).stall_at(sample.bytes().len() - 3, &Gate::new());
    let (_, failure, waited) = silenced::<D>(reply).await;
    assert_timeout(&failure, waited, Timeouts::default().idle);
}

pub(crate) async fn a_silent_explanation<D: Dialect>() {
    let reply = Reply::status(502).chunked().body("half a page, and half").stall_at(11, &Gate::new());
    let (told, failure, waited) = silenced::<D>(reply).await;
    assert_eq!(
        (told, failure.message.as_str()),
        (vec![], "HTTP 502: half a page"),
        "what came is what there is"
    );
    assert!(waited <= Timeouts::default().idle + Duration::from_millis(50), "waited {waited:?}");
}

/// Calls a server that sends something just before each idle timeout, for an hour.
async fn an_hour<D: Dialect>(timeouts: Timeouts, parts: Vec<String>, expected: Vec<StreamEvent>) {
    let pause = timeouts.idle - Duration::from_secs(1);
    let server = Loopback::start([Reply::sse(parts).paced(pause)]).await;
    let provider = D::provider(Setup { timeouts, ..Setup::at(&server.base_url()) });
    let begun = Instant::now();
    assert_eq!(call(&provider).await, expected);
    assert!(begun.elapsed() > Duration::from_secs(3600));
}

/// Timeouts for servers that send no content for a long time.
fn patient() -> Timeouts {
    Timeouts { progress: Duration::from_secs(86_400), ..Timeouts::default() }
}

pub(crate) async fn an_hour_of_words<D: Dialect>() {
    let sample = D::sample();
    // The sample's comments and preamble have no content. At this pace they would exceed the progress timeout.
    let parts = [vec![D::text("a"); 62], vec![sample.bytes()]].concat();
    let expected = [vec![StreamEvent::Text("a".into()); 62], sample.facts].concat();
    an_hour::<D>(Timeouts::default(), parts, expected).await;
}

pub(crate) async fn an_hour_of_comments<D: Dialect>() {
    let sample = D::sample();
    let parts = [vec![":".to_owned(); 62], vec!["\n\n".to_owned()], sample.parts].concat();
    an_hour::<D>(patient(), parts, sample.facts).await;
}

pub(crate) async fn a_byte_every_twenty_seconds<D: Dialect>() {
    let sample = D::sample();
    let pause = Duration::from_secs(20);
    let server = Loopback::start([Reply::sse(&sample.parts).split_every(1).paced(pause)]).await;
    let begun = Instant::now();
    let setup = Setup { timeouts: patient(), ..Setup::at(&server.base_url()) };
    assert_eq!(call(&D::provider(setup)).await, sample.facts);
    assert!(begun.elapsed() > Duration::from_secs(3600), "{:?}", begun.elapsed());
}

/// Splits events into silences, with milliseconds rounded to seconds, and the rest.
fn silences(facts: Vec<StreamEvent>) -> (Vec<(u64, u64, bool)>, Vec<StreamEvent>) {
    let seconds = |ms: u64| (ms + 500) / 1000;
    let (silent, rest): (Vec<_>, _) =
        facts.into_iter().partition(|fact| matches!(fact, StreamEvent::Silent(_)));
    let silent = silent.into_iter().filter_map(|fact| match fact {
        StreamEvent::Silent(Silence { silent_ms, left_ms, alive }) => {
            Some((seconds(silent_ms), seconds(left_ms.expect("a call is not borne for ever")), alive))
        }
        _ => None,
    });
    (silent.collect(), rest)
}

pub(crate) async fn a_silence_is_told_while_it_lasts<D: Dialect>() {
    let sample = D::sample();
    for (reply, expected) in [
        (Reply::sse(&sample.parts).hold(&Gate::new()), &[(20, 100, false), (80, 40, false)][..]),
        (
            Reply::sse(&sample.parts).stall_at(0, &Gate::new()),
            &[(20, 280, false), (80, 220, false), (140, 160, false), (200, 100, false), (260, 40, false)],
        ),
    ] {
        let server = Loopback::start([reply]).await;
        let facts = told(&D::provider(Setup::at(&server.base_url())), request()).await;
        let (silent, rest) = silences(facts);
        assert_eq!(silent, expected);
        assert!(matches!(&rest[..], [StreamEvent::Failed(_)]), "{rest:?}");
    }
}

/// A healthy server pauses. The events after the pause are yielded as usual.
pub(crate) async fn a_pause_is_told_and_changes_nothing<D: Dialect>() {
    let sample = D::sample();
    let pause = Duration::from_secs(30);
    let parts = [vec![D::text("a"); 3], sample.parts].concat();
    let server = Loopback::start([Reply::sse(&parts).paced(pause)]).await;
    let facts = told(&D::provider(Setup::at(&server.base_url())), request()).await;
    let (silent, rest) = silences(facts);
    assert_eq!(rest[..3], vec![StreamEvent::Text("a".into()); 3], "what comes by itself is told by itself");
    assert_eq!(letters(rest), [vec![StreamEvent::Text("a".into()); 3], sample.facts].concat());
    assert!(silent.len() >= 3 && silent[..3].iter().all(|told| *told == (20, 280, false)), "{silent:?}");
}

/// Endless bytes without content, before and in the middle of an answer.
pub(crate) async fn signs_of_life_alone_are_given_up<D: Dialect>() {
    let idle = [": ping\n\n".to_owned(), D::pings()].concat();
    for words in [0, 2] {
        let parts = [vec![D::text("a"); words], vec![idle.clone(); 200]].concat();
        let server = Loopback::start([Reply::sse(parts).paced(Duration::from_secs(15))]).await;
        let begun = Instant::now();
        let facts = told(&D::provider(Setup::at(&server.base_url())), request()).await;
        let (silent, rest) = silences(facts);
        let (said, failure) = failed(rest);
        assert_eq!(said, vec![StreamEvent::Text("a".into()); words]);
        assert_eq!((failure.category, failure.retryable), (Category::Timeout, true), "{failure:?}");
        assert!(failure.message.contains("600s"), "{}", failure.message);
        let bound = Timeouts::default().progress;
        assert!(begun.elapsed() < bound + Duration::from_secs(60), "{:?}", begun.elapsed());
        assert!(silent.len() >= 9 && silent.iter().all(|(.., alive)| *alive), "{silent:?}");
        server.until(|seen| seen.abandoned == 1).await;
    }
}

pub(crate) async fn no_handshake<D: Dialect>() {
    // A server without TLS waits for the rest of what it takes for a request.
    let server = Loopback::start([Reply::status(200)]).await;
    let address = server.base_url().replace("http://", "https://");
    let provider = D::provider(Setup::at(&address));
    let begun = Instant::now();
    let (told, failure) = failed(call(&provider).await);
    assert_eq!((told, failure.category, failure.retryable), (vec![], Category::Timeout, true));
    assert!(
        begun.elapsed() < Timeouts::default().connect + Duration::from_millis(50),
        "{:?}",
        begun.elapsed()
    );
}
