//! The server that the terminal client uses.

use std::path::Path;

use anyhow::{Result, anyhow};
use everturn_store_sqlite::OpenError;
use everturn_terminal::{Hidden, Host, Kept};

use crate::{
    cli,
    config::{Config, Environment, Flags},
    permission,
    private::Private,
    storage::{self, Storage},
};

/// Returns the given server, else a private one inside this process, which is stored in `private`.
pub(crate) async fn find(
    args: &cli::Chat,
    environment: &Environment<'_>,
    private: &mut Option<Private>,
) -> Result<Host> {
    let words = &args.words;
    if let Some(server) = &words.server {
        return Host::named(server, token(words.token.as_ref(), environment));
    }
    let (config, storage, unkept) = keeping(args, environment).await?;
    let mut off = config.off.clone();
    let mut warnings = [config.warnings.clone(), permission::warnings(&config)].concat();
    let token = Private::token()?;
    let started = private.insert(Private::start(config, storage.clone(), Some(token.clone())).await?);
    off.append(&mut started.off);
    warnings.append(&mut started.warnings);
    let off = off.iter().map(|line| format!("Off: {line}"));
    let warnings = warnings.iter().map(|line| format!("Warning: {line}"));
    let notes = off.chain(warnings).chain(unkept).collect();
    let name = words.model.clone().unwrap_or_else(|| started.default_model.clone());
    let kept = match storage {
        Storage::Memory => Kept::Nowhere,
        _ => Kept::Here(again(&args.flags())),
    };
    let url = started.url.clone();
    Host::private(everturn_terminal::Private { url, token, name, notes, kept, resume: started.resuming() })
}

/// Returns the configuration, and where conversations are kept. If that is only memory, a line says why, unless that was
/// wanted.
///
/// If a conversation or a file is named on the command line, the storage must be usable. Otherwise, a chat without it is better
/// than none.
async fn keeping(
    args: &cli::Chat,
    environment: &Environment<'_>,
) -> Result<(Config, Storage, Option<String>)> {
    let (words, flags) = (&args.words, args.flags());
    let mut config = Config::resolve(&Flags { memory: true, ..flags.clone() }, environment)?;
    if words.ephemeral {
        return Ok((config, Storage::Memory, None));
    }
    let opened = match Config::postgres(&flags, environment)? {
        #[cfg(feature = "postgres")]
        Some(postgres) => Storage::of_chat(&postgres).await,
        _ => file(&flags, environment, &mut config),
    };
    match opened {
        Ok(storage) => Ok((config, storage, None)),
        Err(error) if words.data.is_some() || words.goes_on() => Err(error),
        Err(error) => Ok((config, Storage::Memory, Some(format!("Not kept: {error:#}")))),
    }
}

fn file(flags: &Flags, environment: &Environment<'_>, config: &mut Config) -> Result<Storage> {
    let path = Config::data(flags, environment).map_err(|_| {
        anyhow!("there is no home directory to keep conversations in: name a file with --data, or keep nothing with --ephemeral")
    })?;
    let journal = storage::file(&path).map_err(|error| explain(error, &path))?;
    config.data = Some(path);
    Ok(Storage::File(journal))
}

/// Returns the command that opens the same file with the same configuration, for a shell.
pub(crate) fn again(flags: &Flags) -> String {
    let mut words = "everturn chat".to_owned();
    for (flag, path) in [("--config", &flags.config), ("--data", &flags.data)] {
        if let Some(path) = path {
            words.extend([" ", flag, " ", &quoted(&path.display().to_string())]);
        }
    }
    words
}

/// Quotes a word for a shell, if it must be.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "/\\.:_-+,@%=".contains(character);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Returns why a file cannot be used, and what to do about it here.
fn explain(error: anyhow::Error, path: &Path) -> anyhow::Error {
    match error.downcast_ref() {
        Some(OpenError::InUse { .. }) => anyhow!(
            "another everturn has {} open. If it is a server, talk through it with --server, e.g. --server \
             http://127.0.0.1:4777; else end it, or name another file with --data",
            path.display()
        ),
        _ => error,
    }
}

/// Returns the access token of the command line, else of the environment.
pub(crate) fn token(given: Option<&String>, environment: &Environment<'_>) -> Option<Hidden> {
    let token = given.cloned().or_else(|| environment.get("EVERTURN_TOKEN"));
    token.as_deref().and_then(Hidden::new)
}
