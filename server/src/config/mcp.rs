//! MCP server settings.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::read_to_string,
    path::PathBuf,
    time::Duration,
};

use anyhow::{Result, anyhow, bail};
use everturn_mcp::{Command, Connection, Endpoint, Oauth, ServerConfig, Setting, Timeouts};

use super::{
    Environment, Hidden,
    file::Source,
    key::{is_surely_path, is_variable_name},
    table::McpTable,
    written::Written,
};

/// Validates the servers. Returns those that can be started, and a line about each that is disabled because a secret is
/// missing.
pub(super) fn resolve(
    tables: &[McpTable],
    environment: &Environment<'_>,
    source: &Source,
) -> Result<(Vec<ServerConfig>, Vec<String>)> {
    let (mut on, mut off, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
    for table in tables {
        let (name, place) = (table.name.get_ref(), source.place(&table.name));
        if !names.insert(name) {
            bail!("{place}: two MCP servers are named {name:?}: give each its own name");
        }
        let of_table = |problem: anyhow::Error| anyhow!("{place}: MCP server {name:?}: {problem}");
        match server(table, environment, source).map_err(of_table)? {
            Ok(server) => on.push(server),
            Err(missing) => off.push(format!("MCP server {name:?}: {missing}")),
        }
    }
    Ok((on, off))
}

/// Returns the files with secrets that the servers refer to.
pub(super) fn secret_files(tables: &[McpTable], source: &Source) -> impl Iterator<Item = PathBuf> {
    let settings = tables
        .iter()
        .flat_map(|table| table.env.values().chain(table.headers.values()).chain(&table.oauth_client_secret));
    settings.filter_map(|setting| match setting {
        Written::File(path) => Some(source.path(path.reveal())),
        _ => None,
    })
}

/// Whether the configuration itself contains secrets of the servers.
pub(super) fn has_secrets(tables: &[McpTable]) -> bool {
    let mut headers =
        tables.iter().flat_map(|table| table.headers.values().chain(&table.oauth_client_secret));
    headers.any(|setting| matches!(setting, Written::Here(_)))
}

/// Returns a server's configuration, or what is missing.
fn server(
    table: &McpTable,
    environment: &Environment<'_>,
    source: &Source,
) -> Result<Result<ServerConfig, String>> {
    let read = |what: &str, settings: &BTreeMap<String, Written>, is_secret| {
        let mut read = BTreeMap::new();
        for (name, setting) in settings {
            match value(setting, &format!("`{what}.{name}`"), is_secret, environment, source)? {
                Ok(value) => drop(read.insert(name.clone(), value)),
                Err(missing) => return Ok(Err(missing)),
            }
        }
        Ok::<_, anyhow::Error>(Ok(read))
    };
    let connection = match (&table.command, &table.url) {
        (Some(program), None) => {
            if !table.headers.is_empty() {
                bail!("`headers` are for a `url`: pass values to a command in its `env`");
            }
            if table.oauth_client_id.is_some()
                || table.oauth_client_secret.is_some()
                || !table.oauth_scopes.is_empty()
            {
                bail!(
                    "`oauth_client_id`, `oauth_client_secret` and `oauth_scopes` are for a `url`: a command asks for no login"
                );
            }
            if program.trim().is_empty() {
                bail!("`command` is empty: name a program, and put its arguments in `args`");
            }
            let env = match read("env", &table.env, false)? {
                Ok(env) => env,
                Err(missing) => return Ok(Err(missing)),
            };
            let cwd = table.cwd.as_deref().map(|path| source.path(path));
            Connection::Command(Command { program: program.clone(), args: table.args.clone(), env, cwd })
        }
        (None, Some(url)) => {
            if !table.args.is_empty() || !table.env.is_empty() || table.cwd.is_some() {
                bail!("`args`, `env` and `cwd` are for a `command`: send values to a `url` in its `headers`");
            }
            let headers = match read("headers", &table.headers, true)? {
                Ok(headers) => headers,
                Err(missing) => return Ok(Err(missing)),
            };
            let client_secret = match &table.oauth_client_secret {
                Some(secret) => match value(secret, "`oauth_client_secret`", true, environment, source)? {
                    Ok(secret) => Some(secret),
                    Err(missing) => return Ok(Err(missing)),
                },
                None => None,
            };
            let oauth = Oauth {
                client_id: table.oauth_client_id.clone(),
                client_secret,
                scopes: table.oauth_scopes.clone(),
            };
            Connection::Http(Endpoint { url: url.reveal().to_owned(), headers, oauth })
        }
        (Some(_), Some(_)) => bail!("it has a `command` and a `url`: keep one"),
        (None, None) => bail!("it has neither a `command` to start nor a `url` to connect to"),
    };
    let usual = ServerConfig::new(table.name.get_ref(), connection);
    let server = ServerConfig {
        trust_annotations: table.trust_annotations,
        timeouts: timeouts(table, usual.timeouts)?,
        max_result: table.max_result_bytes.unwrap_or(usual.max_result),
        ..usual
    };
    server.check()?;
    Ok(Ok(server))
}

fn timeouts(table: &McpTable, usual: Timeouts) -> Result<Timeouts> {
    let or = |name: &str, ms: Option<u64>, usual: Duration| match ms {
        Some(0) => bail!("`{name}` must be at least 1"),
        Some(ms) => Ok(Duration::from_millis(ms)),
        None => Ok(usual),
    };
    Ok(Timeouts {
        start: or("start_timeout_ms", table.start_timeout_ms, usual.start)?,
        idle: or("idle_timeout_ms", table.idle_timeout_ms, usual.idle)?,
        total: or("total_timeout_ms", table.total_timeout_ms, usual.total)?,
    })
}

/// Returns a value from its source, or what is missing. Repeats nothing that may be a secret.
fn value(
    written: &Written,
    what: &str,
    is_secret: bool,
    environment: &Environment<'_>,
    source: &Source,
) -> Result<Result<Setting, String>> {
    let secret = |text: &str| Hidden::new(text).map(|text| Setting::Secret(text.reveal().to_owned()));
    Ok(match written {
        Written::Here(text) if is_secret => Ok(Setting::Secret(text.reveal().to_owned())),
        Written::Here(text) => Ok(Setting::Plain(text.reveal().to_owned())),
        Written::Variable(name) => match environment.get(name.reveal()).as_deref().and_then(secret) {
            Some(value) => Ok(value),
            None if is_variable_name(name.reveal()) => {
                Err(format!("{what} is missing: set the environment variable {}", name.reveal()))
            }
            None => bail!(
                "the `env` of {what} does not look like a variable name: write the name of the environment \
                 variable that holds the value, never the value itself"
            ),
        },
        Written::File(path) => {
            let named = if is_surely_path(path.reveal()) { path.reveal() } else { "that it names" };
            match read_to_string(source.path(path.reveal())) {
                Ok(text) => {
                    secret(&text).ok_or_else(|| format!("{what} is missing: the file {named} is empty"))
                }
                Err(error) => {
                    Err(format!("{what} is missing: cannot read the file {named}: {}", error.kind()))
                }
            }
        }
    })
}
