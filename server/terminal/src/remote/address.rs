//! Server addresses as people enter them.

use anyhow::{Result, bail};
use tokio_tungstenite::tungstenite::http::Uri;

/// The WebSocket address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address(String);

impl Address {
    /// Parses `http://host:port`, likewise `https:`, `ws:` and `wss:`, with an optional path prefix, and a bare
    /// `host:port`.
    pub(crate) fn parse(server: &str) -> Result<Self> {
        let server = server.trim();
        let (scheme, rest) = match server.split_once("://") {
            None => ("ws", server),
            Some(("http" | "ws", rest)) => ("ws", rest),
            Some(("https" | "wss", rest)) => ("wss", rest),
            Some((other, _)) => bail!("a server cannot be reached by {other}: write http://127.0.0.1:4777"),
        };
        let rest = rest.trim_end_matches('/');
        let rest = rest.strip_suffix("/ws").unwrap_or(rest);
        let url = format!("{scheme}://{rest}/ws");
        let has_host = url.parse::<Uri>().is_ok_and(|uri| uri.host().is_some_and(|host| !host.is_empty()));
        // Credentials belong in the token, because addresses are displayed.
        if !has_host || rest.contains(['@', '?', '#']) {
            bail!("not the address of a server: write it like http://127.0.0.1:4777");
        }
        Ok(Self(url))
    }

    /// The URL of an API call.
    pub(crate) fn call(&self, path: &str) -> String {
        let base = self.0.strip_suffix("/ws").unwrap_or(&self.0);
        // Each WebSocket scheme has its HTTP counterpart.
        format!("http{}{path}", base.strip_prefix("ws").unwrap_or(base))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_in_several_ways() {
        for (server, expected) in [
            ("http://127.0.0.1:4777", "ws://127.0.0.1:4777/ws"),
            ("http://127.0.0.1:4777/", "ws://127.0.0.1:4777/ws"),
            ("127.0.0.1:4777", "ws://127.0.0.1:4777/ws"),
            ("ws://localhost:4777/ws", "ws://localhost:4777/ws"),
            ("https://example.com/everturn", "wss://example.com/everturn/ws"),
            ("http://[::1]:4777", "ws://[::1]:4777/ws"),
        ] {
            assert_eq!(Address::parse(server).unwrap().as_str(), expected);
        }
    }

    #[test]
    fn a_call_has_the_server_s_path_before_it() {
        for (server, expected) in [
            ("127.0.0.1:4777", "http://127.0.0.1:4777/conversations"),
            ("wss://example.com/everturn/ws", "https://example.com/everturn/conversations"),
        ] {
            assert_eq!(Address::parse(server).unwrap().call("/conversations"), expected);
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_repeating_it() {
        for server in
            ["", "http://", "ftp://host", "http://user:s3cret@host", "http://host/?token=s3cret", "a b"]
        {
            let problem = Address::parse(server).unwrap_err().to_string();
            assert!(problem.contains("http://127.0.0.1:4777") && !problem.contains("s3cret"), "{problem}");
        }
    }
}
