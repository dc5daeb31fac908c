//! Connections to the database.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_postgres::{
    Client, Config, Error, Row, SimpleQueryMessage, Statement,
    config::{Host, SslMode},
    error::SqlState,
    types::ToSql,
};

use crate::{
    OpenError, Options,
    error::{Failure, Place, text},
    tls::Tls,
};

/// Pause between attempts to connect.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// How long one attempt to connect may take, unless the URL says otherwise.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a connection may be silent before its peer is asked whether it is there, and the time between questions.
const ALIVE: [Duration; 2] = [Duration::from_secs(15), Duration::from_secs(5)];

/// How much longer than for other answers the database may work on a statement: a long list takes its time.
const LONG: u32 = 6;

/// What statements are given as parameters.
pub(crate) type Parameters<'p> = &'p [&'p (dyn ToSql + Sync)];

/// How to connect.
pub(crate) struct Target {
    config: Config,
    tls: Tls,
    setup: String,
    answer_within: Duration,
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
        Ok(Self { config, tls, setup, answer_within: options.answer_within, place })
    }

    /// Connects once.
    pub(crate) async fn connect(&self) -> Result<Session, Error> {
        let (client, connection) = self.config.connect(self.tls.clone()).await?;
        let driver = tokio::spawn(async move {
            // Its end is seen by the statements that need it.
            let _ = connection.await;
        });
        let session =
            Session { client, driver, statements: Mutex::default(), answer_within: self.answer_within };
        session.client.batch_execute(&self.setup).await?;
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
                Ok(Ok(session)) => return Ok(session),
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

/// A connection.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    driver: JoinHandle<()>,
    statements: Mutex<HashMap<&'static str, Statement>>,
    answer_within: Duration,
}

impl Session {
    /// Runs a statement. It is committed when this returns: the answer is read up to the database's readiness for the next
    /// statement, which follows the commit.
    pub(crate) async fn query(
        &self,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, Failure> {
        self.query_within(self.answer_within, sql, parameters).await
    }

    /// Runs a statement that reads of all conversations.
    pub(crate) async fn query_all(
        &self,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, Failure> {
        self.query_within(self.answer_within * LONG, sql, parameters).await
    }

    /// Runs a statement that sends this many bytes.
    pub(crate) async fn query_large(
        &self,
        sql: &'static str,
        parameters: Parameters<'_>,
        bytes: usize,
    ) -> Result<Vec<Row>, Failure> {
        // At least 1 MiB per second.
        let time = self.answer_within + Duration::from_secs(bytes as u64 >> 20);
        self.query_within(time, sql, parameters).await
    }

    async fn query_within(
        &self,
        time: Duration,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, Failure> {
        let work = async {
            let statement = self.prepared(sql).await?;
            self.client.query(&statement, parameters).await
        };
        self.within(time, work).await
    }

    async fn within<T>(
        &self,
        time: Duration,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        match timeout(time, work).await {
            Ok(answer) => Ok(answer?),
            Err(_) => {
                // Its answer may come when nobody expects it any more.
                self.driver.abort();
                Err(Failure::Lost(format!("no answer for {:.1} s", time.as_secs_f32())))
            }
        }
    }

    /// Runs statements without parameters.
    pub(crate) async fn execute(&self, sql: &str) -> Result<(), Failure> {
        self.within(self.answer_within, self.client.batch_execute(sql)).await
    }

    /// Returns the name of the database's process that serves it now. Nothing is prepared for that.
    pub(crate) async fn process(&self) -> Result<Option<String>, Failure> {
        let asked = self.client.simple_query("SELECT pg_backend_pid()");
        let messages = self.within(self.answer_within, asked).await?;
        Ok(messages.into_iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        }))
    }

    async fn prepared(&self, sql: &'static str) -> Result<Statement, Error> {
        let known = self.statements().get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements().insert(sql, statement.clone());
        Ok(statement)
    }

    fn statements(&self) -> std::sync::MutexGuard<'_, HashMap<&'static str, Statement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is over.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Waits until it is over.
    pub(crate) async fn closed(&mut self) {
        let _ = (&mut self.driver).await;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Otherwise it would wait for an answer that nobody wants any more.
        self.driver.abort();
    }
}
