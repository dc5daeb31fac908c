//! Servers over streamable HTTP.

use std::{sync::Arc, time::Duration};

use reqwest::{Client, redirect};
use rmcp::transport::{
    AuthClient, StreamableHttpClientTransport, common::client_side_sse::ExponentialBackoff,
    streamable_http_client::StreamableHttpClientTransportConfig,
};

use crate::{ConfigError, account::Account, http};

/// Maximum number of reconnects of the notification stream each time it breaks, and the maximum wait between them.
/// Without that stream, a change of the list is noticed only with the next connection.
const RECONNECTS: usize = 8;
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Maximum size of a message from a server, in bytes.
const LARGEST: usize = 8 << 20;

/// The parts from which connections to an endpoint are made.
#[derive(Clone)]
pub(crate) struct Caller {
    account: Arc<Account>,
    client: Client,
    config: StreamableHttpClientTransportConfig,
}

impl Caller {
    /// Creates the client without connecting.
    pub(crate) fn new(account: Arc<Account>) -> Result<Self, ConfigError> {
        let (url, headers) = account.endpoint.request()?;
        let mut reconnects = ExponentialBackoff::default();
        reconnects.max_times = Some(RECONNECTS);
        reconnects.max_delay = Some(LONGEST_WAIT);
        let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
            .custom_headers(headers)
            .max_sse_event_size(LARGEST);
        config.retry_config = Arc::new(reconnects);
        Ok(Self { account, client: http::client(redirect::Policy::custom(http::follow))?, config })
    }

    /// Returns a transport that has not connected yet.
    ///
    /// # Errors
    /// Returns why the login cannot be used.
    pub(crate) async fn transport(
        &self,
    ) -> Result<StreamableHttpClientTransport<AuthClient<Client>>, String> {
        let client = self.account.client(self.client.clone()).await?;
        Ok(StreamableHttpClientTransport::with_client(client, self.config.clone()))
    }
}
