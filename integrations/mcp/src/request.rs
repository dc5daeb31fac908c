//! One request of a call: its deadlines, what the server says meanwhile, and what it asks.

use std::{future::pending, pin::pin, time::Duration};

use everturn_orchestrator::{Output, People};
use everturn_wire::{ConversationId, OutputStream};
use rmcp::{
    Peer, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
        ClientRequest, ElicitRequestParams, ElicitResult, ElicitationAction, RequestId, RequestMetaObject,
        ServerResult,
    },
    service::{PeerRequestOptions, ServiceError},
};
use tokio::time::{Instant, sleep_until};

use crate::{
    Timeouts,
    call::{Asked, Heard},
    elicitation,
    link::{Line, Link},
};

/// The call that a request belongs to.
pub(crate) struct OfCall<'c> {
    pub(crate) link: &'c Link,
    pub(crate) conversation_id: &'c ConversationId,
    pub(crate) output: &'c Output,
    pub(crate) people: &'c People,
}

impl OfCall<'_> {
    /// Sends the request, shows the server's messages meanwhile, and puts its questions to people. While a question is open, no time
    /// passes. On drop, cancels the request at the server.
    pub(crate) async fn send(
        &self,
        line: &Line,
        params: CallToolRequestParams,
        deadlines: &mut Deadlines<'_>,
    ) -> Result<ServerResult, ServiceError> {
        // The SDK's timeouts do not stop while a person thinks.
        let options = PeerRequestOptions::no_options().with_meta(asking_for_logs());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = line.peer.send_cancellable_request(request, options).await?;
        let token = handle.progress_token.clone();
        let mut cancel = Cancel { peer: &line.peer, id: Some(handle.id.clone()) };
        let Heard { mut pieces, mut questions } =
            line.calls.begin(token.clone(), self.conversation_id.clone());
        let mut running = Running { line, token, is_answered: false };
        let mut answer = pin!(handle.await_response());
        let mut open = None;
        let answer = loop {
            let is_asking = open.is_some();
            let asking = async {
                match open.as_mut() {
                    Some(open) => open.await,
                    None => pending().await,
                }
            };
            tokio::select! {
                answer = &mut answer => break answer,
                Some(piece) = pieces.recv() => {
                    // Only progress is about this call for certain.
                    if piece.stream == OutputStream::Stdout {
                        deadlines.hear();
                    }
                    self.output.write(piece.stream, piece.text).await;
                }
                () = asking => {
                    open = None;
                    deadlines.go_on();
                }
                Some(asked) = questions.recv(), if !is_asking => {
                    deadlines.stop();
                    open = Some(Box::pin(self.ask(asked)));
                }
                timeout = deadlines.over(), if !is_asking => break Err(ServiceError::Timeout { timeout }),
            }
        };
        if !matches!(answer, Err(ServiceError::Timeout { .. })) {
            cancel.id = None;
            running.is_answered = true;
        }
        // Messages sent before the answer are shown before it.
        while let Ok(piece) = pieces.try_recv() {
            self.output.write(piece.stream, piece.text).await;
        }
        answer
    }

    async fn ask(&self, Asked { params, mut reply }: Asked) {
        let answer = tokio::select! {
            answer = self.answer(params) => answer,
            // The server does not wait for the answer any more.
            () = reply.closed() => return,
        };
        // Fails if the connection is gone.
        let _ = reply.send(answer);
    }

    /// Puts a question to people. One that cannot be shown is declined, and the call's output says why.
    pub(crate) async fn answer(&self, params: ElicitRequestParams) -> ElicitResult {
        match elicitation::answer(self.link, self.people, params).await {
            Ok(answer) => answer,
            Err(why) => {
                let note = format!("The server asked a question, which was declined: {why}.\n");
                self.output.write(OutputStream::Stderr, note).await;
                ElicitResult::new(ElicitationAction::Decline)
            }
        }
    }
}

/// When a call has taken too long.
pub(crate) struct Deadlines<'t> {
    timeouts: &'t Timeouts,
    idle: Instant,
    total: Instant,
    /// Since when time stands still.
    stopped: Option<Instant>,
}

impl<'t> Deadlines<'t> {
    /// Time stands still until [`Self::go_on`].
    pub(crate) fn new(timeouts: &'t Timeouts) -> Self {
        let now = Instant::now();
        Self { timeouts, idle: now + timeouts.idle, total: now + timeouts.total, stopped: Some(now) }
    }

    /// The server made progress.
    fn hear(&mut self) {
        self.idle = Instant::now() + self.timeouts.idle;
    }

    pub(crate) fn stop(&mut self) {
        self.stopped.get_or_insert_with(Instant::now);
    }

    pub(crate) fn go_on(&mut self) {
        let stopped = self.stopped.take().map(|since| since.elapsed()).unwrap_or_default();
        self.total += stopped;
        self.hear();
    }

    /// Waits until one has passed, and returns which.
    async fn over(&self) -> Duration {
        sleep_until(self.idle.min(self.total)).await;
        if self.total <= self.idle { self.timeouts.total } else { self.timeouts.idle }
    }
}

/// Newer protocol versions require the client to request logs with each call. Older ones ignore this.
#[expect(deprecated, reason = "there is no other way to ask, yet")]
fn asking_for_logs() -> RequestMetaObject {
    let mut meta = RequestMetaObject::default();
    meta.set_log_level(rmcp::model::LoggingLevel::Info);
    meta
}

/// Unregisters a call when it ends for any reason.
struct Running<'l> {
    line: &'l Line,
    token: rmcp::model::ProgressToken,
    /// Whether the server is done with it.
    is_answered: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.line.calls.end(&self.token, self.is_answered);
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
