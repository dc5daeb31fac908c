//! `everturn token`: makes, lists, revokes and rotates the tokens of callers.

use std::{
    io::{Write as _, stderr},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use everturn_orchestrator::{Clock as _, SystemClock};
use everturn_terminal::printer::{self, Ink, Printer};
use everturn_transport_http::{KnownCaller, TokenHash};
use everturn_wire::CallerName;
use serde::Serialize;
use uuid::Uuid;

use crate::{
    cli::{New, Terms, Token, TokenAction},
    config::{
        Callers, CallersFile, Config, Entry, Environment, KeptCaller, ScopeName, TermsTable, USUAL_SCOPES,
        until,
    },
};

const GAP: &str = "  ";

/// Runs the command.
pub(crate) fn run(args: Token, environment: &Environment<'_>) -> Result<ExitCode> {
    let callers = Config::callers(&args.flags(), environment)?;
    match args.action {
        TokenAction::New(new) => self::new(new, &callers),
        TokenAction::List { json } => list(&callers, json),
        TokenAction::Revoke { name } => revoke(&name, &callers),
        TokenAction::Limit { name, terms } => limit(&name, &terms, &callers),
        TokenAction::Rotate { name, until } => rotate(&name, until, &callers),
    }
}

/// Notes in the audit log what was done. It is done, also if that fails.
fn note(action: &str, name: &str, callers: &Callers) {
    let (action, object) = (format!("token {action}"), Some(name.to_owned()));
    let entry = Entry { action, object, outcome: "done".to_owned(), ..Entry::default() };
    if let Err(error) = callers.audit.add(entry) {
        let _ = writeln!(stderr(), "note: {error:#}");
    }
}

fn new(new: New, callers: &Callers) -> Result<ExitCode> {
    let New { name, scopes, until, terms: given, print } = new;
    let name = CallerName::parse(&name)?;
    check_free(&name, callers)?;
    let scopes = if scopes.is_empty() { USUAL_SCOPES.to_vec() } else { scopes };
    let token = fresh();
    let hash = TokenHash::of(token.as_bytes()).to_string();
    let mut terms = TermsTable::default();
    given.change(&mut terms);
    let until = checked(until)?;
    let caller = KeptCaller { name: name.to_string(), scopes, token_hash: Some(hash), until, terms };
    caller.known()?;
    if print {
        let table = toml::to_string(&caller)?;
        return told(
            &token,
            &["", "For the configuration file:", "", &format!("[[caller]]\n{}", table.trim_end())],
        );
    }
    let (shown, file) = (words(&caller.scopes), kept(callers)?);
    let is_first = file.change(|kept| {
        if kept.iter().any(|kept| kept.name == caller.name) {
            bail!("caller {name} already exists: `everturn token rotate {name}` gives it a new token");
        }
        kept.push(caller);
        Ok(kept.len() == 1 && callers.configured.is_empty())
    })?;
    note("new", name.as_str(), callers);
    let kept = format!(
        "{name} ({shown}) is kept in {}, with a hash of this token, which is shown only now.",
        file.path().display()
    );
    let first = "From now on, servers that use it ask everybody for a token, also you. Make your own with `everturn token new admin --scope \
                admin`, and set EVERTURN_TOKEN to it for other commands; or set EVERTURN_TOKEN for the server, too.";
    let notes: &[&str] = if is_first && !callers.has_token { &[&kept, first] } else { &[&kept] };
    told(&token, notes)
}

fn rotate(name: &str, until: Option<String>, callers: &Callers) -> Result<ExitCode> {
    let (token, until) = (fresh(), checked(until)?);
    let hash = TokenHash::of(token.as_bytes()).to_string();
    change(name, callers, |caller| {
        caller.token_hash = Some(hash);
        caller.until = until;
    })?;
    note("rotate", name, callers);
    told(&token, &[&format!("The former token of {name} is no longer valid. This one is shown only now.")])
}

fn revoke(name: &str, callers: &Callers) -> Result<ExitCode> {
    change(name, callers, |caller| caller.token_hash = None)?;
    note("revoke", name, callers);
    let mut out = Printer::of_stdout();
    out.line(Ink::Plain, &format!("The token of {name} is no longer valid. Its conversations are kept."))?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn limit(name: &str, terms: &Terms, callers: &Callers) -> Result<ExitCode> {
    let mut words = String::new();
    change(name, callers, |caller| {
        terms.clone().change(&mut caller.terms);
        words = caller.terms.words();
    })?;
    note("limit", name, callers);
    let words = if words.is_empty() { "no limits" } else { &words };
    let mut out = Printer::of_stdout();
    out.line(Ink::Plain, &format!("{name}: {words}"))?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// # Errors
/// When callers are not kept in a file.
fn kept(callers: &Callers) -> Result<&CallersFile> {
    callers.file.as_ref().context(
        "servers of a cluster take their callers from their configuration files: add what `everturn token new NAME --print` prints to \
         that of each server",
    )
}

/// Changes one caller of the file.
fn change(name: &str, callers: &Callers, change: impl FnOnce(&mut KeptCaller)) -> Result<()> {
    if callers.configured.iter().any(|caller| caller.name.as_str() == name) {
        bail!("{name} is in the configuration file, and can only be changed there");
    }
    kept(callers)?.change(|kept| match kept.iter_mut().find(|caller| caller.name == name) {
        Some(caller) => {
            change(caller);
            caller.known().map(drop)
        }
        None => bail!("there is no caller {name:?}; `everturn token list` lists them"),
    })
}

/// What `list` says of a caller.
#[derive(Serialize)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) scopes: Vec<&'static str>,
    pub(crate) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<String>,
    #[serde(flatten)]
    pub(crate) terms: TermsTable,
    pub(crate) from: &'static str,
}

impl Listed {
    /// Where callers are from that only the configuration file has.
    pub(crate) const CONFIGURED: &str = "configuration";
}

fn list(callers: &Callers, json: bool) -> Result<ExitCode> {
    let all = listed(callers.file.as_ref(), &callers.configured)?;
    let mut out = Printer::of_stdout();
    if json {
        out.line(Ink::Plain, &serde_json::to_string_pretty(&all)?)?;
    } else if all.is_empty() {
        out.line(Ink::Plain, "There are no callers. Make one: everturn token new NAME")?;
    } else {
        let head = ["NAME", "SCOPES", "STATUS", "UNTIL", "LIMITS", "FROM"].map(str::to_owned);
        let row = |listed: &Listed| {
            let until = listed.until.clone().unwrap_or_else(|| "-".to_owned());
            let limits = listed.terms.words();
            let limits = if limits.is_empty() { "-".to_owned() } else { limits };
            let (scopes, status) = (listed.scopes.join(","), listed.status.to_owned());
            [listed.name.clone(), scopes, status, until, limits, listed.from.to_owned()]
        };
        let rows: Vec<_> = [head].into_iter().chain(all.iter().map(row)).collect();
        for (at, row) in rows.iter().enumerate() {
            let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
            let padded = (0..5).map(|column| printer::pad(&row[column], width(column)));
            let line = padded.chain([row[5].clone()]).collect::<Vec<_>>().join(GAP);
            out.line(if at == 0 { Ink::Faint } else { Ink::Plain }, &line)?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// # Errors
/// When the file cannot be read.
pub(crate) fn listed(file: Option<&CallersFile>, configured: &[KnownCaller]) -> Result<Vec<Listed>> {
    let now = SystemClock::new().now().0;
    let status = |has_token: bool, until: Option<u64>| match until {
        _ if !has_token => "revoked",
        Some(until) if until <= now => "expired",
        _ => "valid",
    };
    let mut all = Vec::new();
    for caller in configured {
        all.push(Listed {
            name: caller.name.to_string(),
            scopes: caller.scopes.iter().map(|scope| ScopeName::from(*scope).as_str()).collect(),
            status: status(true, caller.until),
            until: caller.until.map(moment),
            terms: TermsTable::from(caller),
            from: Listed::CONFIGURED,
        });
    }
    for kept in file.map(CallersFile::read).transpose()?.unwrap_or_default() {
        let known = kept.known()?;
        all.push(Listed {
            scopes: kept.scopes.iter().map(|scope| scope.as_str()).collect(),
            status: status(known.token.is_some(), known.until),
            name: kept.name,
            until: kept.until,
            terms: kept.terms,
            from: "token new",
        });
    }
    Ok(all)
}

fn moment(at: u64) -> String {
    let at = i64::try_from(at).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    at.map(|at| at.to_string()).unwrap_or_default()
}

fn check_free(name: &CallerName, callers: &Callers) -> Result<()> {
    match callers.configured.iter().any(|caller| caller.name == *name) {
        true => bail!("{name} is in the configuration file: choose another name"),
        false => Ok(()),
    }
}

fn checked(text: Option<String>) -> Result<Option<String>> {
    if let Some(text) = &text
        && until(text)? <= SystemClock::new().now().0
    {
        bail!("--until {text} is over: name a later date, or `everturn token revoke` the caller");
    }
    Ok(text)
}

/// Returns a new token: 244 random bits.
pub(crate) fn fresh() -> String {
    format!("evt_{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

fn words(scopes: &[ScopeName]) -> String {
    scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", ")
}

/// Prints a token to standard output, and the rest to standard error, so that a script can take the token.
fn told(token: &str, notes: &[&str]) -> Result<ExitCode> {
    let mut out = Printer::of_stdout();
    out.line(Ink::Plain, token)?;
    out.flush()?;
    for note in notes {
        writeln!(stderr(), "{note}")?;
    }
    Ok(ExitCode::SUCCESS)
}
