//! The login at a server over HTTP: what is kept of it, and what the server asks for.

mod exchange;
mod keeper;

use std::{
    error::Error,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use everturn_wire::ToolSourceLogin;
use reqwest::Client;
use rmcp::transport::{
    AuthClient, AuthError,
    auth::{AuthorizationManager, OAuthClientConfig},
    streamable_http_client::{AuthRequiredError, InsufficientScopeError},
};
use tokio::sync::Notify;

use crate::{ConfigError, Endpoint, LoginStore, http, redactor::Redactor};
pub(crate) use exchange::Exchange;
pub(crate) use keeper::{Keeper, Kept};

/// The account at a server, shared by its connections and logins.
pub(crate) struct Account {
    server: String,
    pub(crate) endpoint: Endpoint,
    store: Arc<dyn LoginStore>,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) exchange: Arc<Exchange>,
    demand: Mutex<Option<Demand>>,
    /// The login of the connection, as kept.
    in_use: Mutex<Option<String>>,
    /// Notified when a connection should be made anew, as the login is another.
    pub(crate) changed: Notify,
}

/// What a server asked for when it refused a request.
struct Demand {
    challenge: String,
    /// The login that it refused, as kept.
    refused: Option<String>,
}

impl Account {
    pub(crate) fn new(
        server: &str,
        endpoint: &Endpoint,
        store: Arc<dyn LoginStore>,
        redactor: Arc<Redactor>,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            server: server.to_owned(),
            endpoint: endpoint.clone(),
            store,
            redactor,
            exchange: Arc::new(Exchange::new()?),
            demand: Mutex::default(),
            in_use: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Returns a client whose requests have the token, if there is one. A token that expires is replaced.
    ///
    /// # Errors
    /// When the login cannot be read, or its authorization server is not found.
    pub(crate) async fn client(self: &Arc<Self>, client: Client) -> Result<AuthClient<Client>, String> {
        let manager = async {
            let mut manager = self.manager(Keeper::of_connection(self.clone())).await?;
            let kept = self.read()?;
            let former = std::mem::replace(&mut *self.in_use(), kept);
            let is_in = manager.initialize_from_store().await.inspect_err(|_| *self.in_use() = former)?;
            if !is_in {
                *self.in_use() = None;
            }
            if let Some(Kept { credentials, secret: Some(secret) }) = self.kept()?.filter(|_| is_in) {
                let config = OAuthClientConfig::new(credentials.client_id, http::url(&self.endpoint)?);
                manager.configure_client(config.with_client_secret(secret))?;
            }
            Ok::<_, AuthError>(manager)
        };
        let manager = manager.await.map_err(|error| format!("its login cannot be used: {error}"))?;
        Ok(AuthClient::new(client, manager))
    }

    pub(crate) async fn manager(&self, keeper: Keeper) -> Result<AuthorizationManager, AuthError> {
        let url = http::url(&self.endpoint)?;
        let mut manager =
            AuthorizationManager::new_with_oauth_http_client(url, self.exchange.clone()).await?;
        manager.set_credential_store(keeper);
        Ok(manager)
    }

    /// Takes note of a server's demand for a login, if the error is one. Returns whether it is.
    pub(crate) fn hears(&self, error: &(dyn Error + 'static)) -> bool {
        let Some(challenge) = challenge(error) else { return false };
        *self.demand() = Some(Demand { challenge, refused: self.read().ok().flatten() });
        true
    }

    pub(crate) fn is_demanded(&self) -> bool {
        self.demand().is_some()
    }

    /// Forgets the demand, as the server is asked again.
    pub(crate) fn forget(&self) {
        *self.demand() = None;
    }

    /// Returns the challenge of the demand.
    pub(crate) fn challenge(&self) -> Option<String> {
        self.demand().as_ref().map(|demand| demand.challenge.clone())
    }

    /// Whether another process logged in or out: the server should be connected to again.
    pub(crate) fn is_changed(&self) -> bool {
        let Ok(kept) = self.read() else { return false };
        match &*self.demand() {
            Some(demand) => kept.is_some() && kept != demand.refused,
            None => kept.is_none() && self.in_use().is_some(),
        }
    }

    /// Whether the connection has the login that is kept. Two notices of one login can arrive: from the one who logs in, and
    /// from the one who sees what is kept change.
    pub(crate) fn is_up_to_date(&self) -> bool {
        self.read().is_ok_and(|kept| kept == *self.in_use())
    }

    /// Returns what people are told of the login.
    pub(crate) fn status(&self) -> Option<ToolSourceLogin> {
        match self.is_demanded() {
            true => Some(ToolSourceLogin::Needed),
            false => self.in_use().is_some().then_some(ToolSourceLogin::Done),
        }
    }

    /// What to do, as the reason why a server is down.
    pub(crate) fn advice(&self) -> String {
        let name = &self.server;
        format!("it asks for a login: log in on the page (Tools), or with `everturn mcp login {name}`")
    }

    fn in_use(&self) -> MutexGuard<'_, Option<String>> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn demand(&self) -> MutexGuard<'_, Option<Demand>> {
        self.demand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the challenge with which a server asked for a login, or for more rights.
fn challenge(error: &(dyn Error + 'static)) -> Option<String> {
    let mut error = Some(error);
    while let Some(current) = error {
        if let Some(required) = current.downcast_ref::<AuthRequiredError>() {
            return Some(required.www_authenticate_header.clone());
        }
        if let Some(missing) = current.downcast_ref::<InsufficientScopeError>() {
            return Some(missing.www_authenticate_header.clone());
        }
        error = current.source();
    }
    None
}
