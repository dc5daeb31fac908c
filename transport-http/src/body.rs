//! Request bodies.

use std::{borrow::Cow, fmt};

use axum::{
    body::{Body, Bytes, HttpBody as _},
    extract::{FromRequest, Request},
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE, request::Parts},
};
use futures_util::StreamExt as _;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, timeout_at},
};

use crate::{
    api::{Doors, Room},
    refusal::Refusal,
};

/// Bytes of each body that do not count against the shared limit, so that small requests are not refused because others
/// are large.
const OWN_ROOM: usize = 16 << 10;

/// How much is trusted to come of the length that a request gives, in bytes; beyond it, as much again as has come.
const TRUSTED: usize = 64 << 10;

/// A JSON body that has not been read yet, and its reserved space.
pub(crate) struct Unread {
    pub(crate) bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl Unread {
    /// Takes the body of a request.
    pub(crate) async fn of(request: Request, shared: &Room) -> Result<Self, Refusal> {
        let (head, body) = request.into_parts();
        let (bytes, room) = whole(body, shared).await?;
        Self::read(&head.headers, bytes, room)
    }

    /// Takes a body that was read with the request that has these headers.
    pub(crate) fn read(
        headers: &HeaderMap,
        bytes: Bytes,
        room: Option<OwnedSemaphorePermit>,
    ) -> Result<Self, Refusal> {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let why = "expected a request with `Content-Type: application/json`";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        Ok(Self { bytes, _room: room })
    }
}

/// A JSON body. Errors have this API's native format.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Doors> for Json<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, doors: &Doors) -> Result<Self, Refusal> {
        let (head, body) = request.into_parts();
        // The reservation ends when the body has been read.
        let (bytes, _room) = whole(body, &doors.room).await?;
        Self::read(head, bytes, doors).await
    }
}

impl<T: DeserializeOwned> Json<T> {
    async fn read(head: Parts, bytes: Bytes, doors: &Doors) -> Result<Self, Refusal> {
        // Serde's error would quote the whole string with escapes, which takes many times its size.
        if bytes.trim_ascii_start().starts_with(b"\"") {
            return Err(Refusal::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "the request body must be a JSON object, and it is a string",
            ));
        }
        let request = Request::from_parts(head, Body::from(bytes));
        let axum::Json(body) = axum::Json::from_request(request, doors).await?;
        Ok(Self(body))
    }
}

/// A JSON object with the names of its fields.
pub(crate) struct Named<T> {
    pub(crate) value: T,
    /// The names that were kept.
    fields: Vec<String>,
}

/// Maximum number of names kept, and maximum length of a name in bytes.
const FIELDS: usize = 64;
const NAME: usize = 128;

impl<T> Named<T> {
    /// Whether it has one of these fields.
    pub(crate) fn has_any(&self, names: &[&str]) -> bool {
        self.fields.iter().any(|field| names.contains(&field.as_str()))
    }

    /// Returns the first field that is not in any of the lists.
    pub(crate) fn beyond(&self, names: &[&[&str]]) -> Option<&str> {
        let is_known = |field: &&String| names.iter().any(|names| names.contains(&field.as_str()));
        self.fields.iter().find(|field| !is_known(field)).map(String::as_str)
    }
}

impl<T: DeserializeOwned> FromRequest<Doors> for Named<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, doors: &Doors) -> Result<Self, Refusal> {
        let (head, body) = request.into_parts();
        let (bytes, _room) = whole(body, &doors.room).await?;
        // Serde would read a list, as the fields in order.
        if bytes.trim_ascii_start().starts_with(b"[") {
            let why = "the request body must be a JSON object, and it is a list";
            return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, why));
        }
        let Json(value) = Json::read(head, bytes.clone(), doors).await?;
        Ok(Self { value, fields: fields(&bytes) })
    }
}

/// Returns the names of an object's fields.
fn fields(json: &[u8]) -> Vec<String> {
    struct Names;
    impl<'de> Visitor<'de> for Names {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<String>, A::Error> {
            let mut names = Vec::new();
            while let Some((name, IgnoredAny)) = map.next_entry::<Cow<'de, str>, IgnoredAny>()? {
                if names.len() < FIELDS {
                    names.push(name.chars().take(NAME).collect());
                }
            }
            Ok(names)
        }
    }
    let mut reader = serde_json::Deserializer::from_slice(json);
    serde::Deserializer::deserialize_map(&mut reader, Names).unwrap_or_default()
}

/// An optional JSON body.
pub(crate) struct MaybeJson<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> FromRequest<Doors> for MaybeJson<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, doors: &Doors) -> Result<Self, Refusal> {
        let (head, body) = request.into_parts();
        let (bytes, _room) = whole(body, &doors.room).await?;
        if bytes.trim_ascii().is_empty() {
            return Ok(Self(T::default()));
        }
        Json::read(head, bytes, doors).await.map(|Json(body)| Self(body))
    }
}

/// Reads the whole body, if it arrives in time and there is space for it.
pub(crate) async fn whole(
    body: Body,
    shared: &Room,
) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Refusal> {
    let limits = &shared.limits;
    let too_long = || {
        Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body is too long (limit {} bytes)", limits.body),
        )
    };
    if body.size_hint().lower() > limits.body as u64 {
        return Err(too_long());
    }
    let length = usize::try_from(body.size_hint().lower()).unwrap_or_default();
    let end = Instant::now() + limits.body_time;
    let (mut bytes, mut room) = (Vec::new(), None::<OwnedSemaphorePermit>);
    let mut pieces = body.into_data_stream();
    loop {
        let pause = Instant::now() + limits.body_pause;
        let Ok(piece) = timeout_at(pause.min(end), pieces.next()).await else {
            return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the request body did not arrive in time"));
        };
        let Some(piece) = piece else { break };
        let piece = piece.map_err(|error| Refusal::bad(format!("the request body was cut off: {error}")))?;
        if bytes.len() + piece.len() > limits.body {
            return Err(too_long());
        }
        let had = bytes.len().max(OWN_ROOM);
        let more = shared.body_room((bytes.len() + piece.len()).saturating_sub(had))?;
        match &mut room {
            Some(room) => room.merge(more),
            None => room = Some(more),
        }
        if bytes.capacity() - bytes.len() < piece.len() && bytes.len() < length {
            bytes.reserve_exact((length - bytes.len()).min(bytes.len().max(TRUSTED)).max(piece.len()));
        }
        bytes.extend_from_slice(&piece);
    }
    // It may be kept for hours, while its call waits.
    bytes.shrink_to_fit();
    Ok((bytes.into(), room))
}
