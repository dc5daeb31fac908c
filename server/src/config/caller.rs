//! Callers: those of the configuration file, and those made with `everturn token`, in a file beside the data.
//!
//! Both have the same form, and neither has a token: only its hash.

use std::{collections::BTreeSet, path::Path, time::SystemTime};

use anyhow::{Context as _, Result, anyhow, bail};
use everturn_orchestrator::{Scope, Terms};
use everturn_transport_http::{KnownCaller, TokenHash};
use everturn_wire::CallerName;
use jiff::{Timestamp, ToSpan as _, civil::Date, tz::TimeZone};
use serde::{Deserialize, Serialize};

use super::{
    Environment,
    caller_table::{CallerTable, ScopeName},
    file::{Source, problem},
    private_file::PrivateFile,
    terms::TermsTable,
};

const NOTE: &str = "# Callers that were made with `everturn token`, with hashes of their tokens. One without a hash is revoked. While this \
                    file is here, servers ask everybody for a token.\n\n";

impl ScopeName {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Calls => "calls",
            Self::Admin => "admin",
            Self::Proxy => "proxy",
        }
    }

    fn scope(self) -> Scope {
        match self {
            Self::Chat => Scope::Chat,
            Self::Calls => Scope::Calls,
            Self::Admin => Scope::Admin,
            Self::Proxy => Scope::Proxy,
        }
    }
}

impl From<Scope> for ScopeName {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Chat => Self::Chat,
            Scope::Calls => Self::Calls,
            Scope::Admin => Self::Admin,
            Scope::Proxy => Self::Proxy,
        }
    }
}

/// What a caller may use if nothing is said.
pub(crate) const USUAL_SCOPES: [ScopeName; 2] = [ScopeName::Chat, ScopeName::Calls];

/// A caller in the file beside the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptCaller {
    pub(crate) name: String,
    pub(crate) scopes: Vec<ScopeName>,
    /// `None` = it was revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<String>,
    #[serde(flatten)]
    pub(crate) terms: TermsTable,
}

/// The file of callers beside a data file.
#[derive(Clone, Debug)]
pub(crate) struct CallersFile(PrivateFile);

#[derive(Default, Serialize, Deserialize)]
struct Kept {
    #[serde(default)]
    caller: Vec<KeptCaller>,
}

impl CallersFile {
    pub(crate) fn beside(data: &Path) -> Self {
        Self(PrivateFile::beside(data, ".callers.toml"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns when the file changed; `None` = it does not exist.
    pub(crate) fn changed_at(&self) -> Option<(SystemTime, u64)> {
        self.0.changed_at()
    }

    /// Returns the callers; none if the file does not exist.
    ///
    /// # Errors
    /// When the file cannot be read or understood. The error quotes nothing of it.
    pub(crate) fn read(&self) -> Result<Vec<KeptCaller>> {
        let place = || format!("cannot read the callers in {}", self.path().display());
        parse(self.0.read().with_context(place)?).with_context(place)
    }

    /// Changes the callers.
    ///
    /// # Errors
    /// When the file cannot be read or written, and those of `change`; it is then unchanged.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Vec<KeptCaller>) -> Result<T>) -> Result<T> {
        let place = || format!("cannot write the callers to {}", self.path().display());
        let _lock = self.0.lock("lock").with_context(place)?;
        let mut callers = self.read()?;
        let told = change(&mut callers)?;
        let text = toml::to_string(&Kept { caller: callers })?;
        self.0.replace(&format!("{NOTE}{text}")).with_context(place)?;
        Ok(told)
    }
}

fn parse(text: Option<String>) -> Result<Vec<KeptCaller>> {
    let kept: Kept =
        toml::from_str(&text.unwrap_or_default()).map_err(|error| anyhow!("{}", problem(error.message())))?;
    // Each is read, so that a mistake is told here.
    kept.caller.iter().try_for_each(|caller| caller.known().map(drop))?;
    Ok(kept.caller)
}

impl KeptCaller {
    /// # Errors
    /// When it is not valid.
    pub(crate) fn known(&self) -> Result<KnownCaller> {
        let name = CallerName::parse(&self.name).with_context(|| format!("caller {:?}", self.name))?;
        let hash = |text: &String| {
            TokenHash::parse(text)
                .with_context(|| format!("the token_hash of {name} must have 64 hexadecimal digits"))
        };
        let scopes: Vec<Scope> = self.scopes.iter().map(|scope| scope.scope()).collect();
        Ok(KnownCaller {
            token: self.token_hash.as_ref().map(hash).transpose()?,
            until: self.until.as_deref().map(until).transpose()?,
            terms: checked(&name, &scopes, &self.terms)?,
            scopes,
            models: self.terms.models.clone(),
            name,
        })
    }
}

/// # Errors
/// When they are not valid, or for an administrator, who has no limits.
fn checked(name: &CallerName, scopes: &[Scope], terms: &TermsTable) -> Result<Terms> {
    if scopes.contains(&Scope::Admin) && *terms != TermsTable::default() {
        bail!("{name} is an administrator, who has no limits and no priority: leave them out");
    }
    terms.terms(name.as_str())
}

/// Returns a warning that a server of a cluster does not use this file.
///
/// # Errors
/// When nobody would be asked for a token without it: whoever made the callers relies on that.
pub(super) fn unused(file: &CallersFile, asks: bool) -> Result<String> {
    let why = format!(
        "the callers in {} are not used: servers of a cluster take them from their configuration files ([[caller]])",
        file.path().display()
    );
    if !asks {
        bail!(
            "{why}. Without them, nobody would need a token: configure callers, set EVERTURN_TOKEN, or move the file away"
        );
    }
    Ok(why)
}

/// Returns the callers of the configuration file.
pub(super) fn resolve(
    tables: &[CallerTable],
    environment: &Environment<'_>,
    source: &Source,
) -> Result<Vec<KnownCaller>> {
    let mut names = BTreeSet::new();
    let mut callers = Vec::new();
    for table in tables {
        let place = source.place(&table.name);
        let name = CallerName::parse(table.name.get_ref()).with_context(|| place.clone())?;
        if !names.insert(name.clone()) {
            bail!("{place}: two callers are named {name}: give each its own name");
        }
        let token = match (&table.token_hash, &table.token_env) {
            (Some(hash), None) => TokenHash::parse(hash.get_ref()).with_context(|| {
                format!("{}: `token_hash` must have 64 hexadecimal digits, as `everturn token new NAME --print` prints them", source.place(hash))
            })?,
            (None, Some(variable)) => {
                let token = environment.get(variable).with_context(|| {
                    format!("{place}: the variable {variable}, which has the token of {name}, is not set")
                })?;
                TokenHash::of(token.trim().as_bytes())
            }
            _ => bail!("{place}: caller {name} needs either `token_hash` or `token_env`"),
        };
        let until = match &table.until {
            Some(text) => Some(until(text.get_ref()).with_context(|| source.place(text))?),
            None => None,
        };
        let scopes = if table.scopes.is_empty() { &USUAL_SCOPES[..] } else { &table.scopes };
        let scopes: Vec<Scope> = scopes.iter().map(|scope| scope.scope()).collect();
        let terms = checked(&name, &scopes, &table.terms()).with_context(|| place.clone())?;
        let models = table.models.clone();
        callers.push(KnownCaller { name, scopes, token: Some(token), until, terms, models });
    }
    Ok(callers)
}

/// Reads when a token expires, in epoch milliseconds: a moment, or a day (UTC) at whose end it does.
///
/// # Errors
/// When it is neither.
pub(crate) fn until(text: &str) -> Result<u64> {
    let at = text.parse::<Timestamp>().ok().or_else(|| {
        // It would also read a moment, and ignore its time.
        let day = text.parse::<Date>().ok().filter(|_| !text.contains('T'));
        let next = day?.checked_add(1.day()).ok()?;
        next.to_zoned(TimeZone::UTC).ok().map(|start| start.timestamp())
    });
    let at = at.and_then(|at| u64::try_from(at.as_millisecond()).ok());
    at.with_context(|| {
        format!("{text:?} is not a date like 2027-01-31, or a moment like 2027-01-31T12:00:00Z")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_at_its_end() {
        assert_eq!(until("1970-01-01").unwrap(), 86_400_000);
        assert_eq!(until("1970-01-01T00:00:01Z").unwrap(), 1_000);
        for bad in ["", "tomorrow", "1970-13-01", "1970-01-01T00:00:01", "1960-01-01"] {
            assert!(until(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_file_has_what_was_put_into_it() {
        let home = tempfile::tempdir().unwrap();
        let file = CallersFile::beside(&home.path().join("a.db"));
        assert!(file.read().unwrap().is_empty() && file.changed_at().is_none());
        let ann = KeptCaller {
            name: "ann".to_owned(),
            scopes: vec![ScopeName::Chat],
            token_hash: Some(TokenHash::of(b"t").to_string()),
            until: Some("2027-01-31".to_owned()),
            terms: TermsTable { parallel: Some(2), ..TermsTable::default() },
        };
        file.change(|callers| {
            callers.push(ann.clone());
            Ok(())
        })
        .unwrap();
        assert_eq!(file.read().unwrap(), std::slice::from_ref(&ann));
        let known = ann.known().unwrap();
        assert_eq!((known.scopes, known.token), (vec![Scope::Chat], Some(TokenHash::of(b"t"))));
        let refused = file.change(|callers| -> Result<()> {
            callers.clear();
            bail!("no")
        });
        assert!(refused.is_err() && file.read().unwrap() == [ann]);
    }

    #[test]
    fn what_is_wrong_in_the_file_is_told_without_quoting_it() {
        let home = tempfile::tempdir().unwrap();
        let file = CallersFile::beside(&home.path().join("a.db"));
        for text in [
            "[[caller]]\ntoken_hash = \"s3cret",
            "caller = \"s3cret\"",
            "[[caller]]\nname = \"a\"\nscopes = []\ntoken_hash = \"s3cret\"",
        ] {
            std::fs::write(file.path(), text).unwrap();
            let error = format!("{:#}", file.read().unwrap_err());
            assert!(error.contains("a.db.callers.toml") && !error.contains("s3cret"), "{error}");
            assert!(file.change(|_| Ok(())).is_err());
            assert_eq!(std::fs::read_to_string(file.path()).unwrap(), text);
        }
    }
}
