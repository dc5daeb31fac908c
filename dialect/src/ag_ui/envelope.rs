//! What CopilotKit sends to a runtime that has one endpoint for everything.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::failure::brief;

/// A call of CopilotKit's, as its body names it.
#[derive(Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// What is asked for.
    pub method: Method,
    /// The agent; empty if none is named.
    pub agent_id: String,
    /// The thread that is to be stopped; empty if none is named.
    pub thread_id: String,
    /// The body of that call; empty if there is none.
    pub body: &'a [u8],
}

/// What CopilotKit asks its runtime for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The agents that there are.
    Info,
    /// A run.
    Run,
    /// The messages of a thread, and its running turn.
    Connect,
    /// The end of the running turn.
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
    /// Understands a request body.
    ///
    /// # Errors
    /// When it is no such envelope: what is wrong with it.
    pub fn read(body: &'a [u8]) -> Result<Self, String> {
        let Written { method, params: Params { agent_id, thread_id }, body } =
            serde_json::from_slice(body)
                .map_err(|error| brief(format!("the request body is not one of CopilotKit's: {error}")))?;
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
