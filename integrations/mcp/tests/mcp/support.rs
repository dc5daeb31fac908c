//! Servers, and a small environment of turns that call their tools.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use everturn_mcp::{Command, Connection, McpServer, ServerConfig};
use everturn_orchestrator::{
    MemoryJournal, Orchestrator, Policy, StartTurn, Started, Subscription,
    kernel::{Arguments, FinishReason, StreamEvent, ToolCall},
};
use everturn_provider::Scripted;
use everturn_wire::{AgentEvent, EventBody, ToolSourceInfo, ToolSourceStatus, Value};
use tokio::time::{interval, timeout};

/// Time limit of every wait in the tests.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// Returns the path of a file that the test command installs.
pub(crate) fn installed(path: &str) -> String {
    let file = root().join(path);
    assert!(
        file.exists(),
        "{path} is missing: these tests call real MCP servers, in Node and Python. Run `cargo xtask test` once, which \
         installs them; or `npm ci` in testing/e2e, and there `python3 -m venv .venv && .venv/bin/pip install -r requirements.txt`"
    );
    file.display().to_string()
}

/// Returns the command of `server-everything` with this transport.
pub(crate) fn everything(transport: &str) -> Command {
    let script = installed("testing/e2e/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    Command { program: "node".to_owned(), args: vec![script, transport.to_owned()], ..Command::default() }
}

/// Returns the command of the server in Python.
pub(crate) fn python(words: &[&str]) -> Command {
    script("server.py", words)
}

/// Returns the command of a script in this folder.
pub(crate) fn script(name: &str, words: &[&str]) -> Command {
    let script = root().join("integrations/mcp/tests/mcp").join(name).display().to_string();
    let words = words.iter().map(|word| (*word).to_owned());
    Command {
        program: installed("testing/e2e/.venv/bin/python"),
        args: [script].into_iter().chain(words).collect(),
        ..Command::default()
    }
}

/// Returns a configuration of the server `s`.
pub(crate) fn config(command: Command) -> ServerConfig {
    ServerConfig::new("s", Connection::Command(command))
}

/// A server, and an orchestrator with its tools.
pub(crate) struct World {
    pub(crate) server: Arc<McpServer>,
    pub(crate) orchestrator: Orchestrator,
    pub(crate) provider: Scripted,
}

/// The outcome of a turn that called a tool.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) content: String,
    pub(crate) is_error: bool,
    /// The output shown meanwhile.
    pub(crate) output: Vec<String>,
}

impl World {
    /// Creates a world with a script of calls, one tool each. The model answers after each.
    pub(crate) fn new(config: ServerConfig, calls: &[(&str, Value)]) -> Self {
        Self::after(Arc::new(MemoryJournal::new()), config, calls)
    }

    /// Creates a world with existing conversations.
    pub(crate) fn after(journal: Arc<MemoryJournal>, config: ServerConfig, calls: &[(&str, Value)]) -> Self {
        let server = Arc::new(McpServer::start(config).unwrap());
        let script = calls.iter().flat_map(|(tool, arguments)| {
            let call = ToolCall {
                id: (*tool).to_owned(),
                name: format!("s__{tool}"),
                arguments: Arguments::Parsed(arguments.clone()),
                echo: None,
            };
            let finish = |reason| StreamEvent::Finished(reason);
            [
                vec![StreamEvent::ToolCall(call), finish(FinishReason::ToolCalls)],
                vec![StreamEvent::Text("seen".to_owned()), finish(FinishReason::Stop)],
            ]
        });
        // The last answer repeats.
        let last = vec![StreamEvent::Text("seen".to_owned()), StreamEvent::Finished(FinishReason::Stop)];
        let provider = Scripted::new(script.chain([last]));
        let mut builder = Orchestrator::builder().model("key", "model", Arc::new(provider.clone()));
        if !calls.is_empty() {
            // Nobody is there to approve calls.
            builder = builder.tool_policy("s__*", Policy::Allow);
        }
        let orchestrator = builder.journal(journal).tool_source(server.clone()).build();
        Self { server, orchestrator, provider }
    }

    /// Creates a world, and waits until the server is up.
    pub(crate) async fn up(config: ServerConfig, calls: &[(&str, Value)]) -> Self {
        let world = Self::new(config, calls);
        world.until(|source| source.status == ToolSourceStatus::Up).await;
        world
    }

    /// Begins the next turn of the script.
    pub(crate) async fn begin(&self) -> (Started, Subscription) {
        let started = self.orchestrator.start(StartTurn::new("hi")).await.unwrap();
        let watched =
            self.orchestrator.subscribe(&started.conversation_id, Some(started.from), true).await.unwrap();
        (started, watched)
    }

    /// Runs the next turn of the script, which calls a tool and passes its result to the model.
    pub(crate) async fn call(&self) -> Called {
        let (_, mut watched) = self.begin().await;
        let called = called(&mut watched).await;
        let told = self.provider.requests().pop().unwrap().messages;
        let told = format!("{:?}", told.last().unwrap());
        let quoted = format!("{:?}", called.content);
        assert!(told.contains(quoted.trim_matches('"')), "the model is told of the result: {told}");
        called
    }

    /// Returns the published state of the server.
    pub(crate) fn source(&self) -> ToolSourceInfo {
        self.orchestrator.tools().sources.remove(0)
    }

    /// Waits for this published state.
    pub(crate) async fn until(&self, is_it: impl Fn(&ToolSourceInfo) -> bool) -> ToolSourceInfo {
        wait_for(|| Some(self.source()).filter(&is_it)).await
    }

    /// Returns the names of the tools offered to a new turn.
    pub(crate) fn offered(&self) -> Vec<String> {
        self.source().tools.into_iter().map(|tool| tool.name).collect()
    }
}

/// Waits until the closure returns a value.
pub(crate) async fn wait_for<T>(look: impl Fn() -> Option<T>) -> T {
    let mut again = interval(Duration::from_millis(10));
    let found = async {
        loop {
            again.tick().await;
            if let Some(found) = look() {
                return found;
            }
        }
    };
    timeout(DEADLINE, found).await.expect("it is so in time")
}

/// Returns the next event.
pub(crate) async fn event(watched: &mut Subscription) -> EventBody {
    let frame = timeout(DEADLINE, watched.next()).await.expect("an event in time").unwrap();
    serde_json::from_slice::<AgentEvent>(&frame.event()).unwrap().body
}

/// Returns the outcome of a turn's call, at the end of the turn.
pub(crate) async fn called(watched: &mut Subscription) -> Called {
    let (mut result, mut output) = (None, Vec::new());
    loop {
        match event(watched).await {
            EventBody::ToolResult { content, is_error, .. } => result = Some((content, is_error)),
            EventBody::ToolOutput { data, .. } => output.push(data),
            EventBody::TurnSealed => break,
            _ => {}
        }
    }
    let (content, is_error) = result.expect("a result");
    Called { content, is_error, output }
}

/// A temporary file of a test.
pub(crate) struct Note(tempfile::TempDir);

impl Note {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("note")
    }

    /// Waits until the server has written exactly this.
    pub(crate) async fn says(&self, expected: &[&str]) {
        let expected: String = expected.iter().map(|line| format!("{line}\n")).collect();
        wait_for(|| std::fs::read_to_string(self.path()).ok().filter(|text| *text == expected)).await;
    }
}

/// Whether a process is running, and not a zombie.
pub(crate) fn is_alive(process: &str) -> bool {
    let ps = std::process::Command::new("ps").args(["-o", "stat=", "-p", process]).output().unwrap();
    let state = String::from_utf8_lossy(&ps.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

/// A server over HTTP, in its own process. Killed on drop.
pub(crate) struct Remote {
    child: tokio::process::Child,
    pub(crate) port: u16,
}

impl Remote {
    /// Starts it on this port, or a free one.
    pub(crate) async fn start(command: impl Fn(u16) -> Command, port: Option<u16>) -> Self {
        let free = || std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let port = port.unwrap_or_else(free);
        let command = command(port);
        let child = tokio::process::Command::new(&command.program)
            .args(&command.args)
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        wait_for(|| std::net::TcpStream::connect(("127.0.0.1", port)).ok()).await;
        Self { child, port }
    }

    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}
