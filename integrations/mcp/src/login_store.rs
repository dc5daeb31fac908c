//! Where logins are kept.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
};

/// Where logins are kept: by server, and for its URL alone, so that no other server gets a token.
pub trait LoginStore: fmt::Debug + Send + Sync {
    /// Returns what is kept, a text with secrets.
    ///
    /// # Errors
    /// Returns why it cannot be read, without secrets.
    fn read(&self, server: &str, url: &str) -> Result<Option<String>, String>;

    /// Keeps a text, or removes what is kept.
    ///
    /// # Errors
    /// Returns why it cannot be written, without secrets.
    fn write(&self, server: &str, url: &str, login: Option<&str>) -> Result<(), String>;

    /// Waits until no other process replaces a token, and keeps them from it until the value is dropped.
    ///
    /// # Errors
    /// Returns why it cannot.
    fn lock(&self) -> Result<Box<dyn Send>, String>;
}

/// Keeps logins until the process ends.
#[derive(Default)]
pub struct MemoryLogins(Mutex<HashMap<(String, String), String>>);

impl fmt::Debug for MemoryLogins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryLogins")
    }
}

impl LoginStore for MemoryLogins {
    fn read(&self, server: &str, url: &str) -> Result<Option<String>, String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(all.get(&(server.to_owned(), url.to_owned())).cloned())
    }

    fn write(&self, server: &str, url: &str, login: Option<&str>) -> Result<(), String> {
        let (mut all, name) =
            (self.0.lock().unwrap_or_else(PoisonError::into_inner), (server.to_owned(), url.to_owned()));
        match login {
            Some(login) => all.insert(name, login.to_owned()),
            None => all.remove(&name),
        };
        Ok(())
    }

    fn lock(&self) -> Result<Box<dyn Send>, String> {
        Ok(Box::new(()))
    }
}
