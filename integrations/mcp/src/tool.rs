//! A tool of a server.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use everturn_kernel::{ToolAnswer, ToolSpec};
use everturn_orchestrator::{Invocation, Output, Policy, Tool};
use everturn_wire::{OutputStream, ToolAnnotations, Value};
use rmcp::{
    Peer, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotification,
        CancelledNotificationParam, ClientRequest, RequestId, RequestMetaObject, ServerResult,
    },
    service::{PeerRequestOptions, ServiceError},
};

use crate::{
    answer,
    link::{Line, Link},
};

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

    async fn answer(&self, call: Invocation) -> Result<CallToolResult, String> {
        let (name, own_name) = (self.link.name(), &self.facts.own_name);
        let arguments = match call.input {
            Value::Object(arguments) => Some(arguments),
            Value::Null => None,
            _ => return Err("the arguments must be a JSON object".to_owned()),
        };
        if self.link.is_starting() {
            let waits = format!("waiting for the MCP server {name} to start\n");
            call.output.write(OutputStream::Stderr, waits).await;
        }
        let line = self.link.line().await?;
        if !line.offered.contains(own_name) {
            return Err(format!("the MCP server {name} no longer offers {own_name}"));
        }
        let mut params = CallToolRequestParams::new(own_name.clone());
        params.arguments = arguments;
        match self.call(&line, params, &call.output).await {
            Ok(ServerResult::CallToolResult(result)) => Ok(result),
            Ok(ServerResult::InputRequiredResult(_)) => {
                Err(format!("the MCP server {name} asks for further input, which is not supported"))
            }
            Ok(_) => Err(format!("the MCP server {name} did not answer with a result")),
            Err(error) => Err(self.failure(&line, &error)),
        }
    }

    /// Sends a call, and shows the server's messages meanwhile. On drop, cancels the call at the server.
    async fn call(
        &self,
        line: &Line,
        params: CallToolRequestParams,
        output: &Output,
    ) -> Result<ServerResult, ServiceError> {
        let timeouts = &self.link.config.timeouts;
        let options = PeerRequestOptions::with_timeout(timeouts.idle)
            .with_meta(asking_for_logs())
            .reset_timeout_on_progress()
            .with_max_total_timeout(timeouts.total);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = line.peer.send_cancellable_request(request, options).await?;
        let token = handle.progress_token.clone();
        let mut cancel = Cancel { peer: &line.peer, id: Some(handle.id.clone()) };
        let mut pieces = line.calls.begin(token.clone());
        let _running = Running { line, token };
        let mut answer = std::pin::pin!(handle.await_response());
        let answer = loop {
            tokio::select! {
                answer = &mut answer => break answer,
                Some(piece) = pieces.recv() => output.write(piece.stream, piece.text).await,
            }
        };
        cancel.id = None;
        // Messages sent before the answer are shown before it.
        while let Ok(piece) = pieces.try_recv() {
            output.write(piece.stream, piece.text).await;
        }
        answer
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

/// Newer protocol versions require the client to request logs with each call. Older ones ignore this.
#[expect(deprecated, reason = "there is no other way to ask, yet")]
fn asking_for_logs() -> RequestMetaObject {
    let mut meta = RequestMetaObject::default();
    meta.set_log_level(rmcp::model::LoggingLevel::Info);
    meta
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f32())
}

/// Unregisters a call when it ends for any reason.
struct Running<'l> {
    line: &'l Line,
    token: rmcp::model::ProgressToken,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.line.calls.end(&self.token);
    }
}

/// Cancels a call at the server when nobody waits for its answer any more.
struct Cancel<'l> {
    peer: &'l Peer<RoleClient>,
    /// `None` once there is an answer.
    id: Option<RequestId>,
}

impl Drop for Cancel<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = Some("nobody waits for the answer any more".to_owned());
            let params = CancelledNotificationParam::new(Some(id), reason);
            // A server that is gone has nothing to cancel.
            let _ = peer.send_notification(CancelledNotification::new(params).into()).await;
        });
    }
}
