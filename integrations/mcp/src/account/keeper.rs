//! What is kept of a login, and where: the SDK's store over ours.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::transport::{
    AuthError,
    auth::{CredentialRefreshGuard, CredentialStore, StoredCredentials},
};
use serde::{Deserialize, Serialize};

use super::Account;

/// What is kept of a login.
#[derive(Deserialize, Serialize)]
pub(crate) struct Kept {
    pub(crate) credentials: StoredCredentials,
    /// The secret of the client, if its registration came with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<String>,
}

/// Keeps the login of an account.
pub(crate) struct Keeper {
    account: Arc<Account>,
    /// Whether the connection has what is saved: it has replaced its token.
    is_of_connection: bool,
}

impl Keeper {
    pub(crate) fn of_login(account: Arc<Account>) -> Self {
        Self { account, is_of_connection: false }
    }

    pub(super) fn of_connection(account: Arc<Account>) -> Self {
        Self { account, is_of_connection: true }
    }
}

impl Account {
    pub(super) fn read(&self) -> Result<Option<String>, AuthError> {
        self.store.read(&self.server, &self.endpoint.url).map_err(AuthError::CredentialStoreError)
    }

    /// Returns the login. Its tokens are hidden wherever the server repeats them.
    pub(crate) fn kept(&self) -> Result<Option<Kept>, AuthError> {
        let Some(text) = self.read()? else { return Ok(None) };
        // An error could quote a token.
        let kept: Kept = serde_json::from_str(&text)
            .map_err(|_| AuthError::CredentialStoreError("the kept login is not understood".to_owned()))?;
        self.hide(&kept);
        Ok(Some(kept))
    }

    /// Whether there is a login, also one that is not understood.
    pub(crate) fn is_kept(&self) -> bool {
        !matches!(self.read(), Ok(None))
    }

    /// Keeps a login, or forgets it.
    pub(crate) fn keep(&self, kept: Option<&Kept>) -> Result<(), AuthError> {
        let text = kept.map(serde_json::to_string).transpose();
        let text =
            text.map_err(|_| AuthError::CredentialStoreError("the login cannot be written".to_owned()))?;
        kept.inspect(|kept| self.hide(kept));
        let kept = self.store.write(&self.server, &self.endpoint.url, text.as_deref());
        kept.map_err(AuthError::CredentialStoreError)
    }

    fn hide(&self, kept: &Kept) {
        let Ok(serde_json::Value::Object(tokens)) = serde_json::to_value(&kept.credentials.token_response)
        else {
            return;
        };
        let of = |name: &str| tokens.get(name).and_then(serde_json::Value::as_str);
        let secrets = ["access_token", "refresh_token", "id_token"].into_iter().filter_map(of);
        self.redactor.hide(secrets.chain(kept.secret.as_deref()));
    }
}

#[async_trait]
impl CredentialStore for Keeper {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.account.kept()?.map(|kept| kept.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let former = self.account.kept().ok().flatten();
        let same = former.filter(|former| former.credentials.client_id == credentials.client_id);
        self.account.keep(Some(&Kept { credentials, secret: same.and_then(|former| former.secret) }))?;
        if self.is_of_connection {
            *self.account.in_use() = self.account.read()?;
        }
        Ok(())
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.account.keep(None)
    }

    /// Two processes must not use one refresh token, as it may be good for one use.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let store = self.account.store.clone();
        let lock = tokio::task::spawn_blocking(move || store.lock()).await;
        match lock {
            Ok(Ok(lock)) => Ok(Some(CredentialRefreshGuard::new(lock))),
            Ok(Err(why)) => Err(AuthError::CredentialStoreError(why)),
            Err(error) => Err(AuthError::CredentialStoreError(error.to_string())),
        }
    }
}
