//! Requests to CopilotKit's single-endpoint runtime.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::failure::brief;

/// A call of CopilotKit, read from the request body.
#[derive(Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The method.
    pub method: Method,
    /// The agent's id; empty if absent.
    pub agent_id: String,
    /// The id of the thread to stop; empty if absent.
    pub thread_id: String,
    /// The body of the inner call; empty if absent.
    pub body: &'a [u8],
}

/// A method of CopilotKit's runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Lists the agents.
    Info,
    /// Starts a run.
    Run,
    /// Returns the messages of a thread, and its running turn.
    Connect,
    /// Stops the running turn.
    Stop,
}

#[derive(Deserialize)]
struct Written<'a> {
    method: String,
    #[serde(default)]
    params: Params,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Params {
    agent_id: String,
    thread_id: String,
}

impl<'a> Envelope<'a> {
    /// Parses a request body.
    ///
    /// # Errors
    /// Returns what is wrong if it is not a valid envelope.
    pub fn read(body: &'a [u8]) -> Result<Self, String> {
        let Written { method, params: Params { agent_id, thread_id }, body } =
            serde_json::from_slice(body)
                .map_err(|error| brief(format!("not a request of CopilotKit: {error}")))?;
        let method = match method.as_str() {
            "info" => Method::Info,
            "agent/run" => Method::Run,
            "agent/connect" => Method::Connect,
            "agent/stop" => Method::Stop,
            other => {
                let why = format!(
                    "unknown method {other:?}: expected info, agent/run, agent/connect or agent/stop"
                );
                return Err(brief(why));
            }
        };
        let body = body.map_or(&[][..], |body| body.get().as_bytes());
        Ok(Self { method, agent_id, thread_id, body })
    }
}
