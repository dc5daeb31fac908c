//! A program that embeds the orchestrator, with a tool that leaves a trace, which the binary's own tools do not.

use std::{env, fs::OpenOptions, io::Write as _, net::Ipv4Addr, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use everturn_kernel::{ToolAnswer, ToolSpec};
use everturn_orchestrator::{Exponential, Invocation, Journal, Orchestrator, Policy, Tool};
use everturn_provider::{ChatCompletions, ChatConfig, EndpointConfig, HttpClient, HttpConfig};
use everturn_sim::Loopback;
#[cfg(feature = "postgres")]
use everturn_store_postgres::{Options, PostgresJournal};
use everturn_store_sqlite::SqliteJournal;
use everturn_transport_http::Metrics;
use serde_json::json;
use tokio::{net::TcpListener, process::Command, signal::unix};

use super::plan::Program;
use crate::home::Home;

/// Variables that configure the program. Its journal is a file, or a Postgres database if this is a URL.
pub(crate) const JOURNAL: &str = "EMBEDDER_JOURNAL";
const TRACE: &str = "EMBEDDER_TRACE";
const PROVIDER: &str = "EMBEDDER_PROVIDER";
/// Whether its tool needs approval, and whether it compacts histories.
const ASKS: &str = "EMBEDDER_ASKS";
const COMPACTS: &str = "EMBEDDER_COMPACTS";

/// The result of its tool.
pub(crate) const ANSWER: &str = "a line was written";

/// Returns the file in which its tool writes a line per run: the id of the call.
pub(crate) fn trace(home: &Home) -> PathBuf {
    home.place("trace")
}

/// Returns the command: this test program, running only the test below.
pub(crate) fn command(home: &Home, provider: &Loopback, program: Program) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["kill::embedder::serves_until_a_signal", "--exact", "--ignored", "--nocapture"]);
    command.env_clear().envs(home.variables());
    command.env(JOURNAL, home.journal()).env(TRACE, trace(home)).env(PROVIDER, provider.base_url());
    match program {
        Program::Asking => drop(command.env(ASKS, "1")),
        Program::Compacting => drop(command.env(COMPACTS, "1")),
        Program::Embedder | Program::Everturn | Program::Calling | Program::Reporting | Program::Handing => {}
    }
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).kill_on_drop(true);
    command
}

/// A tool whose runs can be counted.
struct Trace(PathBuf);

#[async_trait]
impl Tool for Trace {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "roll_dice".to_owned(),
            description: "Leaves a line.".to_owned(),
            parameters: json!({ "type": "object" }),
        }
    }

    async fn run(&self, call: Invocation) -> ToolAnswer {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.0).unwrap();
        file.write_all(format!("{}\n", call.call_id).as_bytes()).unwrap();
        ToolAnswer::ok(ANSWER)
    }
}

async fn journal(place: String) -> Arc<dyn Journal> {
    #[cfg(feature = "postgres")]
    if place.starts_with("postgres://") {
        return Arc::new(PostgresJournal::open(&Options::new(place)).await.unwrap());
    }
    Arc::new(SqliteJournal::open(place).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the process that the others kill"]
async fn serves_until_a_signal() {
    let of = |name: &str| env::var(name).expect("only to be run by another test");
    let mut told = unix::signal(unix::SignalKind::terminate()).unwrap();
    let endpoint = EndpointConfig::new(format!("{}/v1", of(PROVIDER)));
    let http = HttpClient::new(HttpConfig::default()).unwrap();
    let builder = match env::var_os(ASKS) {
        // The reviewer is not configured, so each review fails, and a person is asked.
        Some(_) => Orchestrator::builder().tool_policy("roll_*", Policy::Review).review_with("sim/nobody"),
        None => Orchestrator::builder(),
    };
    let builder = if env::var_os(COMPACTS).is_some() { builder.compact() } else { builder };
    let orchestrator = builder
        .model("sim", "model", Arc::new(ChatCompletions::new(http, ChatConfig::new(endpoint)).unwrap()))
        .tool(Trace(of(TRACE).into()))
        .schedule(Exponential { base: Duration::from_millis(50), ..Exponential::default() })
        .journal(journal(of(JOURNAL)).await)
        .build();
    orchestrator.resume().await.unwrap();
    let http = everturn_transport_http::CallLimits::default();
    let sockets = everturn_transport_ws::SocketLimits::default();
    let app = everturn_transport_http::router(orchestrator.clone(), http, Metrics::none())
        .merge(everturn_transport_ws::router(orchestrator, sockets));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    println!("on http://{}", listener.local_addr().unwrap());
    tokio::select! {
        served = axum::serve(listener, app).into_future() => served.unwrap(),
        _ = told.recv() => {}
    }
}
