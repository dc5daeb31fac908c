//! `everturn provider`: adds, lists and removes providers without a configuration file.

use std::{
    io::{IsTerminal as _, Read as _, stdin},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use everturn_terminal::{
    ask_secret,
    printer::{self, Ink, Printer},
};
use everturn_wire::Category;

use crate::{
    cli::{Add, Provider, ProviderAction},
    config::{
        AddedFile, Config, Environment, Flags, Hidden, KNOWN_VENDORS, KnownVendor, Wanted, known_vendor,
    },
    host::again,
    providers::{Made, Problem, Tried, attempt, make},
};

/// Maximum size of a key, in bytes.
const KEY: u64 = 16 << 10;
/// Maximum number of models listed.
const MODELS: usize = 8;

const GAP: &str = "  ";

/// Runs the command.
pub(crate) async fn run(args: Provider, environment: &Environment<'_>) -> Result<ExitCode> {
    let flags = args.flags();
    match args.action {
        ProviderAction::Add(Add { vendor: None, .. }) => vendors(),
        ProviderAction::Add(add) => self::add(add, &flags, environment).await,
        ProviderAction::List => list(&flags, environment),
        ProviderAction::Remove { name } => remove(&name, &flags, environment),
    }
}

fn vendors() -> Result<ExitCode> {
    let mut out = Printer::of_stdout();
    let widest = KNOWN_VENDORS.iter().map(|vendor| vendor.id.len()).max().unwrap_or_default();
    for KnownVendor { id, label, keys, .. } in KNOWN_VENDORS {
        let page = keys.map(|page| format!("{GAP}keys: {page}")).unwrap_or_default();
        out.line(Ink::Plain, &format!("{}{GAP}{label}{page}", printer::pad(id, widest)))?;
    }
    out.line(Ink::Plain, "")?;
    out.line(Ink::Plain, "Choose one: everturn provider add VENDOR")?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

async fn add(add: Add, flags: &Flags, environment: &Environment<'_>) -> Result<ExitCode> {
    let id = add.vendor.unwrap_or_default();
    let vendor = known_vendor(&id)?;
    let (file, taken) = Config::added(flags, environment)?;
    let key = match add.key_env {
        Some(name) => {
            Some(environment.get(&name).with_context(|| format!("the variable {name} is not set"))?)
        }
        None => key(vendor)?,
    };
    let key = key.as_deref().and_then(Hidden::new);
    let has_key = key.is_some();
    let wanted = Wanted { vendor: id, name: add.name, base_url: add.base_url, key, models: add.models };
    let added = wanted.resolve()?;
    if taken.iter().any(|name| name == added.name()) {
        bail!(
            "{:?} is in the configuration (its file or the environment), and can only be changed there; add it under another \
             name with --name",
            added.name()
        );
    }
    let made = make(&added)?;
    let mut out = Printer::of_stdout();
    out.line(Ink::Faint, "Trying it ...")?;
    out.flush()?;
    let tried = match attempt(&made).await {
        Err(problem) if add.anyway => Tried { note: Some(problem), ..Tried::default() },
        Err(problem) => {
            tell(&mut out, Ink::Bad, &problem)?;
            if !has_key && problem.category == Some(Category::Auth) {
                out.line(Ink::Plain, "No key was given: pipe it in, or name its variable with --key-env.")?;
            }
            let pages = [("Keys", vendor.keys), ("Credit", vendor.billing)];
            for (what, page) in pages.iter().filter_map(|(what, page)| Some((what, (*page)?))) {
                out.line(Ink::Plain, &format!("{what}: {page}"))?;
            }
            out.line(Ink::Plain, "Nothing was kept. Try again, or add it as it is with --anyway.")?;
            out.flush()?;
            return Ok(ExitCode::FAILURE);
        }
        Ok(tried) => tried,
    };
    let was_there = file.add(added)?;
    report(&mut out, &made, &tried, was_there, &file, &again(flags))?;
    Ok(ExitCode::SUCCESS)
}

/// Asks for the key in a terminal; elsewhere it is read from standard input. None is an answer, too.
fn key(vendor: &KnownVendor) -> Result<Option<String>> {
    if !stdin().is_terminal() {
        let mut key = String::new();
        stdin().take(KEY).read_to_string(&mut key).context("cannot read the key from standard input")?;
        return Ok(Some(key));
    }
    let question = match vendor.keys {
        Some(page) => format!("Make a key at {page}\nPaste it here (it is not shown), then Enter: "),
        None => "Paste its key here (it is not shown), or press Enter if it needs none: ".to_owned(),
    };
    ask_secret(&question)
}

fn tell(out: &mut Printer<impl std::io::Write>, ink: Ink, problem: &Problem) -> Result<()> {
    out.line(ink, &problem.error)?;
    for line in problem.advice.iter().chain(&problem.message) {
        out.line(Ink::Plain, line)?;
    }
    Ok(())
}

fn report(
    out: &mut Printer<impl std::io::Write>,
    made: &Made,
    tried: &Tried,
    was_there: bool,
    file: &AddedFile,
    chat: &str,
) -> Result<()> {
    let (name, models) = (&made.provider.name, made.models());
    if let Some(model) = &tried.answered {
        out.line(Ink::Good, &format!("{name}/{model} answered."))?;
    }
    if let Some(note) = &tried.note {
        tell(out, Ink::Warning, note)?;
    }
    let shown: Vec<String> =
        models.iter().take(MODELS).map(|model| format!("{name}/{}", model.name)).collect();
    let more = match models.len().saturating_sub(MODELS) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    if !shown.is_empty() {
        out.line(Ink::Plain, &format!("Models: {}{more}", shown.join(", ")))?;
    }
    let verb = if was_there { "Replaced" } else { "Added" };
    out.line(Ink::Plain, &format!("{verb} in {}, which only you can read.", file.path().display()))?;
    out.line(Ink::Plain, "Servers that use it offer its models now; they need no restart.")?;
    if let Some(model) =
        tried.answered.as_ref().map(|model| format!("{name}/{model}")).or(shown.first().cloned())
    {
        out.line(Ink::Plain, &format!("Try it: {chat} --model {model} hello"))?;
    }
    out.flush()?;
    Ok(())
}

fn list(flags: &Flags, environment: &Environment<'_>) -> Result<ExitCode> {
    let config = Config::resolve(flags, environment)?;
    let rows: Vec<[String; 4]> = [(&config.providers, "configuration"), (&config.added, "added")]
        .into_iter()
        .flat_map(|(providers, source)| providers.iter().map(move |provider| (provider, source)))
        .map(|(provider, source)| {
            let key = provider.key_end.as_ref().map_or_else(|| "-".to_owned(), |end| format!("...{end}"));
            [provider.name.clone(), provider.api.kind().to_owned(), key, source.to_owned()]
        })
        .collect();
    let mut out = Printer::of_stdout();
    if rows.is_empty() {
        out.line(Ink::Plain, "No provider is configured. Add one: everturn provider add")?;
    } else {
        let head = ["NAME", "API", "KEY", "FROM"].map(str::to_owned);
        let width =
            |column: usize| rows.iter().chain([&head]).map(|row| row[column].len()).max().unwrap_or(0);
        let widths = [0, 1, 2].map(width);
        for (ink, row) in [(Ink::Faint, &head)].into_iter().chain(rows.iter().map(|row| (Ink::Plain, row))) {
            let padded = row.iter().zip(widths).map(|(cell, width)| printer::pad(cell, width));
            let line = padded.chain([row[3].clone()]).collect::<Vec<_>>().join(GAP);
            out.line(ink, &line)?;
        }
    }
    for line in &config.off {
        out.line(Ink::Warning, &format!("Off: {line}"))?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn remove(name: &str, flags: &Flags, environment: &Environment<'_>) -> Result<ExitCode> {
    let (file, taken) = Config::added(flags, environment)?;
    if file.remove(name)? {
        let mut out = Printer::of_stdout();
        out.line(Ink::Plain, &format!("Removed {name} and its key."))?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    match taken.iter().any(|taken| taken == name) {
        true => bail!("{name:?} is in the configuration (its file or the environment): remove it there"),
        false => bail!("no provider {name:?} was added; `everturn provider list` lists them"),
    }
}
