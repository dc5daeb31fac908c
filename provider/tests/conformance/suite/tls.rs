//! TLS that ends without a goodbye, certificates that are not valid, and handshakes that fail.

use everturn_kernel::StreamEvent;
use everturn_sim::{Authority, Handshake, Loopback, Reply, Tls};
use everturn_wire::{Category, Failure};

use super::breakage::told_at_most;
use crate::dialect::{Dialect, Setup, call, failed};

/// Returns the setup for a server whose authority is trusted.
pub(crate) fn trusting(server: &Loopback, authority: &Authority) -> Setup {
    Setup { authority: Some(authority.certificate().to_vec()), ..Setup::at(&server.base_url()) }
}

pub(crate) async fn a_connection_that_ends_without_a_goodbye<D: Dialect>() {
    let sample = D::sample();
    let at_most = told_at_most(&sample);
    let authority = Authority::new();
    let tls = Tls::http1(&authority.issue());
    let length = sample.bytes().len();
    let framings: [fn(Reply) -> Reply; 3] = [Reply::chunked, Reply::content_length, Reply::close_delimited];
    for (number, framing) in framings.into_iter().enumerate() {
        // Before the first byte, inside and after each event, and where the answer is complete.
        let starts = (0..=sample.parts.len()).map(|parts| sample.bytes_of(parts));
        let offsets: Vec<_> = starts.flat_map(|start| [start, (start + 7).min(length)]).collect();
        let (tls, reply, cuts) = (tls.clone(), framing(Reply::sse(&sample.parts)), offsets.clone());
        let server = Loopback::secured(
            move |_| Handshake::Complete(tls.clone()),
            move |request| reply.clone().truncate_at(cuts[request.index]),
        );
        let server = server.await;
        let provider = D::provider(trusting(&server, &authority));
        for &offset in &offsets {
            let facts = call(&provider).await;
            // A content length tells where the body ends, and an event where the answer does.
            if offset == length && (D::HAS_LAST_EVENT || number == 1) {
                assert_eq!(facts, sample.facts, "complete: {number}");
                continue;
            }
            if let Some(StreamEvent::Finished(_)) = facts.last() {
                assert!(D::HAS_LAST_EVENT && offset >= sample.bytes_of(sample.sufficient), "at {offset}");
                continue;
            }
            let (told, failure) = failed(facts);
            assert!(at_most.starts_with(&told), "at {offset}: {told:?}");
            assert_eq!((failure.category, failure.retryable), (Category::Network, true), "{failure:?}");
        }
        assert_eq!(server.counts().requests, offsets.len(), "one request per call");
    }
}

/// Makes a call with a handshake like this, and returns its failure.
async fn failed_handshake<D: Dialect>(handshake: Handshake, authority: &Authority) -> Failure {
    let server = Loopback::secured(move |_| handshake.clone(), |_| Reply::status(200)).await;
    let (told, failure) = failed(call(&D::provider(trusting(&server, authority))).await);
    assert_eq!((told, failure.category), (vec![], Category::Network), "{failure:?}");
    let counts = server.until(|counts| counts.failed_handshakes == 1).await;
    assert_eq!((counts.connections, counts.requests), (1, 0), "the request went to nobody");
    failure
}

pub(crate) async fn a_certificate_that_is_not_valid<D: Dialect>() {
    let (authority, other) = (Authority::new(), Authority::new());
    for (identity, expected) in [
        (authority.issue_expired(), "expired"),
        (authority.issue_for("api.example"), "not valid for name"),
        (other.issue(), "UnknownIssuer"),
    ] {
        let failure = failed_handshake::<D>(Handshake::Complete(Tls::http2(&identity)), &authority).await;
        assert!(failure.message.contains(expected), "{}", failure.message);
        assert!(!failure.retryable, "the next call would not be answered either: {failure:?}");
    }
}

pub(crate) async fn a_handshake_that_breaks<D: Dialect>() {
    let authority = Authority::new();
    for handshake in [Handshake::Instead(b""), Handshake::Reset, Handshake::Instead(&[22, 3, 3, 0, 90, 2])] {
        let failure = failed_handshake::<D>(handshake.clone(), &authority).await;
        assert!(failure.retryable, "{handshake:?}: {failure:?}");
    }
    let plain = Handshake::Instead(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n");
    let failure = failed_handshake::<D>(plain, &authority).await;
    assert!(!failure.retryable && failure.message.contains("does not speak TLS"), "{failure:?}");
    assert!(failure.advice.as_deref().is_some_and(|advice| advice.contains("base URL")), "{failure:?}");
}

pub(crate) async fn a_certificate_that_is_replaced<D: Dialect>() {
    let sample = D::sample();
    let authority = Authority::new();
    let identities = [authority.issue(), authority.issue_expired(), authority.issue()];
    let handshakes = identities.map(|identity| Handshake::Complete(Tls::http1(&identity)));
    // After the first answer, the connection ends.
    let reply = Reply::sse(&sample.parts).close_delimited();
    let server = Loopback::secured(move |number| handshakes[number].clone(), move |_| reply.clone()).await;
    let provider = D::provider(trusting(&server, &authority));
    assert_eq!(call(&provider).await, sample.facts);
    let (_, failure) = failed(call(&provider).await);
    assert!(failure.message.contains("expired"), "{failure:?}");
    assert_eq!(call(&provider).await, sample.facts, "the client does not remember the bad one");
    assert_eq!((server.counts().requests, server.counts().connections), (2, 3));
}

pub(crate) async fn a_server_without_http2<D: Dialect>() {
    let sample = D::sample();
    let authority = Authority::new();
    let (tls, reply) = (Tls::http1(&authority.issue()), Reply::sse(&sample.parts));
    let server = Loopback::secured(move |_| Handshake::Complete(tls.clone()), move |_| reply.clone()).await;
    assert_eq!(call(&D::provider(trusting(&server, &authority))).await, sample.facts);
    assert!(!server.requests()[0].path.is_empty(), "it was HTTP/1.1");
}
