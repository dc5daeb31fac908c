//! Peers that fall silent. The clock is paused: it moves on when nobody has anything left to do.

use std::time::Duration;

use everturn_kernel::StreamEvent;
use everturn_provider::Timeouts;
use everturn_sim::{Gate, Loopback, Reply};
use everturn_wire::{Category, Failure};
use tokio::time::Instant;

use crate::dialect::{Dialect, Setup, call, failed};

/// Calls a server that falls silent; says how long the call waited.
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

/// Calls a server that says something just before the idle timeout, for an hour.
async fn an_hour<D: Dialect>(parts: Vec<String>, expected: Vec<StreamEvent>) {
    let pause = Timeouts::default().idle - Duration::from_secs(1);
    let server = Loopback::start([Reply::sse(parts).paced(pause)]).await;
    let provider = D::provider(Setup::at(&server.base_url()));
    let begun = Instant::now();
    assert_eq!(call(&provider).await, expected);
    assert!(begun.elapsed() > Duration::from_secs(3600));
}

pub(crate) async fn an_hour_of_words<D: Dialect>() {
    let sample = D::sample();
    let parts = [vec![D::text("a"); 62], sample.parts].concat();
    let expected = [vec![StreamEvent::Text("a".into()); 62], sample.facts].concat();
    an_hour::<D>(parts, expected).await;
}

pub(crate) async fn an_hour_of_comments<D: Dialect>() {
    let sample = D::sample();
    let parts = [vec![":".to_owned(); 62], vec!["\n\n".to_owned()], sample.parts].concat();
    an_hour::<D>(parts, sample.facts).await;
}

pub(crate) async fn a_byte_every_twenty_seconds<D: Dialect>() {
    let sample = D::sample();
    let pause = Duration::from_secs(20);
    let server = Loopback::start([Reply::sse(&sample.parts).split_every(1).paced(pause)]).await;
    let begun = Instant::now();
    assert_eq!(call(&D::provider(Setup::at(&server.base_url()))).await, sample.facts);
    assert!(begun.elapsed() > Duration::from_secs(3600), "{:?}", begun.elapsed());
}

pub(crate) async fn no_handshake<D: Dialect>() {
    // A server that speaks no TLS waits for the rest of what it takes for a request.
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
