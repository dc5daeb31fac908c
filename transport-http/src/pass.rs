//! Calls that are passed through: a vendor's own paths, requests and answers unchanged.

mod answer;
mod asked;
mod door;
mod error;
mod frames;
mod held;
mod merge;
mod read;

use axum::{
    Router,
    extract::Request,
    http::{HeaderName, StatusCode, header::UPGRADE, request::Parts},
    response::Response,
    routing::{any, post},
};
use bytes::Bytes;
use everturn_orchestrator::Dialect;

use crate::{
    api::{Api, Doors},
    body,
    call::chat::{CONVERSATION_ID, IDEMPOTENCY_KEY},
};
pub(crate) use answer::PassedThrough;
use asked::Asked;
use door::Door;
pub(crate) use error::refused;
use read::Known;

/// Headers that ask for a conversation, or for an answer that is kept however often it is asked for.
const OURS: [HeaderName; 2] = [CONVERSATION_ID, IDEMPOTENCY_KEY];

pub(crate) fn routes() -> Router<Doors> {
    Router::new()
        .route("/v1/messages", post(messages))
        .route("/v1/messages/{*rest}", any(messages))
        .route("/v1/responses", post(responses).get(no_web_socket))
        .route("/v1/responses/{*rest}", any(responses))
        .route("/v1/completions", post(openai))
        .route("/v1/embeddings", post(openai))
        .route("/v1beta/{*rest}", any(gemini))
        .route("/p/{provider}/{*rest}", any(of_provider))
}

/// Returns the dialect of the vendor that this path belongs to, unless it is OpenAI's.
pub(crate) fn dialect_of(path: &str) -> Option<Dialect> {
    match path {
        _ if path == "/v1/messages" || path.starts_with("/v1/messages/") => Some(Dialect::Messages),
        _ if path.starts_with("/v1beta/") => Some(Dialect::Gemini),
        _ => None,
    }
}

pub(crate) async fn messages(api: Api, request: Request) -> Response {
    pass(&api, Door::MESSAGES, request).await
}

pub(crate) async fn responses(api: Api, request: Request) -> Response {
    pass(&api, Door::RESPONSES, request).await
}

/// Clients that would rather use a WebSocket fall back to HTTP at once if they are told to.
async fn no_web_socket(request: Request) -> StatusCode {
    match request.headers().contains_key(UPGRADE) {
        true => StatusCode::UPGRADE_REQUIRED,
        false => StatusCode::METHOD_NOT_ALLOWED,
    }
}

async fn openai(api: Api, request: Request) -> Response {
    pass(&api, Door::OPENAI, request).await
}

pub(crate) async fn gemini(api: Api, request: Request) -> Response {
    pass(&api, Door::GEMINI, request).await
}

/// Any path of one provider.
async fn of_provider(api: Api, request: Request) -> Response {
    let door = Door::of_provider(request.uri().path());
    pass(&api, door, request).await
}

/// Passes a request through.
async fn pass(api: &Api, door: Door, request: Request) -> Response {
    let (head, body) = request.into_parts();
    // The reservation ends when the body has been read; from then on it counts as that of a call.
    match body::whole(body, api).await {
        Ok((bytes, room)) => {
            drop(room);
            send(api, &door, Asked { head, bytes, known: None }).await
        }
        Err(why) => error::refused(door.dialect, why),
    }
}

/// Returns what is known of a Chat Completions request if it is passed through: its model is spoken to in this dialect,
/// wherever it leads, and it asks for nothing that only a turn of ours has.
pub(crate) fn passing_chat(api: &Api, head: &Parts, body: &[u8]) -> Option<Known> {
    if OURS.iter().any(|name| head.headers.contains_key(name)) {
        return None;
    }
    let known = read::body(body);
    // Without a model, it means the default one, which the provider does not know.
    let speaks = |model: &str| api.orchestrator.speaks(model, Dialect::Chat);
    let passes = !known.asks_us && known.model.as_ref().is_some_and(|model| speaks(&model.name));
    passes.then_some(known)
}

/// Passes a Chat Completions request through.
pub(crate) async fn chat(api: &Api, head: Parts, bytes: Bytes, known: Known) -> Response {
    send(api, &Door::CHAT, Asked { head, bytes, known: Some(known) }).await
}

async fn send(api: &Api, door: &Door, asked: Asked) -> Response {
    let sent = async {
        let (call, client) = asked.into_call(door)?;
        let place = api.stream_place()?;
        Ok(match api.orchestrator.pass_through(call) {
            Ok(listener) => answer::answer(client, listener, place, api.limits.hold).await,
            Err(why) => error::not_passed(door.dialect, &why),
        })
    };
    sent.await.unwrap_or_else(|why| error::refused(door.dialect, why))
}
