//! Path parameters.

use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::request::Parts,
};
use everturn_orchestrator::Error;
use everturn_wire::{ConversationId, TurnId};

use crate::refusal::Refusal;

/// `{id}`: a conversation.
pub(crate) struct Conversation(pub(crate) ConversationId);

/// `{turnId}`: a turn.
pub(crate) struct Turn(pub(crate) TurnId);

/// `{messageId}`: a queued message.
pub(crate) struct MessageId(pub(crate) String);

/// `{tool}`: a tool, by name.
pub(crate) struct Tool(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Tool {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        Ok(Self(parameter(parts, state, "tool").await?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Turn {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        Ok(Self(parameter(parts, state, "turnId").await?.into()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Conversation {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let id = ConversationId::parse_any(&parameter(parts, state, "id").await?).map_err(Error::from)?;
        Ok(Self(id))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for MessageId {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        Ok(Self(parameter(parts, state, "messageId").await?))
    }
}

async fn parameter<S: Send + Sync>(parts: &mut Parts, state: &S, name: &str) -> Result<String, Refusal> {
    let all = RawPathParams::from_request_parts(parts, state).await?;
    let found = all.iter().find(|(parameter, _)| *parameter == name);
    Ok(found.map(|(_, value)| value.to_owned()).unwrap_or_default())
}
