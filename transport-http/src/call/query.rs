//! Calls that read data.

use axum::{
    Json as Answer,
    http::{HeaderMap, HeaderValue, header::LINK},
};
use everturn_orchestrator::{Day, Error, Page, Take, UsageQuery, Window};
use everturn_wire::{
    Attempts, ClusterState, ConversationList, ConversationState, Health, HistoryWindow, Models, Targets,
    Tools, TurnId, TurnMetrics, TurnMetricsList, UsageKey, UsageReport,
};

use crate::{
    api::Api,
    path::{Conversation, Turn},
    query::{Parameters, percent_encoded},
    refusal::Refusal,
};

/// Maximum number of failed attempts in a response: about 400 kB.
const MOST_ATTEMPTS: usize = 500;

/// Maximum length of a searched text, in characters.
const MOST_SEARCHED: usize = 200;

/// `GET /conversations`: a page of conversations, or of those found, with the next page in the `Link` header.
pub(crate) async fn conversations(
    api: Api,
    parameters: Parameters,
) -> Result<(HeaderMap, Answer<ConversationList>), Refusal> {
    let most = api.limits.list.max(1);
    let limit = parameters.number("limit")?.unwrap_or(most).min(most);
    let orchestrator = &api.orchestrator;
    let before = parameters.text("before")?;
    let (list, next, search) = match parameters.text("search")? {
        Some(text) => {
            check_search(text)?;
            let after = before.map(str::parse).transpose().map_err(Error::BadCursor)?;
            let (list, next) = orchestrator.search(text, after, limit).await?;
            (list, next.map(|next| next.to_string()), format!("&search={}", percent_encoded(text)))
        }
        None => {
            let after = before.map(str::parse).transpose().map_err(Error::BadCursor)?;
            let (list, next) =
                orchestrator.conversations(Page { after, limit: Some(limit), ..Page::default() }).await?;
            (list, next.map(|next| next.to_string()), String::new())
        }
    };
    let mut headers = HeaderMap::new();
    if let Some(next) = next {
        let link = format!(r#"</conversations?limit={limit}&before={next}{search}>; rel="next""#);
        headers.extend(HeaderValue::try_from(link).ok().map(|link| (LINK, link)));
    }
    Ok((headers, Answer(list)))
}

fn check_search(text: &str) -> Result<(), Refusal> {
    let length = text.chars().count();
    match text.trim().is_empty() || length > MOST_SEARCHED {
        true => Err(Refusal::bad(format!(
            "search must be 1 to {MOST_SEARCHED} characters that are not all blank, not {length}"
        ))),
        false => Ok(()),
    }
}

/// `GET /conversations/{id}`
pub(crate) async fn history(
    api: Api,
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
        // A client that reads everything after a chunk continues from the last chunk received.
        take: if since_seq.is_some() && asked.is_none() { Take::Oldest } else { Take::Newest },
    };
    Ok(Answer(api.orchestrator.history(&id, window).await?))
}

/// `GET /conversations/{id}/status`
pub(crate) async fn status(
    api: Api,
    Conversation(id): Conversation,
) -> Result<Answer<ConversationState>, Refusal> {
    Ok(Answer(api.orchestrator.status(&id).await?))
}

/// `GET /conversations/{id}/metrics`
pub(crate) async fn metrics(
    api: Api,
    Conversation(id): Conversation,
) -> Result<Answer<TurnMetricsList>, Refusal> {
    Ok(Answer(TurnMetricsList { turns: api.orchestrator.metrics(&id).await? }))
}

/// `GET /conversations/{id}/turns/{turnId}`
pub(crate) async fn turn(
    api: Api,
    Conversation(id): Conversation,
    Turn(turn_id): Turn,
) -> Result<Answer<TurnMetrics>, Refusal> {
    Ok(Answer(api.orchestrator.turn(&id, &turn_id).await?))
}

/// `GET /conversations/{id}/attempts`
pub(crate) async fn attempts(
    api: Api,
    Conversation(id): Conversation,
    parameters: Parameters,
) -> Result<Answer<Attempts>, Refusal> {
    let limit = parameters.number("limit")?.unwrap_or(MOST_ATTEMPTS).min(MOST_ATTEMPTS);
    let turn_id = parameters.text("turnId")?.map(TurnId::from);
    Ok(Answer(api.orchestrator.attempts(&id, turn_id.as_ref(), limit).await?))
}

/// `GET /models`
pub(crate) async fn models(api: Api) -> Answer<Models> {
    Answer(Models { models: api.orchestrator.models(), model_info: None })
}

/// `GET /targets`
pub(crate) async fn targets(api: Api) -> Answer<Targets> {
    Answer(Targets { targets: api.orchestrator.targets() })
}

/// `GET /usage`
pub(crate) async fn usage(api: Api, parameters: Parameters) -> Result<Answer<UsageReport>, Refusal> {
    let day = |name| {
        let day = parameters.text(name)?.map(str::parse::<Day>).transpose();
        day.map_err(|why| Refusal::bad(format!("{name}: {why}")))
    };
    let query = UsageQuery { by: keys(parameters.text("by")?)?, from: day("from")?, to: day("to")? };
    Ok(Answer(api.orchestrator.usage(query).await?))
}

/// Reads what rows of usage are for, separated by commas.
fn keys(text: Option<&str>) -> Result<Vec<UsageKey>, Refusal> {
    let mut keys = Vec::new();
    for word in text.unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let key = UsageKey::ALL.into_iter().find(|key| key.as_str() == word).ok_or_else(|| {
            Refusal::bad(format!(
                "by: {word:?} is none of {}",
                UsageKey::ALL.map(UsageKey::as_str).join(", ")
            ))
        })?;
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    Ok(keys)
}

/// `GET /cluster`
pub(crate) async fn cluster(api: Api) -> Result<Answer<ClusterState>, Refusal> {
    Ok(Answer(api.orchestrator.cluster().await?))
}

/// `GET /tools`
pub(crate) async fn tools(api: Api) -> Answer<Tools> {
    Answer(api.orchestrator.tools())
}

/// `GET /health`
pub(crate) async fn health() -> Answer<Health> {
    Answer(Health { ok: true })
}
