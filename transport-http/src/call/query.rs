//! Calls that read.

use axum::{
    Json as Answer,
    extract::State,
    http::{HeaderMap, HeaderValue, header::LINK},
};
use everturn_orchestrator::{Error, Page, Take, Window};
use everturn_wire::{
    ConversationList, ConversationState, Health, HistoryWindow, Models, Targets, Tools, TurnMetricsList,
};

use crate::{api::Api, path::Conversation, query::Parameters, refusal::Refusal};

/// `GET /conversations`: a page of them, and in `Link` where the next one is.
pub(crate) async fn conversations(
    State(api): State<Api>,
    parameters: Parameters,
) -> Result<(HeaderMap, Answer<ConversationList>), Refusal> {
    let most = api.limits.list.max(1);
    let limit = parameters.number("limit")?.unwrap_or(most).min(most);
    let after = parameters.text("before")?.map(str::parse).transpose().map_err(Error::BadCursor)?;
    let (list, next) = api.orchestrator.conversations(Page { after, limit: Some(limit) }).await?;
    let mut headers = HeaderMap::new();
    if let Some(next) = next {
        let link = format!(r#"</conversations?limit={limit}&before={next}>; rel="next""#);
        headers.extend(HeaderValue::try_from(link).ok().map(|link| (LINK, link)));
    }
    Ok((headers, Answer(list)))
}

/// `GET /conversations/{id}`
pub(crate) async fn history(
    State(api): State<Api>,
    Conversation(id): Conversation,
    parameters: Parameters,
) -> Result<Answer<HistoryWindow>, Refusal> {
    let since_seq = parameters.number("sinceSeq")?;
    let asked: Option<usize> = parameters.number("limit")?;
    let bytes = api.limits.window;
    let window = Window {
        since_seq,
        before_seq: parameters.number("beforeSeq")?,
        limit: Some(asked.unwrap_or(api.limits.chunks)),
        max_bytes: Some(if asked.is_some() { bytes.saturating_mul(4) } else { bytes }),
        // Who asks for all after a chunk goes on after the last one that is given.
        take: if since_seq.is_some() && asked.is_none() { Take::Oldest } else { Take::Newest },
    };
    Ok(Answer(api.orchestrator.history(&id, window).await?))
}

/// `GET /conversations/{id}/status`
pub(crate) async fn status(
    State(api): State<Api>,
    Conversation(id): Conversation,
) -> Result<Answer<ConversationState>, Refusal> {
    Ok(Answer(api.orchestrator.status(&id).await?))
}

/// `GET /conversations/{id}/metrics`
pub(crate) async fn metrics(
    State(api): State<Api>,
    Conversation(id): Conversation,
) -> Result<Answer<TurnMetricsList>, Refusal> {
    Ok(Answer(TurnMetricsList { turns: api.orchestrator.metrics(&id).await? }))
}

/// `GET /models`
pub(crate) async fn models(State(api): State<Api>) -> Answer<Models> {
    Answer(Models { models: api.orchestrator.models(), model_info: None })
}

/// `GET /targets`
pub(crate) async fn targets(State(api): State<Api>) -> Answer<Targets> {
    Answer(Targets { targets: api.orchestrator.targets() })
}

/// `GET /tools`
pub(crate) async fn tools(State(api): State<Api>) -> Answer<Tools> {
    Answer(api.orchestrator.tools())
}

/// `GET /health`
pub(crate) async fn health() -> Answer<Health> {
    Answer(Health { ok: true })
}
