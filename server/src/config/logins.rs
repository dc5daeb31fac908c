//! Logins at MCP servers: a file beside the data that only its owner can read.

use std::{collections::BTreeMap, path::Path, time::SystemTime};

use anyhow::{Context as _, Result, anyhow};
use everturn_mcp::LoginStore;
use serde::{Deserialize, Serialize};

use super::private_file::PrivateFile;

/// The file of logins.
#[derive(Clone, Debug)]
pub(crate) struct LoginFile(PrivateFile);

/// By server.
type Logins = BTreeMap<String, Entry>;

#[derive(Deserialize, Serialize)]
struct Entry {
    /// The URL of the server, which alone gets the token.
    url: String,
    login: String,
}

impl LoginFile {
    /// The file beside a data file.
    pub(crate) fn beside(data: &Path) -> Self {
        Self(PrivateFile::beside(data, ".logins.json"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns when the file changed; `None` = it does not exist.
    pub(crate) fn changed_at(&self) -> Option<(SystemTime, u64)> {
        self.0.changed_at()
    }

    fn all(&self) -> Result<Logins> {
        let place = || format!("cannot read the logins in {}", self.path().display());
        let Some(text) = self.0.read().with_context(place)? else { return Ok(Logins::new()) };
        // The error could quote a token.
        serde_json::from_str(&text).map_err(|_| anyhow!("it is not what Everturn wrote")).with_context(place)
    }

    fn change(&self, change: impl FnOnce(&mut Logins)) -> Result<()> {
        let place = || format!("cannot write the logins to {}", self.path().display());
        let _lock = self.0.lock("lock").with_context(place)?;
        let mut all = self.all()?;
        change(&mut all);
        self.0.replace(&serde_json::to_string_pretty(&all)?).with_context(place)
    }
}

impl LoginStore for LoginFile {
    fn read(&self, server: &str, url: &str) -> Result<Option<String>, String> {
        let mut all = self.all().map_err(|error| format!("{error:#}"))?;
        Ok(all.remove(server).filter(|entry| entry.url == url).map(|entry| entry.login))
    }

    fn write(&self, server: &str, url: &str, login: Option<&str>) -> Result<(), String> {
        let change = |all: &mut Logins| match login {
            Some(login) => {
                let entry = Entry { url: url.to_owned(), login: login.to_owned() };
                all.insert(server.to_owned(), entry);
            }
            None => all.retain(|name, entry| name != server || entry.url != url),
        };
        self.change(change).map_err(|error| format!("{error:#}"))
    }

    fn lock(&self) -> Result<Box<dyn Send>, String> {
        let lock = self.0.lock("refresh-lock").map_err(|error| format!("{error:#}"))?;
        Ok(Box::new(lock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(home: &tempfile::TempDir) -> LoginFile {
        LoginFile::beside(&home.path().join("new").join("a.db"))
    }

    #[test]
    fn a_login_is_for_its_url_alone() {
        let home = tempfile::tempdir().unwrap();
        let (file, url) = (file(&home), "https://a/mcp");
        assert_eq!(file.read("a", url).unwrap(), None);
        file.write("a", url, Some("s3cret")).unwrap();
        file.write("b", url, Some("other")).unwrap();
        assert_eq!(file.read("a", url).unwrap().as_deref(), Some("s3cret"));
        assert_eq!(file.read("a", "https://evil/mcp").unwrap(), None);
        file.write("a", "https://evil/mcp", None).unwrap();
        assert_eq!(file.read("a", url).unwrap().as_deref(), Some("s3cret"));
        file.write("a", url, None).unwrap();
        assert!(!std::fs::read_to_string(file.path()).unwrap().contains("s3cret"));
        assert_eq!(file.read("b", url).unwrap().as_deref(), Some("other"));
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let file = file(&home);
        file.write("a", "https://a/mcp", Some("s3cret")).unwrap();
        drop(file.lock().unwrap());
        let all: Vec<_> = std::fs::read_dir(file.path().parent().unwrap()).unwrap().collect();
        assert_eq!(all.len(), 3, "the file and two locks");
        for entry in all {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
        }
    }

    #[test]
    fn a_file_that_is_not_understood_is_not_quoted_and_not_overwritten() {
        let home = tempfile::tempdir().unwrap();
        let file = file(&home);
        std::fs::create_dir_all(file.path().parent().unwrap()).unwrap();
        std::fs::write(file.path(), "{\"a\": \"s3cret\"}").unwrap();
        for error in [file.read("a", "u").unwrap_err(), file.write("a", "u", Some("x")).unwrap_err()] {
            assert!(error.contains("a.db.logins.json") && !error.contains("s3cret"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "{\"a\": \"s3cret\"}");
    }
}
