//! Where the server listens, and where its files lie.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use anyhow::{Context as _, Result};

use super::{Environment, Flags};

/// Default listen address.
pub(super) const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4777);

/// Returns the file that conversations are kept in; `None` = in memory.
pub(super) fn data(
    flags: &Flags,
    environment: &Environment<'_>,
    of_file: Option<PathBuf>,
) -> Result<Option<PathBuf>> {
    if flags.memory {
        return Ok(None);
    }
    let place = named_data(flags, environment, of_file).or_else(|| environment.data_path());
    let nowhere = "no home directory for conversations: set a file with --data, or keep them in memory \
                   with --memory";
    place.context(nowhere).map(Some)
}

/// Returns the data file beside which keys and logins are kept, or where it would be by default.
pub(super) fn private_place(
    flags: &Flags,
    environment: &Environment<'_>,
    of_file: Option<PathBuf>,
) -> Option<PathBuf> {
    let place = named_data(flags, environment, of_file).or_else(|| environment.data_path());
    place.filter(|_| !flags.forgets)
}

/// Returns the file that conversations are kept in, if one is named.
fn named_data(flags: &Flags, environment: &Environment<'_>, of_file: Option<PathBuf>) -> Option<PathBuf> {
    flags.data.clone().or_else(|| environment.get("EVERTURN_DATA").map(PathBuf::from)).or(of_file)
}

/// Returns the listen address of the command line, else of the environment.
pub(super) fn given_listen(flags: &Flags, environment: &Environment<'_>) -> Option<String> {
    flags.listen.clone().or_else(|| environment.get("EVERTURN_LISTEN"))
}

/// Parses `HOST:PORT`, where the host is an IP address or `localhost`, or only a port.
pub(super) fn parse_listen(text: &str) -> Result<SocketAddr> {
    let text = text.trim();
    let port = text.strip_prefix("localhost:").unwrap_or(text).parse();
    let local = port.map(|port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    local.or_else(|_| text.parse()).ok().with_context(|| {
        format!("cannot listen on {text:?}: write an IP address and a port, like {DEFAULT_LISTEN}")
    })
}
