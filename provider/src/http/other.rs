//! A client for requests other than model calls, with the same settings.

use reqwest::{redirect, retry};

use super::{HttpConfig, USER_AGENT, connect, error, tls};
use crate::ConfigError;

pub(super) fn client(config: HttpConfig, authorities: &[Vec<u8>]) -> Result<reqwest::Client, ConfigError> {
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls::config(authorities)?)
        .user_agent(USER_AGENT)
        .retry(retry::never())
        .redirect(redirect::Policy::none())
        .connect_timeout(config.timeouts.connect)
        .tcp_keepalive(connect::KEEPALIVE)
        .tcp_keepalive_interval(connect::KEEPALIVE)
        .tcp_keepalive_retries(connect::PROBES);
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    {
        builder = builder.tcp_user_timeout(connect::UNACKNOWLEDGED);
    }
    if !config.system_proxy {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| ConfigError::Client(error::chain(&error)))
}
