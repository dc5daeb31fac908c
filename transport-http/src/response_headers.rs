//! Headers that every response has, so that browsers neither guess its type, store it, nor hand it to other sites.

use axum::{
    http::{
        HeaderName, HeaderValue,
        header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS},
    },
    response::Response,
};

use crate::pass::PassedThrough;

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// The headers. The resource policy does not apply to requests with CORS, so pages of allowed origins can still read
/// responses; other pages cannot load them as scripts or images either.
const HEADERS: [(HeaderName, HeaderValue); 3] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (RESOURCE_POLICY, HeaderValue::from_static("same-origin")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

/// Adds the headers that a response lacks, unless it is a provider's own.
pub(crate) async fn complete(mut response: Response) -> Response {
    if response.extensions().get::<PassedThrough>().is_some() {
        return response;
    }
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(value);
    }
    response
}
