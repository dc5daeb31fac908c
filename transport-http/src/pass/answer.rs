//! Sends an answer as it comes.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    body::Body,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use bytes::Bytes;
use everturn_orchestrator::{Dialect, Listener, NoAnswer, Said};
use futures_util::{Stream, StreamExt as _};
use tokio::sync::OwnedSemaphorePermit;

use super::error;

/// Marks a response that nothing may be added to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassedThrough;

/// Returns the response to a call.
pub(super) async fn answer(
    dialect: Dialect,
    mut listener: Listener,
    place: OwnedSemaphorePermit,
) -> Response {
    match listener.next().await {
        Some(Said::Head(status, headers)) => passed(status, headers, Pieces { listener, _place: place }),
        Some(Said::Nothing(why)) => error::no_answer(dialect, &why),
        // A tape begins with one of these.
        Some(Said::Piece(_) | Said::End | Said::Cut) | None => error::no_answer(dialect, &NoAnswer::Left),
    }
}

fn passed(status: StatusCode, headers: HeaderMap, pieces: Pieces) -> Response {
    let mut response = Response::new(Body::from_stream(pieces));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response.extensions_mut().insert(PassedThrough);
    response
}

/// The rest of an answer.
struct Pieces {
    listener: Listener,
    _place: OwnedSemaphorePermit,
}

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.listener.poll_next_unpin(cx).map(|said| match said? {
            Said::Piece(piece) => Some(Ok(piece)),
            Said::End => None,
            Said::Head(..) | Said::Cut | Said::Nothing(_) => {
                Some(Err(io::ErrorKind::ConnectionAborted.into()))
            }
        })
    }
}
