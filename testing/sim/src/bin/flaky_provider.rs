//! A Chat Completions endpoint on 127.0.0.1 that fails as configured, then answers. For tests across processes, and for
//! trying a client by hand.

use std::{
    io::{self, Write as _},
    str::FromStr,
    time::Duration,
};

use clap::Parser;
use everturn_sim::{Gate, Loopback, Reply, Request, chat, fault};
use serde_json::json;

/// A Chat Completions endpoint on 127.0.0.1 that fails as configured, then answers.
#[derive(Debug, Parser)]
#[command(name = "flaky-provider", version)]
struct Options {
    /// Port to listen on; 0 selects a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The failures of the first requests, one each: a status, `close`, `reset`, `stall` or `cut`
    #[arg(long, value_delimiter = ',', value_name = "FAULT,...")]
    fail: Vec<Failure>,
    /// Value of the `retry-after` header of every failing status, in seconds
    #[arg(long, value_name = "SECONDS")]
    retry_after: Option<u64>,
    /// The answer, streamed word by word
    #[arg(long, default_value = "Hello from the flaky provider.")]
    text: String,
    /// Pause between two pieces of an answer, in milliseconds
    #[arg(long, default_value_t = 0, value_name = "MS")]
    delay_ms: u64,
    /// First call this tool with these arguments, and answer once its result arrives
    #[arg(long, num_args = 2, value_names = ["NAME", "JSON"])]
    tool: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug)]
enum Failure {
    Status(u16),
    /// Closes the connection without an answer.
    Close,
    Reset,
    /// Never answers.
    Stall,
    /// Truncates the answer in the middle.
    Cut,
}

impl FromStr for Failure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "close" => Ok(Self::Close),
            "reset" => Ok(Self::Reset),
            "stall" => Ok(Self::Stall),
            "cut" => Ok(Self::Cut),
            _ => match text.parse() {
                Ok(status @ 400..600) => Ok(Self::Status(status)),
                _ => Err("expected a status from 400 to 599, or close, reset, stall, cut".into()),
            },
        }
    }
}

/// The endpoint, whose replies depend on the requests so far.
struct Endpoint {
    options: Options,
    chats: usize,
}

impl Endpoint {
    fn reply(&mut self, request: &Request) -> Reply {
        let path = request.path.split('?').next().unwrap_or_default();
        match (request.method.as_str(), path) {
            ("GET", "/__requests") => Reply::json(200, &json!(self.chats)),
            ("GET", "/v1/models") => {
                Reply::json(200, &json!({"object": "list", "data": [{"id": "flaky", "object": "model"}]}))
            }
            ("POST", "/v1/chat/completions") => self.chat(request),
            _ => fault::of_status(404, None),
        }
    }

    fn chat(&mut self, request: &Request) -> Reply {
        let number = self.chats;
        self.chats += 1;
        let answer = || self.answer(request, number).paced(Duration::from_millis(self.options.delay_ms));
        match self.options.fail.get(number) {
            None => answer(),
            Some(Failure::Status(status)) => fault::of_status(*status, self.options.retry_after),
            Some(Failure::Close) => Reply::hang_up(),
            Some(Failure::Reset) => Reply::reset(),
            Some(Failure::Stall) => Reply::status(200).hold(&Gate::new()),
            Some(Failure::Cut) => {
                let whole = answer();
                let middle = whole.body_bytes().len() / 2;
                whole.cut_at(middle)
            }
        }
    }

    fn answer(&self, request: &Request, number: usize) -> Reply {
        match self.options.tool.as_deref() {
            Some([name, arguments]) if !ends_with_tool_result(request) => {
                chat::tool(&format!("call-{number}"), name, [arguments]).reply()
            }
            _ => chat::text(self.options.text.split_inclusive(' ')).reply(),
        }
    }
}

fn ends_with_tool_result(request: &Request) -> bool {
    let last = request.json().ok().and_then(|body| body["messages"].as_array()?.last().cloned());
    last.is_some_and(|message| message["role"] == "tool")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let options = Options::parse();
    let port = options.port;
    let mut endpoint = Endpoint { options, chats: 0 };
    let server = Loopback::bind(port, move |request| endpoint.reply(request)).await?;
    let mut stdout = io::stdout();
    writeln!(stdout, "listening on {}/v1", server.base_url())?;
    stdout.flush()?;
    // Serves until the process is killed.
    std::future::pending().await
}
