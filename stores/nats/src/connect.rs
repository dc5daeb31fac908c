//! Connecting, and finding or creating the stream.

use std::{future::Future, path::Path, time::Duration};

use async_nats::{
    Client, ConnectErrorKind, ConnectOptions, ServerAddr,
    jetstream::{self, context::ContextBuilder, context::GetStreamErrorKind, stream::Config},
};
use tokio::{
    sync::watch,
    time::{self, Instant},
};

use crate::{
    error::{ConnectError, Place},
    leader::Leader,
    names::Names,
    options::{Login, Options, Tls},
    server::{OLDEST, RECOMMENDED, ServerVersion},
    stream,
};

/// Pause between attempts to connect.
const PAUSE: Duration = Duration::from_millis(200);

/// JetStream's code for "stream not found".
const NOT_FOUND: u64 = 10059;

/// JetStream's code for a stream of this name with another configuration.
const EXISTS: u64 = 10058;

/// Number of copies in a cluster.
const IN_CLUSTER: usize = 3;

/// Connects, and makes sure that the stream exists and is fit.
pub(crate) async fn connect(options: &Options) -> Result<Leader, ConnectError> {
    let names = Names::new(&options.prefix).ok_or_else(|| {
        ConnectError::Option(format!(
            "the NATS prefix {:?} is not valid: use letters, digits, _ and -, in words joined by dots, up to 64 characters",
            options.prefix
        ))
    })?;
    let addresses = addresses(&options.servers)?;
    let place = Place { servers: shown(&addresses), stream: names.stream() };
    let deadline = Instant::now() + options.connect_within;
    let connects = watch::Sender::new(());
    let client = client(options, &addresses, &place, deadline, &connects).await?;
    let is_clustered = check_server(&client, &place)?;
    let context = ContextBuilder::new().timeout(options.answer_within).build(client);
    let replicas = options.replicas.unwrap_or(if is_clustered { IN_CLUSTER } else { 1 });
    let wanted = stream::config(&names, replicas);
    let config = repeat(deadline, async || find_or_create(&context, &wanted).await).await;
    let config = config.map_err(|what| ConnectError::JetStream(place.clone(), what))?;
    if let Some(setting) = stream::unfit(&config, &names) {
        return Err(ConnectError::Setting { place, setting });
    }
    let stream = context.get_stream_no_info(names.stream()).await;
    let stream = stream.map_err(|error| ConnectError::JetStream(place.clone(), error.to_string()))?;
    tracing::info!(
        "the journal is {place}, with {} copies; what a power cut may take depends on the servers' sync_interval, which clients cannot see: set it to always",
        config.num_replicas
    );
    let connects = connects.subscribe();
    Ok(Leader::new(context, stream, names, place, connects, [options.answer_within, options.give_up_after]))
}

fn addresses(servers: &[String]) -> Result<Vec<ServerAddr>, ConnectError> {
    // The address may contain a password, so the error does not repeat it.
    let invalid = |number: usize| {
        ConnectError::Option(format!(
            "NATS server {} of the list is not valid: write it as nats://host:port or tls://host:port",
            number + 1
        ))
    };
    if servers.is_empty() {
        return Err(ConnectError::Option("no NATS server is given: name at least one".to_owned()));
    }
    let parse = |(number, server): (usize, &String)| server.parse().map_err(|_| invalid(number));
    servers.iter().enumerate().map(parse).collect()
}

/// Formats addresses without users and passwords.
fn shown(addresses: &[ServerAddr]) -> String {
    let shown: Vec<_> = addresses.iter().map(|addr| format!("{}:{}", addr.host(), addr.port())).collect();
    shown.join(", ")
}

async fn client(
    options: &Options,
    addresses: &[ServerAddr],
    place: &Place,
    deadline: Instant,
    connects: &watch::Sender<()>,
) -> Result<Client, ConnectError> {
    loop {
        let error = match connect_options(options, connects.clone()).await?.connect(addresses).await {
            Ok(client) => return Ok(client),
            Err(error) => error,
        };
        let servers = place.servers.clone();
        match error.kind() {
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                return Err(ConnectError::Refused { servers });
            }
            kind if Instant::now() + PAUSE > deadline => {
                let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
                let what = format!("{kind}{}", cause.unwrap_or_default());
                return Err(ConnectError::Unreachable { servers, what });
            }
            _ => time::sleep(PAUSE).await,
        }
    }
}

async fn connect_options(
    options: &Options,
    connects: watch::Sender<()>,
) -> Result<ConnectOptions, ConnectError> {
    // A server that is frozen or unreachable is noticed within a few answers, rather than minutes.
    let mut connect = ConnectOptions::new()
        .name("everturn")
        .ping_interval(options.answer_within)
        .connection_timeout(options.answer_within)
        .event_callback(move |event| {
            match event {
                async_nats::Event::Connected => {
                    tracing::info!("connected to NATS");
                    connects.send_replace(());
                }
                event => tracing::warn!("NATS: {event}"),
            }
            std::future::ready(())
        });
    connect = match &options.login {
        Login::None => connect,
        Login::CredentialsFile(path) => connect.credentials_file(path).await.map_err(|error| {
            // The text of other errors could quote the file.
            let what = match error.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => {
                    error.kind().to_string()
                }
                _ => "it is not a NATS credentials file".to_owned(),
            };
            ConnectError::File { path: path.clone(), what }
        })?,
        Login::UserPassword { user, password } => connect.user_and_password(user.clone(), password.clone()),
        Login::Token(token) => connect.token(token.clone()),
        Login::NkeySeed(seed) => connect.nkey(seed.clone()),
    };
    let Tls { required, first, authorities, certificate } = &options.tls;
    if let Some(path) = authorities {
        exists(path)?;
        connect = connect.add_root_certificates(path.clone());
    }
    if let Some((certificate, key)) = certificate {
        exists(certificate)?;
        exists(key)?;
        connect = connect.add_client_certificate(certificate.clone(), key.clone());
    }
    if *first {
        connect = connect.tls_first();
    }
    Ok(connect.require_tls(*required))
}

fn exists(path: &Path) -> Result<(), ConnectError> {
    let failed =
        |error: std::io::Error| ConnectError::File { path: path.to_owned(), what: error.to_string() };
    std::fs::File::open(path).map(drop).map_err(failed)
}

/// Checks the server's version. Returns whether it is part of a cluster.
fn check_server(client: &Client, place: &Place) -> Result<bool, ConnectError> {
    let info = client.server_info();
    // Without a version that can be read, the server is a build of its own.
    if let Some(version) = ServerVersion::parse(&info.version) {
        if version < OLDEST {
            let servers = place.servers.clone();
            return Err(ConnectError::TooOld { servers, found: info.version });
        }
        if version < RECOMMENDED {
            tracing::warn!(
                "NATS {version} is slow in a cluster that flushes every append: upgrade to {RECOMMENDED} or newer"
            );
        }
    }
    Ok(info.cluster.is_some_and(|cluster| !cluster.is_empty()))
}

/// Returns the configuration of the stream, which is created unless it exists.
async fn find_or_create(context: &jetstream::Context, wanted: &Config) -> Result<Config, Attempt> {
    match context.get_stream(&wanted.name).await {
        Ok(stream) => return Ok(stream.cached_info().config.clone()),
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(error) if error.error_code().0 == NOT_FOUND => {}
            kind => return Err(Attempt::Again(kind.to_string())),
        },
    }
    match context.create_stream(wanted.clone()).await {
        Ok(stream) => Ok(stream.cached_info().config.clone()),
        Err(error) => match error.kind() {
            jetstream::context::CreateStreamErrorKind::JetStream(error) => match error.error_code().0 {
                10005 | 10074 => Err(Attempt::Again(format!(
                    "a stream with {} copies needs as many servers ({error}): start them, or set another number of copies",
                    wanted.num_replicas
                ))),
                // Another process created it in between, or there is no leader.
                EXISTS | 10008 | 10009 | 10023 => Err(Attempt::Again(error.to_string())),
                _ => Err(Attempt::Never(error.to_string())),
            },
            kind => Err(Attempt::Again(kind.to_string())),
        },
    }
}

/// Why an attempt failed.
enum Attempt {
    Again(String),
    Never(String),
}

async fn repeat<T, F: Future<Output = Result<T, Attempt>>>(
    deadline: Instant,
    attempt: impl Fn() -> F,
) -> Result<T, String> {
    loop {
        match attempt().await {
            Ok(done) => return Ok(done),
            Err(Attempt::Never(what)) => return Err(what),
            Err(Attempt::Again(what)) if Instant::now() + PAUSE > deadline => return Err(what),
            Err(Attempt::Again(_)) => time::sleep(PAUSE).await,
        }
    }
}
