//! Hosts and origins in requests.

use std::{fmt, net::IpAddr};

use axum::http::uri::Authority;

/// A host with or without a port, as in the `Host` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// Lower case, without a final dot.
    name: String,
    port: Option<u16>,
}

/// The origin of a page, as in the `Origin` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    is_secure: bool,
    name: String,
    port: u16,
}

impl Host {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let authority: Authority = text.trim().parse().ok()?;
        let (name, port) = (authority.host(), authority.port().map(|port| port.as_str().parse()));
        let rest = text.trim().strip_prefix(name)?;
        let is_whole = rest.is_empty() || (rest.starts_with(':') && port.is_some());
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        (is_whole && !name.is_empty()).then_some(Self { name, port: port.transpose().ok()? })
    }

    pub(super) fn port_or(&self, usual: u16) -> u16 {
        self.port.unwrap_or(usual)
    }

    /// Whether the host always refers to the client's own machine.
    pub(super) fn is_loopback(&self) -> bool {
        self.name == "localhost" || self.address().is_some_and(|address| address.to_canonical().is_loopback())
    }

    pub(super) fn is_address(&self) -> bool {
        self.address().is_some()
    }

    /// Whether it includes the other host. Without a port, it includes every port.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.name == other.name && (self.port.is_none() || self.port == other.port)
    }

    fn address(&self) -> Option<IpAddr> {
        self.name.trim_start_matches('[').trim_end_matches(']').parse().ok()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl Origin {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, host) = text.trim().split_once("://")?;
        let is_secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let Host { name, port } = Host::parse(host)?;
        Some(Self { is_secure, name, port: port.unwrap_or(usual_port(is_secure)) })
    }

    /// Whether the origin has this host. Ignores the scheme, because a proxy may have terminated TLS.
    pub(super) fn is_at(&self, host: &Host) -> bool {
        self.name == host.name && self.port == host.port_or(usual_port(self.is_secure))
    }
}

/// Formats the origin like a browser.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.name)?;
        if self.port == usual_port(self.is_secure) { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

fn usual_port(is_secure: bool) -> u16 {
    if is_secure { 443 } else { 80 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_as_headers_have_them() {
        for (text, name, port) in [
            ("localhost:80", "localhost", Some(80)),
            ("LocalHost.", "localhost", None),
            ("[::1]:8080", "[::1]", Some(8080)),
            ("127.0.0.1", "127.0.0.1", None),
        ] {
            assert_eq!(Host::parse(text), Some(Host { name: name.to_owned(), port }), "{text}");
        }
        for bad in
            ["", ":80", "a@localhost", "localhost:", "localhost:99999", "a/b", "a b", "http://a", "[::1"]
        {
            assert_eq!(Host::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_names_of_this_machine_are_loopback() {
        for text in ["localhost", "127.0.0.1:1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]"] {
            assert!(Host::parse(text).unwrap().is_loopback(), "{text}");
        }
        for text in ["localhost.evil.com", "128.0.0.1", "0.0.0.0", "127.0.0.1.nip.io"] {
            assert!(!Host::parse(text).unwrap().is_loopback(), "{text}");
        }
    }

    #[test]
    fn origins_are_told_apart_by_scheme_host_and_port() {
        let same = Origin::parse("https://A.example:443").unwrap();
        assert_eq!(Some(&same), Origin::parse("https://a.example").as_ref());
        assert_eq!(same.to_string(), "https://a.example");
        assert_ne!(Some(same), Origin::parse("http://a.example"));
        for bad in ["null", "a.example", "ftp://a.example", "https://a.example/", "https://a.example/x", "*"]
        {
            assert_eq!(Origin::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_page_is_at_its_host_whatever_ended_tls() {
        let is_at = |origin, host| Origin::parse(origin).unwrap().is_at(&Host::parse(host).unwrap());
        assert!(is_at("http://localhost:4777", "localhost:4777"));
        assert!(is_at("https://chat.example", "chat.example"));
        assert!(!is_at("http://localhost:3000", "localhost:4777"));
        assert!(!is_at("http://127.0.0.1:4777", "localhost:4777"));
        assert!(!is_at("http://localhost", "localhost:4777"));
    }
}
