//! How each program is told where to send its calls: one table.

mod claude;
mod codex;
mod opencode;
mod pi;

use std::{ffi::OsString, path::Path};

use anyhow::Result;

use super::{
    file::OwnFile,
    upstream::{
        OwnProvider, Upstream,
        Vendor::{self, Anthropic, Gemini, OpenAi},
    },
};

/// A variable with a base URL, the API behind it, and what the program expects after a server's address.
type Variable = (&'static str, Vendor, &'static str);

/// A row of the table.
pub(super) struct Program {
    /// The name of its executable.
    name: &'static str,
    variables: &'static [Variable],
    /// What else it must be told, beside its variables.
    more: fn(&Site<'_>, &[OsString]) -> Result<Told>,
    /// Where its calls go, where that is more than the variables say.
    upstreams: Option<fn(&Lookup<'_>) -> Vec<Upstream>>,
    /// Whether it can be told to send the server's token.
    pub(super) sends_token: bool,
    /// Finds the providers of its user's configuration, from the directory that it is started in.
    pub(super) own: fn(&Lookup<'_>, &Path) -> Vec<OwnProvider>,
}

/// The server, and the environment of the user.
pub(super) struct Site<'a> {
    /// The address of the server, without a slash at its end.
    pub(super) url: &'a str,
    pub(super) environment: &'a Lookup<'a>,
    /// The providers of its user's configuration that the server passes calls on to.
    pub(super) own: &'a [OwnProvider],
    /// Whether the server wants the token of [`TOKEN`], besides the credential of the program.
    pub(super) has_token: bool,
}

/// The variable with the server's token, and the header that it goes into.
pub(super) const TOKEN: &str = "EVERTURN_TOKEN";
const HEADER: &str = "x-everturn-token";

/// Looks up a variable of the environment.
pub(super) type Lookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// What a program is told.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) variables: Vec<(String, String)>,
    /// Arguments that come before the user's.
    pub(super) arguments: Vec<OsString>,
    /// A file of ours that the arguments name.
    pub(super) file: Option<OwnFile>,
}

/// The programs that are known. A new one is a row; `docs/coding-agents.md` says which were tried.
const PROGRAMS: [Program; 10] = [
    Program {
        more: claude::told,
        sends_token: true,
        upstreams: Some(claude::upstreams),
        ..Program::of_variables("claude", &[(claude::ADDRESS, Anthropic, "")])
    },
    Program {
        more: codex::told,
        sends_token: true,
        upstreams: Some(codex::upstreams),
        ..Program::of_variables("codex", &[("OPENAI_BASE_URL", OpenAi, "/v1")])
    },
    Program {
        more: opencode::told,
        own: opencode::own,
        sends_token: true,
        ..Program::of_variables("opencode", ALL)
    },
    Program { more: pi::told, own: pi::own, sends_token: true, ..Program::of_variables("pi", ALL) },
    Program::of_variables(
        "aider",
        &[
            ("OPENAI_API_BASE", OpenAi, "/v1"),
            ("ANTHROPIC_API_BASE", Anthropic, ""),
            ("GEMINI_API_BASE", Gemini, ""),
        ],
    ),
    Program::of_variables("goose", &[("OPENAI_HOST", OpenAi, ""), ("ANTHROPIC_HOST", Anthropic, "")]),
    Program::of_variables("gemini", &[("GOOGLE_GEMINI_BASE_URL", Gemini, "")]),
    Program::of_variables("qwen", &[("OPENAI_BASE_URL", OpenAi, "/v1")]),
    Program::of_variables(
        "crush",
        &[
            ("ANTHROPIC_API_ENDPOINT", Anthropic, ""),
            ("OPENAI_API_ENDPOINT", OpenAi, "/v1"),
            ("GEMINI_API_ENDPOINT", Gemini, ""),
        ],
    ),
    Program::of_variables("cline", ALL),
];

/// The variables of the vendors' own clients, which most programs that use them obey.
const ALL: &[Variable] = &[
    ("ANTHROPIC_BASE_URL", Anthropic, ""),
    ("OPENAI_BASE_URL", OpenAi, "/v1"),
    ("OPENAI_API_BASE", OpenAi, "/v1"),
    ("GOOGLE_GEMINI_BASE_URL", Gemini, ""),
];

/// Any other program.
const OTHER: Program = Program::of_variables("", ALL);

impl Program {
    const fn of_variables(name: &'static str, variables: &'static [Variable]) -> Self {
        Self {
            name,
            variables,
            more: |_, _| Ok(Told { variables: Vec::new(), arguments: Vec::new(), file: None }),
            upstreams: None,
            sends_token: false,
            own: |_, _| Vec::new(),
        }
    }

    /// Finds the row of an executable, which may be given with its path.
    pub(super) fn of(command: &OsString) -> Self {
        let stem = Path::new(command).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        PROGRAMS.into_iter().find(|program| program.name == stem).unwrap_or(OTHER)
    }

    /// Returns where its calls go: where the environment says, else to the vendors.
    pub(super) fn upstreams(&self, environment: &Lookup<'_>) -> Vec<Upstream> {
        if let Some(upstreams) = self.upstreams {
            return upstreams(environment);
        }
        let mut found: Vec<Upstream> = Vec::new();
        for vendor in [Anthropic, OpenAi, Gemini] {
            let mut of_vendor = self.variables.iter().filter(|(_, of, _)| *of == vendor).peekable();
            if of_vendor.peek().is_none() {
                continue;
            }
            let named = of_vendor
                .find_map(|(name, _, suffix)| Some(Upstream::named(vendor, &environment(name)?, suffix)));
            found.push(named.unwrap_or_else(|| Upstream::usual(vendor)));
        }
        found
    }

    /// Returns what it is told. `words` are the user's arguments.
    pub(super) fn told(&self, site: &Site<'_>, words: &[OsString]) -> Result<Told> {
        let mut told = (self.more)(site, words)?;
        let variables = self.variables.iter();
        told.variables
            .extend(variables.map(|(name, _, suffix)| ((*name).to_owned(), format!("{}{suffix}", site.url))));
        Ok(told)
    }
}

#[cfg(test)]
mod tests;
