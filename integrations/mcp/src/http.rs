//! The HTTP client of servers and logins.

use std::{sync::Arc, time::Duration};

use reqwest::{Client, redirect, retry};
use rmcp::transport::AuthError;
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::{ConfigError, Endpoint};

/// Timeout for name resolution, connection and TLS handshake.
const CONNECTING: Duration = Duration::from_secs(10);

/// Maximum number of redirects followed.
const REDIRECTS: usize = 3;

/// Returns the URL as the SDK takes it.
pub(crate) fn url(endpoint: &Endpoint) -> Result<String, AuthError> {
    let (url, _) = endpoint.request().map_err(|error| AuthError::InternalError(error.to_string()))?;
    Ok(url.into())
}

/// Creates a client with this policy for redirects.
pub(crate) fn client(redirects: redirect::Policy) -> Result<Client, ConfigError> {
    Client::builder()
        .tls_backend_preconfigured(tls()?)
        .connect_timeout(CONNECTING)
        // A call that was sent may have had an effect, so it is never repeated.
        .retry(retry::never())
        // Reusing a connection whose last answer was not read to its end would delay the next call by 40 ms.
        .pool_max_idle_per_host(0)
        .redirect(redirects)
        .build()
        .map_err(|error| ConfigError::Client(error.to_string()))
}

/// Follows a redirect only to the same origin, where the headers may go, and only if the body is kept.
pub(crate) fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps_body = matches!(attempt.status().as_u16(), 307 | 308);
    let is_same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    match keeps_body && is_same && attempt.previous().len() <= REDIRECTS {
        true => attempt.follow(),
        false => attempt.stop(),
    }
}

/// Created per client instead of installed for the process, because that choice belongs to the embedder.
fn tls() -> Result<ClientConfig, ConfigError> {
    let builder = || {
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| ConfigError::Client(error.to_string()))
    };
    Ok(match builder()?.with_platform_verifier() {
        Ok(trusting) => trusting.with_no_client_auth(),
        Err(error) => {
            tracing::warn!(%error, "https servers will be refused: install the system's CA certificates");
            builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
        }
    })
}
