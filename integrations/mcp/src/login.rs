//! A login by a person, in a browser.

use std::sync::Arc;

use reqwest::Url;
use rmcp::transport::{
    AuthError,
    auth::{AuthorizationCallback, AuthorizationManager, OAuthClientConfig},
};

use crate::{
    ConfigError, Connection, ServerConfig,
    account::{Account, Keeper, Kept},
    redactor::Redactor,
};

/// The name that authorization servers show to people.
const CLIENT: &str = "Everturn";

/// Maximum length of a foreign error that is repeated, in bytes.
const LONGEST: usize = 300;

/// A login that a person is about to make in a browser.
pub struct Login {
    account: Arc<Account>,
    manager: AuthorizationManager,
    secret: Option<String>,
    url: String,
    state: String,
}

impl Login {
    /// Begins a login at a server that is not running. See [`McpServer::begin_login`](crate::McpServer::begin_login).
    ///
    /// # Errors
    /// See [`LoginError`].
    pub async fn begin(config: &ServerConfig, redirect: &str) -> Result<Self, LoginError> {
        let account = account(config)?.ok_or_else(|| LoginError::NotHttp(config.name.clone()))?;
        Self::at(account, redirect).await
    }

    /// Finds the authorization server, registers with it, and returns what to open in a browser.
    pub(crate) async fn at(account: Arc<Account>, redirect: &str) -> Result<Self, LoginError> {
        let begun = async {
            let mut manager = account.manager(Keeper::of_login(account.clone())).await?;
            let found = manager.resolve_metadata_from_challenge(account.challenge().as_deref()).await?;
            manager.set_metadata(found.metadata);
            let oauth = &account.endpoint.oauth;
            let scopes = match oauth.scopes.is_empty() {
                true => manager.select_initial_scopes(&[]).await,
                false => oauth.scopes.clone(),
            };
            let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
            let client = match &oauth.client_id {
                Some(id) => {
                    let owned = scopes.iter().map(|scope| (*scope).to_owned()).collect();
                    let client = OAuthClientConfig::new(id, redirect).with_scopes(owned);
                    match &oauth.client_secret {
                        Some(secret) => client.with_client_secret(secret.reveal()),
                        None => client,
                    }
                }
                None => manager.register_client(CLIENT, redirect, &scopes).await?,
            };
            let secret = client.client_secret.clone();
            manager.configure_client(client)?;
            let url = manager.get_authorization_url(&scopes).await?;
            Ok::<_, AuthError>((manager, secret, url))
        };
        let (manager, secret, url) =
            begun.await.map_err(|error| LoginError::Begin(short(&account, &error)))?;
        let parsed = Url::parse(&url).ok();
        let state = parsed.as_ref().and_then(|url| value(url, "state"));
        // A browser would run `javascript:`, and open files.
        let is_web = parsed.is_some_and(|url| matches!(url.scheme(), "http" | "https"));
        match state.filter(|_| is_web) {
            Some(state) => Ok(Self { account, manager, secret, url, state }),
            None => Err(LoginError::Begin("its authorization server has no web page".to_owned())),
        }
    }

    /// The address to open in a browser. It ends with the redirect.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What the redirect names this login by.
    #[must_use]
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Ends the login with the address to which the browser was redirected. The server is then connected to again.
    ///
    /// # Errors
    /// See [`LoginError`].
    pub async fn finish(self, redirected: &str) -> Result<(), LoginError> {
        let url = Url::parse(redirected).map_err(|_| LoginError::Elsewhere)?;
        if value(&url, "state").as_deref() != Some(&self.state) {
            return Err(LoginError::Elsewhere);
        }
        if let Some(error) = value(&url, "error") {
            let why =
                value(&url, "error_description").map_or(error.clone(), |text| format!("{text} ({error})"));
            return Err(LoginError::Refused(short(&self.account, &why)));
        }
        let answer =
            AuthorizationCallback::from_redirect_url(redirected).map_err(|_| LoginError::Elsewhere)?;
        let got = self
            .manager
            .exchange_code_for_token_with_issuer(&answer.code, &answer.csrf_token, answer.issuer.as_deref())
            .await;
        let failed = |error| LoginError::Exchange(short(&self.account, &error));
        got.map_err(failed)?;
        if let Some(kept) = self.account.kept().map_err(failed)?.filter(|_| self.secret.is_some()) {
            self.account.keep(Some(&Kept { secret: self.secret.clone(), ..kept })).map_err(failed)?;
        }
        self.account.changed.notify_one();
        Ok(())
    }
}

/// Forgets the login at a server.
///
/// # Errors
/// See [`LoginError`].
pub fn log_out(config: &ServerConfig) -> Result<bool, LoginError> {
    let account = account(config)?.ok_or_else(|| LoginError::NotHttp(config.name.clone()))?;
    forget(&account)
}

/// Forgets a login. Returns whether there was one.
pub(crate) fn forget(account: &Account) -> Result<bool, LoginError> {
    let was_there = account.is_kept();
    account.keep(None).map_err(|error| LoginError::Exchange(short(account, &error)))?;
    account.changed.notify_one();
    Ok(was_there)
}

/// Returns the account at a server; `None` for a program, which has none.
pub(crate) fn account(config: &ServerConfig) -> Result<Option<Arc<Account>>, ConfigError> {
    let Connection::Http(endpoint) = &config.connection else { return Ok(None) };
    let redactor = Arc::new(Redactor::of(config));
    Ok(Some(Arc::new(Account::new(&config.name, endpoint, config.logins.clone(), redactor)?)))
}

fn value(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

/// Formats a foreign error, on one line and without secrets.
fn short(account: &Account, error: &impl ToString) -> String {
    let text = account.redactor.redact(error.to_string()).into_owned();
    let mut text: String = text.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).collect();
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push_str("...");
    }
    text
}

/// Why a login did not succeed. Without secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// The server is a program.
    #[error(
        "the MCP server {0} is a program of this machine, which asks for no login: give it what it needs in its `env`"
    )]
    NotHttp(String),
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It cannot begin.
    #[error(
        "the login cannot begin: {0}. If its authorization server does not register programs by itself, make a client there, \
         and set `oauth_client_id` in the server's [[mcp]] table"
    )]
    Begin(String),
    /// A person or the authorization server refused.
    #[error("the login was refused: {0}")]
    Refused(String),
    /// The redirect belongs to no login, or to another.
    #[error(
        "this address does not belong to the login: begin again, and use the address on which the browser ends"
    )]
    Elsewhere,
    /// The code was not accepted, or the token cannot be kept.
    #[error("the login did not succeed: {0}. Begin again")]
    Exchange(String),
}
