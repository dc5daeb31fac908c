//! The requests of OAuth: discovery, registration, tokens.

use std::time::Duration;

use reqwest::{Client, redirect};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
};

use crate::{ConfigError, http};

/// Maximum size of an answer, in bytes.
const LARGEST: usize = 1 << 20;

/// Timeout of a request.
const TIME: Duration = Duration::from_secs(30);

/// Maximum number of redirects followed.
const REDIRECTS: usize = 5;

/// Sends the requests of OAuth.
pub(crate) struct Exchange {
    following: Client,
    stopping: Client,
}

impl Exchange {
    pub(crate) fn new() -> Result<Self, ConfigError> {
        Ok(Self {
            following: http::client(redirect::Policy::limited(REDIRECTS))?,
            stopping: http::client(redirect::Policy::none())?,
        })
    }
}

impl OAuthHttpClient for Exchange {
    fn execute(&self, asked: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let client = match asked.redirect_policy {
                OAuthHttpRedirectPolicy::Follow => &self.following,
                _ => &self.stopping,
            };
            let mut request = reqwest::Request::try_from(asked.request)?;
            *request.timeout_mut() = Some(asked.timeout.unwrap_or(TIME));
            // An error names the address, which may have a secret in it.
            let mut response = client.execute(request).await.map_err(reqwest::Error::without_url)?;
            let mut answer = ::http::Response::builder().status(response.status());
            if let Some(headers) = answer.headers_mut() {
                headers.clone_from(response.headers());
            }
            let mut body = Vec::new();
            while let Some(piece) = response.chunk().await.map_err(reqwest::Error::without_url)? {
                if body.len() + piece.len() > LARGEST {
                    return Err(format!("the answer is longer than {LARGEST} bytes").into());
                }
                body.extend_from_slice(&piece);
            }
            Ok(answer.body(body)?)
        })
    }
}
