//! A provider's keys: where they come from, and errors about missing ones.

use std::{fmt, fs, io::ErrorKind, path::Path};

use anyhow::{Context as _, Result, bail};

use super::{
    Environment, Hidden,
    file::Source,
    table::{CredentialName, ProviderTable},
};

/// Maximum length of a word of capital letters and digits that may be a variable's name. Keys are longer.
const LONGEST_WORD: usize = 15;

/// A configured key that is missing. The text says what to do, and repeats nothing that may be a key.
pub(super) struct Missing {
    /// The key's number in the configuration, if the provider has others.
    number: Option<usize>,
    cause: String,
}

impl Missing {
    fn because(cause: String) -> Self {
        Self { number: None, cause }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "key {number} is missing: {}", self.cause),
            None => write!(f, "its key is missing: {}", self.cause),
        }
    }
}

/// The keys of a provider.
#[derive(Default)]
pub(super) struct Keys {
    /// The available keys with their numbers in the configuration, from 1. `None` = no key is used.
    pub(super) found: Vec<(usize, Option<Hidden>)>,
    pub(super) missing: Vec<Missing>,
}

/// Returns the keys that the table names. The vendor's own URL gets its default key from `usual`; other URLs never do.
///
/// # Errors
/// Returns an error if the table contradicts itself, names no source, or has a key twice.
pub(super) fn of_table(
    table: &ProviderTable,
    usual: &str,
    environment: &Environment<'_>,
    source: &Source,
) -> Result<Keys> {
    let read: Vec<Result<Hidden, Missing>> = match (&table.api_key, &table.api_key_env, &table.api_key_file) {
        (None, None, None) if table.base_url.is_some() || table.credential == CredentialName::Client => {
            return Ok(Keys { found: vec![(1, None)], ..Keys::default() });
        }
        (None, None, None) => vec![of_variable(usual, environment)],
        (Some(keys), None, None) => {
            let read = |key: &Hidden| Ok(Ok(Hidden::new(key.reveal()).context("`api_key` is empty")?));
            keys.0.iter().map(read).collect::<Result<_>>()?
        }
        (None, Some(names), None) => {
            names.0.iter().map(|name| of_name(name, usual, environment)).collect::<Result<_>>()?
        }
        (None, None, Some(paths)) => {
            paths.0.iter().map(|path| of_file(path, source)).collect::<Result<_>>()?
        }
        _ => bail!(
            "it has several kinds of keys: keep one of `api_key`, `api_key_env`, `api_key_file`, which may be a list"
        ),
    };
    if read.is_empty() {
        bail!("its list of keys is empty: add at least one");
    }
    let mut keys = Keys::default();
    for (number, key) in (1..).zip(read) {
        match key {
            Ok(key) if keys.found.iter().any(|(_, known)| known.as_ref() == Some(&key)) => {
                bail!("its key {number} is a duplicate: list each key once");
            }
            Ok(key) => keys.found.push((number, Some(key))),
            Err(missing) => keys.missing.push(Missing { number: Some(number), ..missing }),
        }
    }
    if keys.found.is_empty() {
        keys.missing.iter_mut().for_each(|missing| missing.number = None);
    }
    Ok(keys)
}

fn of_name(name: &str, usual: &str, environment: &Environment<'_>) -> Result<Result<Hidden, Missing>> {
    match environment.get(name).as_deref().and_then(Hidden::new) {
        Some(key) => Ok(Ok(key)),
        None if is_variable_name(name) => Ok(of_variable(name, environment)),
        None => bail!(
            "the value of `api_key_env` does not look like a variable name: write the name of the environment \
             variable that holds the key, like {usual}, never the key itself"
        ),
    }
}

fn of_variable(name: &str, environment: &Environment<'_>) -> Result<Hidden, Missing> {
    let value = environment.get(name).as_deref().and_then(Hidden::new);
    value.ok_or_else(|| Missing::because(format!("set the environment variable {name}")))
}

fn of_file(path: &str, source: &Source) -> Result<Result<Hidden, Missing>> {
    match fs::read_to_string(source.path(path)) {
        Ok(text) => {
            let key = Hidden::new(&text);
            Ok(key.ok_or_else(|| Missing::because(format!("`api_key_file` {path} is empty"))))
        }
        Err(_) if !is_path(path) => bail!(
            "the value of `api_key_file` does not look like a path, and the file does not exist: write the path of the file \
             that holds the key, never the key itself"
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let place = if is_surely_path(path) { path } else { "of that name" };
            Ok(Err(Missing::because(format!("there is no `api_key_file` {place}"))))
        }
        Err(error) if is_surely_path(path) => {
            Err(error).with_context(|| format!("cannot read `api_key_file` {path}"))
        }
        Err(error) => Err(error).context("cannot read the file that `api_key_file` names"),
    }
}

/// Whether the text may be shown as the name of a variable. Many keys would be valid names, so only the usual form
/// counts.
pub(super) fn is_variable_name(name: &str) -> bool {
    let is_usual = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_');
    begins && name.chars().all(is_usual) && name.split('_').all(|word| word.len() <= LONGEST_WORD)
}

/// Whether the text can be a path, and not a key in the wrong place.
fn is_path(text: &str) -> bool {
    let path = Path::new(text);
    path.extension().is_some() || path.components().count() > 1 || text.len() <= LONGEST_WORD
}

/// Whether the text may be shown even if there is no such file. Keys may contain slashes and dots, too.
pub(super) fn is_surely_path(text: &str) -> bool {
    Path::new(text).is_absolute() || ["./", "../", "~/"].iter().any(|start| text.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_accepted_as_a_name() {
        for name in ["MY_KEY", "OPENAI_API_KEY", "_KEY2", "K"] {
            assert!(is_variable_name(name), "{name}");
        }
        let keys = [
            "sk-proj-s3cret",
            "AIzaSyD3adB33fD3adB33fD3adB33fD3adB33fs",
            "gsk_aB3cD4eF5",
            "AKIAIOSFODNN7EXAMPLE",
            "0123456789ABCDEF",
            "SK_LIVE_0123456789ABCDEF",
            "",
        ];
        for key in keys {
            assert!(!is_variable_name(key), "{key}");
        }
        assert!(is_path("/run/secrets/openai") && is_path("key.txt") && is_path("key"));
        assert!(!is_path("sk-proj-s3cretS3cret") && !is_path("AIzaSyD3adB33fD3adB33f"));
    }
}
