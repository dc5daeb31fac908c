//! A tool of a server.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use everturn_kernel::{ToolAnswer, ToolSpec};
use everturn_orchestrator::{Ask, Invocation, People, Policy, Reply, Tool};
use everturn_wire::{OutputStream, ToolAnnotations, Value};
use rmcp::{
    model::{
        CallToolRequestParams, CallToolResult, DEFAULT_MRTR_MAX_ROUNDS, InputRequest, InputRequests,
        InputResponses, ServerResult,
    },
    service::ServiceError,
};

use crate::{
    answer,
    link::{Line, Link},
    request::{Deadlines, OfCall},
};

/// How many questions a server may ask before it answers a call, and how often for a login.
const MOST_QUESTIONS: usize = DEFAULT_MRTR_MAX_ROUNDS;
const MOST_LOGINS: usize = 3;

/// A tool of a server. It stays the same when the server restarts.
pub(crate) struct McpTool {
    pub(crate) link: Arc<Link>,
    pub(crate) facts: Facts,
}

/// What a server declares about a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Facts {
    /// The server's own name of the tool.
    pub(crate) own_name: String,
    pub(crate) spec: ToolSpec,
    pub(crate) annotations: Option<ToolAnnotations>,
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> ToolSpec {
        self.facts.spec.clone()
    }

    /// A tool that changes nothing may run twice, too.
    fn is_idempotent(&self) -> bool {
        self.believed(|claimed| claimed.idempotent == Some(true) || claimed.read_only == Some(true))
    }

    fn policy(&self) -> Policy {
        match self.believed(|claimed| claimed.read_only == Some(true)) {
            true => Policy::Allow,
            false => Policy::Ask,
        }
    }

    fn annotations(&self) -> Option<ToolAnnotations> {
        self.facts.annotations.clone()
    }

    async fn run(&self, call: Invocation) -> ToolAnswer {
        match self.answer(call).await {
            Ok(result) => answer::of(&self.link, &result),
            Err(why) => ToolAnswer::error(format!("(tool failed: {why})")),
        }
    }
}

impl McpTool {
    fn believed(&self, claim: impl Fn(&ToolAnnotations) -> bool) -> bool {
        self.link.config.trust_annotations && self.facts.annotations.as_ref().is_some_and(claim)
    }

    /// Runs a call: as often as the server asks for further input, and again after a login without which it had no effect.
    async fn answer(&self, call: Invocation) -> Result<CallToolResult, String> {
        let (name, own_name) = (self.link.name(), &self.facts.own_name);
        let arguments = match &call.input {
            Value::Object(arguments) => Some(arguments.clone()),
            Value::Null => None,
            _ => return Err("the arguments must be a JSON object".to_owned()),
        };
        if self.link.is_starting() {
            let waits = format!("waiting for the MCP server {name} to start\n");
            call.output.write(OutputStream::Stderr, waits).await;
        }
        let request = OfCall {
            link: &self.link,
            conversation_id: &call.conversation_id,
            output: &call.output,
            people: &call.people,
        };
        let mut params = CallToolRequestParams::new(own_name.clone());
        params.arguments = arguments;
        let (mut questions, mut logins) = (0, 0);
        // Time passes only while the server works on the call.
        let mut deadlines = Deadlines::new(&self.link.config.timeouts);
        // A server that takes calls may ask for a login for some of them only.
        let mut needs_login = !self.link.is_up();
        loop {
            if std::mem::take(&mut needs_login) {
                self.be_logged_in(&call.people).await?;
            }
            let line = match self.link.line().await {
                Ok(line) => line,
                // It began to ask meanwhile.
                Err(_) if self.link.login().is_some() => {
                    needs_login = true;
                    continue;
                }
                Err(why) => return Err(why),
            };
            if !line.offered.contains(own_name) {
                return Err(format!("the MCP server {name} no longer offers {own_name}"));
            }
            deadlines.go_on();
            let answered = request.send(&line, params.clone(), &mut deadlines).await;
            deadlines.stop();
            match answered {
                Ok(ServerResult::CallToolResult(result)) => return Ok(result),
                Ok(ServerResult::InputRequiredResult(required)) => {
                    questions += required.input_requests.as_ref().map_or(0, InputRequests::len).max(1);
                    if questions > MOST_QUESTIONS {
                        return Err(format!(
                            "the MCP server {name} asked for input more than {MOST_QUESTIONS} times"
                        ));
                    }
                    params.input_responses = self.inputs(&request, required.input_requests).await?;
                    params.request_state = required.request_state;
                }
                Ok(_) => return Err(format!("the MCP server {name} did not answer with a result")),
                Err(error) => {
                    let failure = self.failure(&line, &error);
                    // The server has refused the call, so it may be repeated.
                    if !self.demands_login(&error) || logins == MOST_LOGINS {
                        return Err(failure);
                    }
                    logins += 1;
                    needs_login = true;
                }
            }
        }
    }

    /// Whether the server refused a request because it asks for a login.
    fn demands_login(&self, error: &ServiceError) -> bool {
        matches!(error, ServiceError::TransportSend(error) if self.link.hears(error))
    }

    /// If the server asks for a login, waits until somebody has logged in.
    async fn be_logged_in(&self, people: &People) -> Result<(), String> {
        let Some(advice) = self.link.login() else { return Ok(()) };
        let name = self.link.name();
        let message = format!("The MCP server {name} asks for a login before it takes this call.");
        match people.ask_until(name, &message, Ask::Login, self.link.logged_in()).await {
            None => Ok(()),
            Some(Reply::Declined) => {
                Err(format!("the MCP server {name} asks for a login, which the user declined"))
            }
            Some(_) => Err(format!("the MCP server {name} asks for a login: {advice}")),
        }
    }

    /// Puts the questions of a server to people, one after the other. Returns the answers.
    async fn inputs(
        &self,
        request: &OfCall<'_>,
        asked: Option<InputRequests>,
    ) -> Result<Option<InputResponses>, String> {
        let Some(asked) = asked else { return Ok(None) };
        let name = self.link.name();
        let mut answers = InputResponses::new();
        for (key, asked) in asked {
            let InputRequest::Elicitation(asked) = asked else {
                return Err(format!("the MCP server {name} asks for input that is not supported"));
            };
            let answer = serde_json::to_value(request.answer(asked.params).await);
            answers.insert(key, answer.map_err(|error| error.to_string())?);
        }
        Ok(Some(answers))
    }

    /// Returns why a call failed, for the model.
    fn failure(&self, line: &Line, error: &ServiceError) -> String {
        let (name, timeouts) = (self.link.name(), &self.link.config.timeouts);
        match error {
            ServiceError::McpError(error) => {
                format!("the MCP server {name} refused the call: {}", self.link.short(&error.message))
            }
            ServiceError::Timeout { timeout } if *timeout == timeouts.total => {
                format!("the call exceeded {} and was cancelled", seconds(timeouts.total))
            }
            ServiceError::Timeout { .. } => {
                format!("the call was silent for {} and was cancelled", seconds(timeouts.idle))
            }
            ServiceError::TransportClosed => {
                format!(
                    "the connection to the MCP server {name} broke during the call: it is not known what it did"
                )
            }
            ServiceError::TransportSend(error) => {
                line.doubted.notify_one();
                if self.link.hears(error) {
                    let advice = self.link.login().unwrap_or_default();
                    return format!("the MCP server {name} refused the call, which had no effect: {advice}");
                }
                let why = self.link.short(error);
                format!(
                    "the call to the MCP server {name} failed in transit, and it is not known what it did: {why}"
                )
            }
            other => format!("the MCP server {name} did not answer the call: {}", self.link.short(other)),
        }
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f32())
}
