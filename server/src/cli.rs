//! The command line.

mod audit;
mod conversations;
mod health;
mod mcp_login;
mod provider;
mod token;

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use everturn_terminal::Running;

use crate::{config::Flags, watch};

pub(crate) use audit::Audit;
pub(crate) use conversations::Conversations;
pub(crate) use health::Health;
pub(crate) use mcp_login::Mcp;
#[cfg(feature = "mcp")]
pub(crate) use mcp_login::McpAction;
pub(crate) use provider::{Add, Provider, ProviderAction};
pub(crate) use token::{New, Terms, Token, TokenAction};

/// LLM agent turns that survive transient provider failures.
///
/// When a model's provider is overloaded, rate limited or unreachable for a while, a turn waits, visibly, and then
/// finishes. Without a command, everturn runs serve.
#[derive(Debug, Parser)]
#[command(name = "everturn", version, args_conflicts_with_subcommands = true, after_help = SETTINGS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Serve,
}

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the page and the API (what happens without a command)
    #[command(after_help = SETTINGS)]
    Serve(Serve),
    /// Talk to a model in the terminal
    ///
    /// Without a message, in a terminal, it opens a conversation; /help lists its commands. You can type your next message while
    /// an answer arrives: it is sent when the answer ends. While a turn waits for its provider and nothing is typed, Esc cancels the
    /// wait and r skips it; Ctrl-C ends the turn. /model NAME chooses a model, also for a turn that waits, /retry asks again,
    /// /stop ends the answer.
    ///
    /// The conversation is kept in the data file of serve, unless --ephemeral is given; --continue goes on with the latest.
    /// While a server has that file open, it is not kept: use --server.
    ///
    /// A tool call that needs approval is shown with its arguments: y allows it, a allows its tool for the conversation, n
    /// denies it; so do the lines /allow, /allow always and /deny REASON. /allowed lists what is allowed, /revoke TOOL takes
    /// that back.
    ///
    /// The answer goes to standard output, everything else to standard error. With --json, standard output has the events of
    /// the turn, one JSON object per line. Exit codes: 0 answered, or left with /exit, 1 failed or cancelled, 2 wrong usage, 130
    /// interrupted.
    #[command(after_help = SETTINGS)]
    Chat(Chat),
    /// Run one turn to its end, and print its answer or the report that it must end with
    ///
    /// Piped input is appended to the message. Without one, --continue or --conversation ID resumes a turn that was left unfinished, e.g.
    /// by a kill, and prints its answer.
    ///
    /// For scripts: --report schema.json requires a report of the model that fits this JSON Schema, and prints it. Failures are
    /// waited out, replies without a valid report are sent back to the model. Ctrl-C stops the turn.
    ///
    /// The report, or else the answer, goes to standard output, everything else to standard error. Exit codes: 0 with the
    /// model's report or answer; 1 without: with --report, standard output then has a JSON object that says why, as
    /// {"success": false, "reason": ...}; 2 wrong usage, 130 interrupted. With --json, standard output has the events of the
    /// turn instead, one JSON object per line.
    #[command(after_help = SETTINGS)]
    Run(Run),
    /// Run a coding agent, or any client of a model API, so that it waits out failures of its provider
    ///
    /// Use everturn with claude (or codex, opencode, pi, aider, goose, gemini, qwen, crush, cline; or any program that obeys
    /// ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL). Its calls pass through a server inside this process,
    /// unchanged, with the program's own credential, which is kept nowhere. While its provider is overloaded, limited or unreachable,
    /// a call waits; everturn calls shows why. No file of the program is changed. The exit code is the program's.
    #[command(after_help = SETTINGS)]
    With(With),
    /// List, show, export and delete the conversations that a server keeps in its file
    Conversations(Conversations),
    /// Add, list and remove providers of models, without a configuration file
    ///
    /// They are kept in a file beside the conversations that only you can read. Running servers that use it offer them at
    /// once. What the configuration file says can only be changed there.
    Provider(Provider),
    /// Log in to MCP servers that require it, and log out
    ///
    /// You log in with a browser. The login is kept in a file beside the conversations that only you can read. Running servers that
    /// use it connect at once. Expiring tokens are renewed automatically.
    Mcp(Mcp),
    /// Make, list, revoke and rotate tokens, so that several people and programs can use one server, each by itself
    ///
    /// A caller sees its own conversations and calls, and no others. Only hashes of tokens are kept, in a file beside the
    /// conversations. Running servers that use it notice every change within two seconds. As soon as there is a caller, a
    /// server asks everybody for a token; the administrator's is EVERTURN_TOKEN, or one with the scope admin.
    ///
    /// Servers of a cluster take callers from their configuration files: new NAME --print prints what to add there.
    Token(Token),
    /// List administrative actions and refused requests, newest first, from the audit log beside the data
    Audit(Audit),
    /// Show which models of a running server are available, and why others are not
    ///
    /// A model has a line for each of its keys. The information comes from that server's turns. A model that failed is
    /// not worth asking until the time shown.
    Targets(Running),
    /// Show who used how much of a running server: requests, tokens, refusals, waits and cost
    ///
    /// Turns that survived met at least one failure of a provider and were answered all the same. A caller is shown its own usage,
    /// the administrator that of all. Prices come from the configuration file of the server.
    Usage(everturn_terminal::Usage),
    /// List the calls of other programs that pass through running servers, and what they wait for; retry or give up one
    ///
    /// everturn calls retry retries a waiting call at once; everturn calls give-up ends a call with its last refusal.
    /// ID is as the list shows it; it can be left out if only one call waits.
    Calls(everturn_terminal::Calls),
    /// Print what the calls of running servers wait for, in one line, or nothing if none waits: for status lines
    ///
    /// Programs run by `everturn with` find the address of its server in EVERTURN_SERVER.
    Status(Status),
    /// List the tools that a running server offers to models, and the state of its MCP servers
    ///
    /// What a server claims about its tools is shown, not believed.
    Tools(Running),
    /// Diagnose a failed response: what it is, why, and what a turn would do about it
    ///
    /// Paste or pipe it in as curl -i or curl -v prints it, or the body alone with --status and --header. A client's
    /// report of a failure works, too: a traceback, a log line.
    Explain(Explain),
    /// Check that a server answers, e.g. as the health check of a container; exits with 1 if it does not
    Health(Health),
    /// Print completions for a shell, e.g. for ~/.bashrc: source <(everturn completions bash)
    Completions {
        /// The shell
        shell: Shell,
    },
    /// End the programs named on standard input when that ends: what ends MCP programs if everturn is killed
    #[command(name = watch::WATCH, hide = true)]
    WatchPrograms,
    /// Write manual pages into a directory, e.g. ~/.local/share/man/man1
    Man {
        /// The directory; created if it is not there
        directory: PathBuf,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Serve {
    #[command(flatten)]
    config: ConfigFlag,
    /// Where to listen: an address with a port, or a port alone; port 0 is any free one [default: 127.0.0.1:4777]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Require this token from clients. Other users of this machine can see a command line: prefer EVERTURN_TOKEN
    #[arg(long)]
    token: Option<String>,
    /// The file that conversations are kept in [default: everturn/everturn.db in the user's data directory]
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Keep conversations in memory only
    #[arg(long, conflicts_with = "data")]
    memory: bool,
    /// Share conversations with other servers over these NATS servers, e.g. nats://127.0.0.1:4222; several are separated by
    /// commas
    #[arg(long, value_name = "SERVERS", conflicts_with_all = ["data", "memory"])]
    cluster: Option<String>,
    /// Keep conversations in this Postgres database, e.g. postgres://user@host:5432/database. Other users of this machine can
    /// see a command line: give the password by the file or EVERTURN_POSTGRES
    #[arg(long, value_name = "URL", conflicts_with_all = ["data", "memory", "cluster"])]
    postgres: Option<String>,
}

#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct Chat {
    #[command(flatten)]
    config: ConfigFlag,
    #[command(flatten)]
    pub(crate) words: everturn_terminal::Chat,
}

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// The file with the JSON Schema of the report
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) chat: Chat,
}

#[derive(Args, Debug)]
pub(crate) struct Status {
    /// Print one line
    #[arg(long, required = true)]
    line: bool,
    /// The running server [default: http://127.0.0.1:4777, and those inside `everturn with`]
    #[arg(long, env = "EVERTURN_SERVER", value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The server's access token; prefer EVERTURN_TOKEN
    #[arg(long)]
    pub(crate) token: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct With {
    /// Use this running server, e.g. http://127.0.0.1:4777, instead of one inside this process
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct Explain {
    #[command(flatten)]
    config: ConfigFlag,
    #[command(flatten)]
    pub(crate) words: everturn_terminal::Explain,
}

#[derive(Args, Debug)]
struct ConfigFlag {
    /// The configuration file [default: everturn/config.toml in the user's configuration directory, if it is there]
    #[arg(long, value_name = "PATH", global = true)]
    config: Option<PathBuf>,
}

const SETTINGS: &str = "\
Environment:
  OPENAI_API_KEY          makes OpenAI a provider, if the configuration file has none
  OPENAI_BASE_URL         the same for another endpoint, e.g. http://127.0.0.1:11434/v1
  ANTHROPIC_API_KEY       makes Anthropic a provider, if the configuration file has none
  ANTHROPIC_BASE_URL      another endpoint that speaks its API
  GEMINI_API_KEY          makes Google's Gemini a provider, if the configuration file has none
  GOOGLE_GEMINI_BASE_URL  another endpoint that speaks its API
  EVERTURN_MODEL          the models of the first of these: a,b,c; the first is the default
  EVERTURN_CONFIG         the configuration file
  EVERTURN_LISTEN         where to listen
  EVERTURN_DATA           the file that conversations are kept in
  EVERTURN_CLUSTER        the NATS servers over which conversations are shared instead
  EVERTURN_POSTGRES       the URL of the Postgres database that conversations are kept in instead
  EVERTURN_TOKEN          the access token that clients must have
  EVERTURN_NODE           the name of this server among those that share conversations
  EVERTURN_TITLES         off: the model does not name conversations
  EVERTURN_SERVER         the running server that with, calls, status, targets, tools and usage ask
  OTEL_EXPORTER_OTLP_ENDPOINT  where serve sends traces, e.g. http://127.0.0.1:4318
  OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT  SPAN_ONLY: traces have the content of messages
  EVERTURN_LOG            what is logged to standard error, e.g. debug

A configuration file is TOML; the least that it needs for an endpoint of OpenAI's kind:
  [[provider]]
  name = \"local\"
  base_url = \"http://127.0.0.1:11434/v1\"
  models = [\"llama3.2\"]
With kind = \"openai-responses\", \"anthropic\" or \"gemini\" it is another API. api_key_env names the
variable with its key; a list of them is several keys. Models that stand in for each other are
offered as one, here as route/main:
  [[route]]
  name = \"main\"
  targets = [\"local/llama3.2\", \"cloud/llama-3.3-70b\"]
  schedule = \"interactive\"";

impl Cli {
    pub(crate) fn command(self) -> Command {
        self.command.unwrap_or(Command::Serve(self.serve))
    }
}

impl Serve {
    pub(crate) fn flags(&self) -> Flags {
        Flags {
            config: self.config.config.clone(),
            listen: self.listen.clone(),
            token: self.token.clone(),
            data: self.data.clone(),
            memory: self.memory,
            forgets: self.memory,
            cluster: self.cluster.clone(),
            postgres: self.postgres.clone(),
        }
    }
}

impl Chat {
    /// What configures a private server.
    pub(crate) fn flags(&self) -> Flags {
        Flags { config: self.config.config.clone(), data: self.words.data.clone(), ..Flags::default() }
    }
}

impl Explain {
    pub(crate) fn flags(&self) -> Flags {
        Flags { config: self.config.config.clone(), ..Flags::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use clap::CommandFactory;

    use super::*;

    fn parse(words: &str) -> Command {
        Cli::try_parse_from(words.split(' ')).unwrap().command()
    }

    #[test]
    fn the_definition_is_sound() {
        <Cli as CommandFactory>::command().debug_assert();
    }

    #[test]
    fn without_a_command_it_serves() {
        for words in ["everturn --listen 8080 --memory", "everturn serve --listen 8080"] {
            let Command::Serve(serve) = parse(words) else { panic!("{words}") };
            assert_eq!(serve.flags().listen.as_deref(), Some("8080"));
        }
    }

    #[test]
    fn the_unit_leaves_it_to_the_configuration_where_conversations_are_kept() {
        let unit = include_str!("../packaging/everturn.service");
        let command = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
        let Command::Serve(serve) = parse(command) else { panic!("{command}") };
        assert!(serve.flags().config.is_some() && serve.flags().data.is_none());
        assert!(unit.contains("\nEnvironment=EVERTURN_DATA="));
    }

    #[test]
    fn conversations_are_read_where_a_server_keeps_them() {
        let Command::Conversations(named) = parse("everturn conversations list --postgres postgres://a/b")
        else {
            panic!()
        };
        assert_eq!(named.flags().postgres.as_deref(), Some("postgres://a/b"));
        for others in ["--data a.db", "--cluster nats://a", "--server http://a"] {
            let words = format!("everturn conversations list --postgres postgres://a/b {others}");
            assert!(Cli::try_parse_from(words.split(' ')).is_err(), "{others}");
        }
    }

    #[test]
    fn a_message_is_all_the_words() {
        for words in ["--model a/b hello out there", "hello out there --model a/b"] {
            let Command::Chat(chat) = parse(&format!("everturn chat {words}")) else { panic!() };
            assert_eq!(chat.words.message().as_deref(), Some("hello out there"), "{words}");
        }
        let Command::Chat(chat) = parse("everturn chat -") else { panic!() };
        assert!(chat.words.is_piped() && chat.words.message().is_none());
    }

    /// Returns the variables of Everturn that sources name.
    fn variables(folder: &Path) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.append(&mut variables(&path));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let ends = text.split("\"EVERTURN_").skip(1).filter_map(|rest| rest.split('"').next());
                let is_name =
                    |end: &&str| !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_uppercase());
                found.extend(ends.filter(is_name).map(|end| format!("EVERTURN_{end}")));
            }
        }
        found
    }

    #[test]
    fn help_names_every_variable_that_is_read() {
        let help = <Cli as CommandFactory>::command().render_help().to_string();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut names = variables(&sources.join("src"));
        names.append(&mut variables(&sources.join("terminal").join("src")));
        assert!(names.len() > 10, "{names:?}");
        let vendors = [
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "GEMINI_API_KEY",
            "GOOGLE_GEMINI_BASE_URL",
        ];
        for name in names.iter().map(String::as_str).chain(vendors) {
            assert!(help.contains(&format!("\n  {name} ")), "{name}");
        }
    }
}
