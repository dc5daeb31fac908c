//! The call that exports a conversation as a file.

use axum::{
    body::Body,
    http::{
        HeaderValue,
        header::{CONTENT_DISPOSITION, CONTENT_TYPE},
    },
    response::Response,
};

use crate::{
    api::Api,
    export::{self, Format},
    path::Conversation,
    query::Parameters,
    refusal::Refusal,
};

/// `GET /conversations/{id}/export`
pub(crate) async fn export(
    api: Api,
    Conversation(id): Conversation,
    parameters: Parameters,
) -> Result<Response, Refusal> {
    let format = match parameters.text("format")? {
        Some("jsonl") | None => Format::Jsonl,
        Some("markdown") => Format::Markdown,
        Some(other) => {
            return Err(Refusal::bad(format!("format must be jsonl or markdown, not {other:?}")));
        }
    };
    let orchestrator = &api.orchestrator;
    let place = api.stream_place()?;
    let export = orchestrator.export(&id).await?;
    let name = export::file_name(&export.head().title, format);
    let mut response = Response::new(Body::from_stream(export::pieces(export, format, place)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    headers.extend(HeaderValue::try_from(name).ok().map(|name| (CONTENT_DISPOSITION, name)));
    Ok(response)
}
