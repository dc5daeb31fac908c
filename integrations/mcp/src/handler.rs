//! What servers ask this client for.

use std::sync::Arc;

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationCapability, FormElicitationCapability, Implementation, UrlElicitationCapability,
    },
    service::RequestContext,
};
use tokio::sync::oneshot;

use crate::call::{Asked, Calls};

/// Answers a server's requests. It can ask the person behind a call; servers are offered nothing else.
pub(crate) struct Handler {
    pub(crate) calls: Arc<Calls>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let me = Implementation::new("everturn", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        let form = FormElicitationCapability::new().with_schema_validation(true);
        let elicitation =
            ElicitationCapability::new().with_form(form).with_url(UrlElicitationCapability::new());
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(capabilities, me)
    }

    /// Passes a question to the call that it belongs to. Older protocols do not name it: it is the newest one, if all that run are of
    /// one conversation.
    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = ElicitResult::new(ElicitationAction::Decline);
        let Some(call) = self.calls.asker() else { return Ok(declined) };
        let (reply, answer) = oneshot::channel();
        if call.send(Asked { params, reply }).await.is_err() {
            return Ok(declined);
        }
        tokio::select! {
            // The call has ended: nobody is asked any more.
            answer = answer => Ok(answer.unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel))),
            // The server does not wait for the answer any more.
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }
}
