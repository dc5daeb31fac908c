//! Single parts of the configuration, for commands that need no more.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use anyhow::{Context as _, Result, bail};
use everturn_kernel::Target;
use everturn_mcp::{LoginStore, ServerConfig};
use everturn_transport_http::KnownCaller;

use super::{
    AddedFile, AuditFile, CallersFile, Cluster, Config, DEFAULT_LISTEN, Environment, Flags, LoginFile,
    Postgres, Provider, Retry, caller, data, given_listen, known, mcp, parse_listen, private_place,
    route::{self, Known},
    targets,
};

/// What is said about callers.
pub(crate) struct Callers {
    pub(crate) audit: AuditFile,
    /// Where those are kept that are made; `None` in a cluster.
    pub(crate) file: Option<CallersFile>,
    pub(crate) configured: Vec<KnownCaller>,
    pub(crate) has_token: bool,
}

impl Config {
    /// Returns only where added providers are kept, and the names that belong to the configuration.
    pub(crate) fn added(flags: &Flags, environment: &Environment<'_>) -> Result<(AddedFile, Vec<String>)> {
        let file = Self::read(Self::path(flags, environment).as_deref())?;
        let place = private_place(flags, environment, file.data());
        let place = place.context("no home directory to keep keys in: name the data file with --data")?;
        let place = AddedFile::beside(&place);
        let mut names: Vec<String> = file.providers.iter().map(|table| table.name.clone()).collect();
        if names.is_empty() {
            names.extend(Provider::of_environment(environment)?.into_iter().map(|provider| provider.name));
        }
        Ok((place, names))
    }

    /// Returns only the MCP servers, with where their logins are kept, and a line about each that is off.
    #[cfg_attr(not(feature = "mcp"), allow(dead_code, reason = "this build refuses the command"))]
    pub(crate) fn mcp(
        flags: &Flags,
        environment: &Environment<'_>,
    ) -> Result<(LoginFile, Vec<ServerConfig>, Vec<String>)> {
        let file = Self::read(Self::path(flags, environment).as_deref())?;
        let (mut servers, off) = mcp::resolve(&file.mcp, environment, &file.source)?;
        let place = private_place(flags, environment, file.data());
        let place = place.context("no home directory to keep logins in: name the data file with --data")?;
        let file = LoginFile::beside(&place);
        let logins: Arc<dyn LoginStore> = Arc::new(file.clone());
        servers.iter_mut().for_each(|server| server.logins = logins.clone());
        Ok((file, servers, off))
    }

    /// Returns only where callers are kept, those of the configuration file, and whether there is a token of the administrator.
    pub(crate) fn callers(flags: &Flags, environment: &Environment<'_>) -> Result<Callers> {
        let file = Self::read(Self::path(flags, environment).as_deref())?;
        let configured = caller::resolve(&file.caller, environment, &file.source)?;
        let has_token = environment.get("EVERTURN_TOKEN").is_some() || file.server.token.is_some();
        let place = private_place(flags, environment, file.data());
        let place = place.context("no home directory to keep callers in: name the data file with --data")?;
        let is_alone = !Cluster::is_configured(flags, environment, &file.cluster);
        let callers = is_alone.then(|| CallersFile::beside(&place));
        Ok(Callers { audit: AuditFile::beside(&place), file: callers, configured, has_token })
    }

    /// Returns only the path of the data file. Reading conversations needs no provider key.
    pub(crate) fn data(flags: &Flags, environment: &Environment<'_>) -> Result<PathBuf> {
        let file = Self::read(Self::path(flags, environment).as_deref())?;
        data(flags, environment, file.data())?.context("conversations in memory end with their server")
    }

    /// Returns only how to join the cluster that keeps conversations, if there is one.
    pub(crate) fn cluster(flags: &Flags, environment: &Environment<'_>) -> Result<Option<Cluster>> {
        let file = Self::read(Self::path(flags, environment).as_deref())?;
        Cluster::resolve(flags, environment, file.cluster, &file.source)
    }

    /// Returns only how to use the Postgres database that keeps conversations, if there is one.
    pub(crate) fn postgres(flags: &Flags, environment: &Environment<'_>) -> Result<Option<Postgres>> {
        let file = Self::read(Self::path(flags, environment).as_deref())?;
        Postgres::resolve(flags, environment, file.postgres, &file.source)
    }

    /// Returns only the URL at which a server with this configuration can be reached from this machine.
    pub(crate) fn own_url(flags: &Flags, environment: &Environment<'_>) -> Result<String> {
        let (given, file) =
            (given_listen(flags, environment), Self::read(Self::path(flags, environment).as_deref()));
        // An address of the environment needs no file.
        let server = if given.is_some() { file.unwrap_or_default() } else { file? }.server;
        if server.tls_cert.is_some() {
            bail!(
                "the server has a certificate, which is for its own name: name it with --server, e.g. --server \
                 https://example.com"
            );
        }
        let listen = given.or(server.listen);
        let mut address = listen.as_deref().map_or(Ok(DEFAULT_LISTEN), parse_listen)?;
        if address.port() == 0 {
            bail!(
                "the server listens on any free port (0): name it with --server, e.g. --server http://{DEFAULT_LISTEN}"
            );
        }
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        Ok(format!("http://{address}"))
    }

    /// Returns only the retry settings.
    pub(crate) fn retry(flags: &Flags, environment: &Environment<'_>) -> Result<Retry> {
        Retry::resolve(&Self::read(Self::path(flags, environment).as_deref())?.retry)
    }

    /// Returns only the retry settings of a route, and its targets, one per credential. Keys may be missing.
    pub(crate) fn on_route(
        flags: &Flags,
        environment: &Environment<'_>,
        name: &str,
    ) -> Result<(Retry, Vec<Target>)> {
        let file = Self::read(Self::path(flags, environment).as_deref())?;
        let retry = Retry::resolve(&file.retry)?;
        let of_environment = match file.providers.is_empty() {
            true => Provider::of_environment(environment)?,
            false => Vec::new(),
        };
        let Known { mut on, off, mut open } = known(&of_environment, &file.providers);
        on.extend(off);
        open.extend(file.providers.iter().map(|table| table.name.clone()));
        let known = Known { on, open, ..Known::default() };
        let (routes, _) = route::resolve(&file.routes, &retry.policy, &known, &file.source)?;
        let name = name.strip_prefix("route/").unwrap_or(name);
        let Some(route) = routes.iter().find(|route| route.name == name) else {
            let all: Vec<&str> = routes.iter().map(|route| route.name.as_str()).collect();
            let all = if all.is_empty() { "none is configured".to_owned() } else { all.join(", ") };
            bail!("there is no route {name:?}; known routes: {all}");
        };
        let targets = route.targets.iter().flat_map(|id| targets(id, &file.providers)).collect();
        Ok((Retry { policy: route.policy.clone(), ..retry }, targets))
    }
}
