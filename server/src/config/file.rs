//! The configuration file: its format and its errors.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow};
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

use super::{
    Hidden,
    amount::Amount,
    caller_table::CallerTable,
    table::{
        AfterContentName, McpTable, PriceTable, ProviderTable, QuotaName, RevertName, RouteTable,
        ScheduleName,
    },
};

/// The whole file. Everything is optional.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    pub(super) server: ServerTable,
    pub(super) retry: RetryTable,
    pub(super) retention: RetentionTable,
    pub(super) tools: ToolTable,
    pub(super) agent: AgentTable,
    pub(super) compaction: CompactionTable,
    pub(super) memory: MemoryTable,
    pub(super) titles: TitleTable,
    pub(super) telemetry: TelemetryTable,
    pub(super) cluster: ClusterTable,
    pub(super) postgres: PostgresTable,
    #[serde(rename = "provider")]
    pub(super) providers: Vec<ProviderTable>,
    #[serde(rename = "route")]
    pub(super) routes: Vec<RouteTable>,
    pub(super) mcp: Vec<McpTable>,
    pub(super) caller: Vec<CallerTable>,
    pub(super) price: Vec<PriceTable>,
    pub(super) default_model: Option<String>,
    pub(super) max_steps: Option<u32>,
    pub(super) max_parallel_tools: Option<u32>,
    pub(super) eager_tools: Option<bool>,
    pub(super) system_prompt: Option<String>,
    /// The name and text of the file, for error locations.
    #[serde(skip)]
    pub(super) source: Source,
}

/// The name and text of a file.
#[derive(Debug, Default)]
pub(super) struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    /// Resolves a path relative to the file.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.path.parent().map_or_else(|| path.into(), |directory| directory.join(path))
    }

    /// Returns the location of a value in the file, as `FILE:LINE`.
    pub(super) fn place<T>(&self, of: &Spanned<T>) -> String {
        let start = of.span().start.min(self.text.len());
        format!("{}:{}", self.path.display(), line(&self.text, start))
    }
}

/// Returns the line number of a position, from 1.
fn line(text: &str, start: usize) -> usize {
    text[..start].matches('\n').count() + 1
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ServerTable {
    pub(super) listen: Option<String>,
    pub(super) data: Option<String>,
    pub(super) token: Option<Hidden>,
    pub(super) caller_header: Option<String>,
    pub(super) allowed_hosts: Vec<String>,
    pub(super) allowed_origins: Vec<String>,
    pub(super) tls_cert: Option<String>,
    pub(super) tls_key: Option<String>,
}

/// The NATS servers over which several servers share their conversations.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(not(feature = "nats"), allow(dead_code, reason = "this build refuses them"))]
#[serde(default, deny_unknown_fields)]
pub(super) struct ClusterTable {
    pub(super) servers: Vec<String>,
    pub(super) name: Option<String>,
    pub(super) prefix: Option<String>,
    pub(super) replicas: Option<usize>,
    pub(super) credentials_file: Option<String>,
    pub(super) user: Option<String>,
    pub(super) password: Option<Hidden>,
    pub(super) token: Option<Hidden>,
    pub(super) ca_file: Option<String>,
    pub(super) require_tls: bool,
}

/// The Postgres database that keeps conversations.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PostgresTable {
    pub(super) url: Option<Hidden>,
    pub(super) password: Option<Hidden>,
    pub(super) password_env: Option<String>,
    pub(super) password_file: Option<String>,
    pub(super) ca_file: Option<String>,
    pub(super) schema: Option<String>,
}

impl PostgresTable {
    /// Whether it says nothing.
    pub(super) fn is_empty(&self) -> bool {
        let texts = [&self.password_env, &self.password_file, &self.ca_file, &self.schema];
        self.url.is_none() && self.password.is_none() && texts.iter().all(|text| text.is_none())
    }
}

/// Settings of exported traces. Their destination is set in the environment.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TelemetryTable {
    pub(super) message_content: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RetryTable {
    pub(super) enabled: Option<bool>,
    pub(super) schedule: ScheduleName,
    pub(super) base_ms: Option<u64>,
    pub(super) max_delay_ms: Option<u64>,
    pub(super) max_retries: Option<u32>,
    pub(super) jitter: Option<f64>,
    pub(super) revert: Option<RevertName>,
    pub(super) max_attempts: Option<u32>,
    pub(super) clamp_hints: Option<bool>,
    pub(super) sticky: Option<bool>,
    pub(super) max_wait_ms: Option<u64>,
    pub(super) after_content: AfterContentName,
    pub(super) quota: QuotaName,
    /// By model or route, by the clients' name for it.
    pub(super) fallback_chains: BTreeMap<String, Spanned<Chain>>,
}

/// Models or routes to ask in place of one that fails, in order.
pub(super) type Chain = Vec<Spanned<String>>;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RetentionTable {
    pub(super) keep_events_days: Option<Amount>,
    pub(super) keep_events_turns: Option<Amount>,
    pub(super) keep_conversations_days: Option<Amount>,
    pub(super) keep_ephemeral_minutes: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ToolTable {
    pub(super) dice: Option<bool>,
    /// By the name of a tool, or a name pattern.
    pub(super) policy: BTreeMap<String, PolicyName>,
    pub(super) approval_timeout_ms: Option<u64>,
    pub(super) review: ReviewTable,
}

/// Requirements of all turns.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AgentTable {
    /// The file of a schema, or the schema itself.
    pub(super) final_report: Option<Spanned<Value>>,
    pub(super) report_attempts: Option<Spanned<u32>>,
}

/// Settings of automatic reviews.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ReviewTable {
    /// A model or route, by the clients' name for it.
    pub(super) model: Option<String>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) without_decision: Undecided,
}

/// Settings of compaction.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CompactionTable {
    pub(super) enabled: Option<bool>,
    /// A model or route, by the clients' name for it.
    pub(super) model: Option<Spanned<String>>,
    /// A fraction of the context window, from 0 (off) to 1.
    pub(super) ahead: Option<Spanned<f64>>,
}

/// Settings of titles by the model.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TitleTable {
    pub(super) enabled: Option<bool>,
    /// A model or route, by the clients' name for it.
    pub(super) model: Option<Spanned<String>>,
}

/// Limits on the memory that conversations take, in MiB.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MemoryTable {
    pub(super) conversation_mib: Option<Spanned<u32>>,
    pub(super) total_mib: Option<Spanned<u32>>,
}

/// What happens to a call whose review reaches no decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Undecided {
    #[default]
    Ask,
    Deny,
}

/// What must happen before a tool call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PolicyName {
    Allow,
    Ask,
    Review,
    Deny,
}

impl File {
    /// Returns the data file that it names. One that is in the working directory alone is meant: it was looked for there before.
    pub(super) fn data(&self) -> Option<PathBuf> {
        let name = self.server.data.as_deref()?;
        let (beside, here) = (self.source.path(name), PathBuf::from(name));
        Some(if here.exists() && !beside.exists() { here } else { beside })
    }

    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| {
            format!("cannot read the configuration {}: choose another file with --config", path.display())
        })?;
        Self::parse(path, text)
    }

    /// Parses a text; `path` is its name in messages.
    pub(super) fn parse(path: &Path, text: String) -> Result<Self> {
        let file: Self = toml::from_str(&text)
            .map_err(|error| anyhow!("{}{}", path.display(), describe(&text, &error)))?;
        Ok(Self { source: Source { path: path.to_owned(), text }, ..file })
    }
}

/// Formats the error as `:LINE: problem`. The parser's own message quotes the file, including keys and tokens, so this
/// repeats no values.
fn describe(text: &str, error: &toml::de::Error) -> String {
    let start = error.span().map(|span| span.start.min(text.len()));
    let place = start.map(|start| format!(":{}", line(text, start)));
    let words = start.and_then(|start| {
        let begin = text[..start].rfind('\n').map_or(0, |at| at + 1);
        text[begin..].lines().next()
    });
    let key = words.and_then(|line| line.split_once('=')).map(|(key, _)| key.trim());
    format!("{}: {}", place.unwrap_or_default(), explained(error.message(), words, key))
}

/// Returns the problem that a parser found. Repeats no values, which may be keys.
pub(super) fn problem(message: &str) -> String {
    explained(message, None, None)
}

fn explained(message: &str, words: Option<&str>, key: Option<&str>) -> String {
    let about_value = ["invalid type", "invalid value", "unknown variant"];
    let expected = message.split_once(", expected ").map(|(_, expected)| expected);
    match expected {
        Some("a sequence") if words.is_some_and(|line| line.starts_with('[')) => {
            "use double brackets, like [[provider]], because there may be several".to_owned()
        }
        Some(expected) if about_value.iter().any(|start| message.starts_with(start)) => {
            let key = key.map_or_else(|| "this".to_owned(), |key| format!("`{key}`"));
            format!("{key} must be {}", plain(expected))
        }
        _ => match meant(message) {
            Some(meant) => format!("{message}: did you mean `{meant}`?"),
            None => message.to_owned(),
        },
    }
}

/// Returns the key that was probably meant instead of an unknown one.
fn meant(message: &str) -> Option<&str> {
    let (unknown, known) = message.strip_prefix("unknown field `")?.split_once('`')?;
    everturn_terminal::nearest(unknown, known.split('`').skip(1).step_by(2))
}

/// Describes the expected value without the names of Rust types.
fn plain(expected: &str) -> &str {
    match expected {
        "u32" | "u64" => "a whole number from 0 up",
        "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "a table",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        describe(text, &toml::from_str::<File>(text).unwrap_err())
    }

    #[test]
    fn a_problem_names_its_line_and_key() {
        let cases = [
            ("\n[server]\nport = 1", ":3: unknown field `port`, expected one of"),
            ("[retry]\nenable = false", "`fallback_chains`: did you mean `enabled`?"),
            ("[retry]\nenabled = \"no\"", ":2: `enabled` must be a boolean"),
            (
                "[retry]\nschedule = \"soon\"",
                ":2: `schedule` must be one of `patient`, `exponential`, `interactive`, `cycling`",
            ),
            ("max_steps = \"many\"", ":1: `max_steps` must be a whole number"),
            ("[[provider]]\nkind = \"gemini\"", ": missing field `name`"),
            ("[retention]\nkeep_events_days = -1", ":2: `keep_events_days` must be a whole number from 0"),
            (
                "[retention]\nkeep_events_turns = \"no\"",
                ":2: `keep_events_turns` must be a whole number from 0",
            ),
            ("[route]\nname = \"main\"", ":1: use double brackets, like [[provider]]"),
            (
                "[tools.policy]\n\"fs__*\" = \"maybe\"",
                ":2: `\"fs__*\"` must be one of `allow`, `ask`, `review`, `deny`",
            ),
            ("[server\n", ":1: "),
        ];
        for (text, expected) in cases {
            let problem = problem(text);
            assert!(problem.contains(expected), "{text:?}: {problem}");
        }
    }

    #[test]
    fn a_problem_repeats_no_value() {
        let cases = [
            "[server]\ntoken = [\"s3cret\"]",
            "max_steps = \"s3cret\"",
            "[[provider]]\nname = \"a\"\nkind = \"s3cret\"\nmodels = []",
            "[[provider]]\nname = \"a\"\nmodels = \"s3cret\"",
            "[server]\ntoken = \"s3cret",
            "[server]\ntoken = s3cret",
            "[server]\ntoken = \"s3cret\" \"s3cret\"",
            "[server]\ntoken = \"s3cret\"\ntoken = \"s3cret\"",
            "[server]\ntoken = \"s3cret\\q\"",
        ];
        for text in cases {
            let problem = problem(text);
            assert!(!problem.contains("s3cret"), "{text:?}: {problem}");
            assert!(problem.starts_with(':') && problem.len() > 6, "{text:?}: {problem}");
        }
    }
}
