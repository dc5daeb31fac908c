//! A stream that is held while its call waits, and whose caller's token ends meanwhile. The runtime's clock advances when all
//! tasks wait.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use everturn_orchestrator::{
    Dialect, Outgoing, Passed, RelayProvider, Scope, Upstream,
    kernel::{FinishReason, StreamEvent},
};
use everturn_transport_http::{Access, CallLimits, Callers, Guard, KnownCaller, Metrics, TokenHash, router};
use everturn_wire::CallerName;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use hyper::{
    Method, StatusCode,
    header::{HeaderName, HeaderValue},
};
use serde_json::{Value, json};

use crate::{
    client::{Answer, call, request},
    world::{HandClock, World},
};

/// Never answers.
struct Silent;

impl Upstream for Silent {
    fn send(&self, _: Outgoing) -> BoxStream<'static, Passed> {
        stream::pending().boxed()
    }
}

/// A way to ask, and a frame that holds it.
struct Door {
    provider: &'static str,
    dialect: Dialect,
    path: &'static str,
    frame: &'static str,
    /// The event that ends it.
    event: &'static str,
    error: fn(&Value) -> (&Value, &Value),
    kind: &'static str,
}

const DOORS: [Door; 4] = [
    Door {
        provider: "messages",
        dialect: Dialect::Messages,
        path: "/v1/messages",
        frame: "event: ping",
        event: "event: error\n",
        error: |event| (&event["error"]["type"], &event["error"]["message"]),
        kind: "authentication_error",
    },
    Door {
        provider: "responses",
        dialect: Dialect::Responses,
        path: "/v1/responses",
        frame: "event: response.created",
        event: "event: response.failed\n",
        error: |event| (&event["response"]["error"]["code"], &event["response"]["error"]["message"]),
        kind: "invalid_prompt",
    },
    Door {
        provider: "chat",
        dialect: Dialect::Chat,
        path: "/v1/chat/completions",
        frame: ": everturn waits",
        event: "",
        error: |event| (&event["error"]["type"], &event["error"]["message"]),
        kind: "authentication_error",
    },
    Door {
        provider: "gemini",
        dialect: Dialect::Gemini,
        path: "/v1beta/models/m:streamGenerateContent?alt=sse",
        frame: "data: {}",
        event: "",
        error: |event| (&event["error"]["status"], &event["error"]["message"]),
        kind: "UNAUTHENTICATED",
    },
];

fn known(token: Option<&str>) -> KnownCaller {
    KnownCaller {
        name: CallerName::parse("ann").unwrap(),
        scopes: vec![Scope::Chat, Scope::Calls],
        token: token.map(|token| TokenHash::of(token.as_bytes())),
        until: Some(60_000),
        terms: Default::default(),
        models: Vec::new(),
    }
}

/// A server that Ann may use for a minute, and those who may use it.
async fn served() -> (World, Callers, Arc<HandClock>) {
    let mut callers = None;
    let clock = Arc::new(HandClock::default());
    let shared = clock.clone();
    let world = World::serve_built(
        |builder| {
            DOORS.iter().fold(builder, |builder, door| {
                let mut provider = RelayProvider::new(door.provider, door.dialect, Arc::new(Silent));
                provider.models = vec!["m".to_owned()];
                builder.relay(provider)
            })
        },
        |orchestrator, address| {
            let known_callers = Callers::new(shared);
            known_callers.replace(vec![known(Some("anns"))]);
            callers = Some(known_callers.clone());
            let access = Access {
                bound: address,
                hosts: Vec::new(),
                origins: Vec::new(),
                token: None,
                callers: known_callers,
                caller_header: None,
                is_open: |_| false,
            };
            let app = router(orchestrator, CallLimits::default(), Metrics::none());
            Guard::new(access).unwrap().protect(app)
        },
    )
    .await;
    (world, callers.unwrap(), clock)
}

/// Asks for a stream, and reads so many frames that hold it.
async fn held(world: &World, door: &Door, frames: usize) -> Answer {
    let body =
        json!({ "model": format!("{}/m", door.provider), "stream": true, "messages": [], "input": "" });
    let request = request(Method::POST, world.address, door.path);
    let request = request.header("content-type", "application/json").header("authorization", "Bearer anns");
    let mut answer = call(world.address, request.body(Body::from(body.to_string())).unwrap()).await;
    assert_eq!(answer.status, 200, "{}", door.provider);
    let first = answer.until("\n\n").await.unwrap();
    assert!(first.starts_with(door.frame), "{first}");
    for _ in 1..frames {
        answer.until("\n\n").await.unwrap();
    }
    answer
}

/// Checks that it ends with the dialect's own error, in good order.
async fn assert_ends(door: &Door, answer: Answer, how: &str) {
    let (rest, is_cut_off) = answer.rest().await;
    let what = format!("{}, {how}: {rest}", door.provider);
    assert!(!is_cut_off, "{what}");
    // Frames that hold it may have been on their way.
    let last = rest.trim_end().rsplit("\n\n").next().unwrap();
    let data = last.strip_prefix(door.event).and_then(|last| last.strip_prefix("data: "));
    let event: Value = serde_json::from_str(data.expect(&what)).expect(&what);
    let (kind, message) = (door.error)(&event);
    assert_eq!(kind, door.kind, "{what}");
    assert!(message.as_str().unwrap().ends_with("this token is no longer valid"), "{what}");
}

#[tokio::test(start_paused = true)]
async fn a_held_stream_ends_with_an_error_of_its_dialect_when_its_token_does() {
    type End = fn(&Callers, &HandClock);
    let ends: [(&str, End); 4] = [
        ("revoked", |callers, _| callers.replace(vec![known(None)])),
        ("replaced", |callers, _| callers.replace(vec![known(Some("another"))])),
        ("deleted", |callers, _| callers.replace(Vec::new())),
        ("expired", |callers, clock| {
            callers.expire();
            clock.advance(Duration::from_secs(60));
            callers.expire();
        }),
    ];
    for (how, end) in ends {
        let (world, callers, clock) = served().await;
        let mut streams = Vec::new();
        for door in &DOORS {
            streams.push((door, held(&world, door, 2).await));
        }
        // A message that was begun so that its client goes on waiting.
        streams.push((&DOORS[0], held(&world, &DOORS[0], 26).await));
        end(&callers, &clock);
        for (door, stream) in streams {
            assert_ends(door, stream, how).await;
        }
    }
}

/// Answers after a while, through a proxy that writes headers its own way.
struct Late;

impl Upstream for Late {
    fn send(&self, _: Outgoing) -> BoxStream<'static, Passed> {
        let headers = [("content-type", "Text/Event-Stream;charset=utf-8"), ("content-encoding", "identity")];
        let headers = headers
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .into_iter()
            .collect();
        let facts = [StreamEvent::Opaque, StreamEvent::Finished(FinishReason::Stop)].map(Passed::Fact);
        let [begins, ends] = facts;
        let piece = Passed::Piece("data: [DONE]\n\n".into());
        let head = async move {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Passed::Head(StatusCode::OK, headers)
        };
        stream::once(head).chain(stream::iter([begins, piece, ends])).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_frames_is_passed_on_however_its_headers_are_written() {
    let world = World::serve_built(
        |builder| builder.relay(RelayProvider::new("late", Dialect::Chat, Arc::new(Late))),
        |orchestrator, _| router(orchestrator, CallLimits::default(), Metrics::none()),
    )
    .await;
    let request = request(Method::POST, world.address, "/v1/chat/completions");
    let body = json!({ "model": "m", "stream": true, "messages": [] }).to_string();
    let request = request.header("content-type", "application/json").body(Body::from(body)).unwrap();
    let answer = call(world.address, request).await;
    let (told, is_cut_off) = answer.rest().await;
    assert!(told.starts_with(": everturn waits") && told.ends_with("\n\ndata: [DONE]\n\n"), "{told}");
    assert!(!is_cut_off);
}
