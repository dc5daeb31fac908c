//! How to connect to the database.

use std::{
    net::IpAddr,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::Duration,
};

use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{
    Config, Error,
    config::{Host, LoadBalanceHosts, SslMode},
    error::SqlState,
};

use crate::{
    OpenError, Options,
    error::{Failure, Place, text},
    session::{LONG, Session},
    tls::Tls,
};

/// Pause between attempts to connect.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// How long connecting, logging in and preparing a connection may take together.
const ONCE: Duration = Duration::from_secs(10);

/// How long one attempt to connect may take, unless the URL says otherwise.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a connection may be silent before its peer is asked whether it is there, and the time between questions.
const ALIVE: [Duration; 2] = [Duration::from_secs(15), Duration::from_secs(5)];

/// How to connect.
pub(crate) struct Target {
    config: Config,
    tls: Tls,
    setup: String,
    answer_within: Duration,
    /// The highest timeline seen: a standby begins a new one as it takes over.
    timeline: AtomicU32,
    /// Whether a server of an earlier timeline was met. Then another host may be the one to use.
    is_ambiguous: AtomicBool,
    pub(crate) place: Place,
}

impl Target {
    pub(crate) fn new(options: &Options) -> Result<Self, OpenError> {
        check_schema(&options.schema)?;
        let mut config = parse(&options.url)?;
        if let Some(password) = &options.password {
            if config.get_password().is_some() {
                return Err(OpenError::Option(
                    "the password of Postgres is given twice: remove it from the URL".to_owned(),
                ));
            }
            config.password(password);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if !options.url.contains("keepalives") {
            // A peer that is gone without a word is noticed by connections that only wait, too.
            config.keepalives_idle(ALIVE[0]).keepalives_interval(ALIVE[1]).keepalives_retries(3);
        }
        if config.get_application_name().is_none() {
            config.application_name("everturn");
        }
        if !options.url.contains("sslmode=") && config.get_hosts().iter().all(is_local) {
            config.ssl_mode(SslMode::Disable);
        }
        let tls = Tls::new(options.authorities.as_deref())?;
        let place = place(&config, &options.schema);
        let setup = setup(&options.schema, options.answer_within);
        let (timeline, is_ambiguous) = (AtomicU32::default(), AtomicBool::default());
        Ok(Self { config, tls, setup, answer_within: options.answer_within, timeline, is_ambiguous, place })
    }

    /// Connects once.
    async fn connect(&self) -> Result<Session, Error> {
        let mut config = self.config.clone();
        if self.is_ambiguous.load(Ordering::Relaxed) {
            config.load_balance_hosts(LoadBalanceHosts::Random);
        }
        let (client, connection) = config.connect(self.tls.clone()).await?;
        let driver = tokio::spawn(async move {
            // Its end is seen by the statements that need it.
            let _ = connection.await;
        });
        let session = Session::new(client, driver, self.answer_within);
        session.set_up(&self.setup).await?;
        Ok(session)
    }

    /// Connects once. Nothing has been written if that fails.
    pub(crate) async fn connect_once(&self) -> Result<Session, Failure> {
        match timeout(ONCE, self.connect()).await {
            Ok(Ok(session)) => self.checked(session).await,
            Ok(Err(error)) => Err(Failure::Lost(text(&error))),
            Err(_) => Err(Failure::Lost("no answer".to_owned())),
        }
    }

    /// Refuses a server that another one has replaced: what is written there would be lost.
    async fn checked(&self, session: Session) -> Result<Session, Failure> {
        let found = session.timeline().await?;
        let latest = self.timeline.fetch_max(found, Ordering::Relaxed);
        if found != 0 && found < latest {
            self.is_ambiguous.store(true, Ordering::Relaxed);
            return Err(Failure::Lost(format!(
                "the server that answers was replaced by another (its timeline is {found}, the latest {latest}): stop it, or make it a standby"
            )));
        }
        Ok(session)
    }

    /// Connects, repeatedly while the database cannot be reached.
    ///
    /// # Errors
    /// If that takes too long, or cannot succeed.
    pub(crate) async fn connect_within(&self, time: Duration) -> Result<Session, OpenError> {
        let until = Instant::now() + time;
        loop {
            // An attempt that began in time may end late, but not by more than the timeout of a connection.
            match timeout(time.max(CONNECT) + CONNECT, self.connect()).await {
                Ok(Ok(session)) => {
                    let checked = self.checked(session).await;
                    return checked.map_err(|failure| self.unreachable(failure.text().to_owned()));
                }
                Ok(Err(error)) => match self.refusal(&error) {
                    Some(refusal) => return Err(refusal),
                    None if Instant::now() >= until => return Err(self.unreachable(text(&error))),
                    None => {}
                },
                Err(_) => return Err(self.unreachable("no answer".to_owned())),
            }
            sleep(PAUSE).await;
        }
    }

    fn unreachable(&self, what: String) -> OpenError {
        OpenError::Unreachable { place: self.place.clone(), what }
    }

    /// Returns the error if trying again is of no use.
    fn refusal(&self, error: &Error) -> Option<OpenError> {
        let place = || self.place.clone();
        let what = text(error);
        let Some(code) = error.code() else {
            let is_tls = what.contains("TLS handshake");
            let is_config = what.starts_with("invalid configuration") || what.contains("authentication");
            return match () {
                () if is_tls => Some(OpenError::Tls { place: place(), what }),
                () if is_config => Some(OpenError::Refused { place: place(), what }),
                () => None,
            };
        };
        match *code {
            SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
                Some(OpenError::Refused { place: place(), what })
            }
            SqlState::INVALID_CATALOG_NAME => {
                let why = format!("{what}; create it: CREATE DATABASE");
                Some(OpenError::Setting { place: place(), why })
            }
            // It is starting, ending or full.
            SqlState::CANNOT_CONNECT_NOW
            | SqlState::ADMIN_SHUTDOWN
            | SqlState::CRASH_SHUTDOWN
            | SqlState::TOO_MANY_CONNECTIONS => None,
            _ => Some(OpenError::Database { place: place(), what }),
        }
    }
}

/// Parses a URL. What it contains may be secret, so errors do not repeat it.
fn parse(url: &str) -> Result<Config, OpenError> {
    let invalid = |what: &str| {
        OpenError::Option(format!(
            "the URL of Postgres is not valid{what}: write it as postgres://user@host:5432/database"
        ))
    };
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(invalid(""));
    }
    let config: Config = url.parse().map_err(|error: Error| {
        let what = text(&error);
        // It names a parameter, and not its value.
        let known = what.find("invalid value for option").map(|at| format!(" ({})", &what[at..]));
        invalid(&known.unwrap_or_default())
    })?;
    match config.get_hosts().is_empty() {
        true => Err(invalid(" (it has no host)")),
        false => Ok(config),
    }
}

fn check_schema(schema: &str) -> Result<(), OpenError> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins_well = schema.starts_with(|c: char| c.is_ascii_lowercase()) && !schema.starts_with("pg_");
    match begins_well && schema.len() <= 63 && schema.chars().all(is_plain) {
        true => Ok(()),
        false => Err(OpenError::Option(format!(
            "the Postgres schema {schema:?} is not valid: use lower-case letters, digits and _, up to 63 characters, beginning with a letter"
        ))),
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

fn place(config: &Config, schema: &str) -> Place {
    let ports = config.get_ports();
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
    let shown = |(at, host): (usize, &Host)| match host {
        Host::Tcp(name) => format!("{name}:{}", port(at)),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    };
    let hosts = config.get_hosts().iter().enumerate().map(shown).collect::<Vec<_>>().join(", ");
    let database = config.get_dbname().or(config.get_user()).unwrap_or("of the user").to_owned();
    Place { hosts, database, schema: schema.to_owned() }
}

/// Returns the statements that prepare a connection.
fn setup(schema: &str, answer_within: Duration) -> String {
    let (answer, long) = (answer_within.as_millis(), (answer_within * LONG).as_millis());
    format!(
        "SET search_path TO {schema};
        SET statement_timeout TO {long}; SET lock_timeout TO {answer};
        SET idle_in_transaction_session_timeout TO {answer};
        -- A client that is gone without a word must not hold its lock for hours.
        SET tcp_keepalives_idle TO 15; SET tcp_keepalives_interval TO 5; SET tcp_keepalives_count TO 3;
        SET default_transaction_isolation TO 'read committed';
        -- What is acknowledged must be durable.
        SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
        -- Plans are kept, and must not depend on tables having been empty when they were made.
        SET plan_cache_mode TO force_generic_plan; SET enable_seqscan TO off; SET enable_mergejoin TO off;
        SET jit TO off; SET client_min_messages TO warning"
    )
}
