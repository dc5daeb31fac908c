//! One connection to a server, from its handshake to its end.

use std::{future::pending, pin::pin, sync::Arc, time::Duration};

use rmcp::{
    Peer, RoleClient,
    model::{
        ClientRequest, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerResult,
        SubscriptionFilter,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, PeerRequestOptions,
        RunningService, ServiceError,
    },
    transport::async_rw::AsyncRwTransport,
};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Connection as How,
    call::Calls,
    caller::Caller,
    catalog::{self, Catalog, MOST},
    handler::Handler,
    link::{Condition, Line, Link},
    notification::{InOrder, Notifications},
    process::Process,
    tool::Facts,
};

/// Maximum size of a message from a program, in bytes.
const LARGEST: usize = 8 << 20;

/// Timeout for listing tools.
const LISTING: Duration = Duration::from_secs(30);

/// Delay between a change notification and listing, because changes often come in groups.
const SETTLING: Duration = Duration::from_millis(100);

/// Delay before the change subscription is renewed after the server ended it.
const RELISTEN: Duration = Duration::from_secs(5);

/// A connection after its handshake.
pub(crate) struct Connection {
    service: RunningService<RoleClient, Handler>,
    process: Option<Process>,
    list_changed: Arc<Notify>,
    line: Line,
}

impl Connection {
    /// Starts or connects to the server, and lists its tools.
    ///
    /// # Errors
    /// Returns the reason, for people, if it does not answer correctly and in time.
    pub(crate) async fn open(
        link: &Arc<Link>,
        caller: Option<&Caller>,
        catalog: &Catalog,
    ) -> Result<Self, String> {
        let (calls, list_changed) = (Arc::new(Calls::default()), Arc::new(Notify::new()));
        let notifications =
            Notifications { link: link.clone(), calls: calls.clone(), list_changed: list_changed.clone() };
        let mode = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        let handler = Handler { calls: calls.clone() };
        let mut process = None;
        if let Some(account) = &link.account {
            account.forget();
        }
        let opened = async {
            let service = match (&link.config.connection, caller) {
                (How::Command(command), _) => {
                    let (started, stdout, stdin) = Process::start(command, link)?;
                    process = Some(started);
                    let transport = AsyncRwTransport::new(stdout, stdin).with_max_line_length(LARGEST);
                    handler.serve_with_lifecycle(InOrder { transport, notifications }, mode).await
                }
                (How::Http(_), Some(caller)) => {
                    let transport = caller.transport().await?;
                    handler.serve_with_lifecycle(InOrder { transport, notifications }, mode).await
                }
                (How::Http(_), None) => return Err("its URL is invalid".to_owned()),
            };
            let service = service.map_err(|error| {
                note_login(link, &error);
                refused(link, &error)
            })?;
            let tools = list(link, service.peer()).await?;
            Ok((service, tools))
        };
        let limit = link.config.timeouts.start;
        let opened = timeout(limit, opened).await;
        match opened.unwrap_or_else(|_| Err(format!("it did not list its tools within {limit:?}"))) {
            Ok((service, tools)) => {
                let offered = Arc::new(catalog.replace(link, tools));
                let (peer, doubted) = (service.peer().clone(), list_changed.clone());
                Ok(Self { service, process, list_changed, line: Line { peer, calls, offered, doubted } })
            }
            Err(why) => {
                // The exit of a program is more informative than the end of a stream.
                let how = match &mut process {
                    Some(process) => process.just_ended().await,
                    None => None,
                };
                if let Some(process) = process {
                    process.close().await;
                }
                Err(how.unwrap_or(why))
            }
        }
    }

    /// Maintains the connection until it ends or is stopped. Returns the reason; `None` if somebody has logged in or out.
    pub(crate) async fn keep(
        self,
        link: &Arc<Link>,
        catalog: &Catalog,
        stop: &CancellationToken,
    ) -> Option<String> {
        let Self { service, mut process, list_changed, mut line } = self;
        link.condition.send_replace(Condition::Up(line.clone()));
        let why = {
            let mut closed = pin!(service.waiting());
            let mut listening = pin!(listen(line.peer.clone(), &list_changed));
            loop {
                tokio::select! {
                    _ = &mut closed => break "it closed the connection".to_owned(),
                    how = ended(&mut process) => break how,
                    () = stop.cancelled() => break "it was stopped".to_owned(),
                    () = link.another_login() => {
                        if !link.account.as_ref().is_some_and(|account| account.is_up_to_date()) {
                            return None;
                        }
                    }
                    () = &mut listening => {}
                    () = list_changed.notified() => {
                        let listed = async {
                            sleep(SETTLING).await;
                            list(link, &line.peer).await
                        };
                        let listed = tokio::select! {
                            listed = listed => listed,
                            () = stop.cancelled() => break "it was stopped".to_owned(),
                        };
                        match listed {
                            Ok(tools) => {
                                line.offered = Arc::new(catalog.replace(link, tools));
                                link.condition.send_replace(Condition::Up(line.clone()));
                            }
                            Err(why) => break why,
                        }
                    }
                }
            }
        };
        let how = match &mut process {
            Some(process) if !stop.is_cancelled() => process.just_ended().await,
            _ => None,
        };
        if let Some(process) = process {
            process.close().await;
        }
        Some(how.unwrap_or(why))
    }
}

async fn ended(process: &mut Option<Process>) -> String {
    match process {
        Some(process) => process.ended().await,
        None => pending().await,
    }
}

/// Lists all tools of a server, page by page, up to the maximum.
async fn list(link: &Link, peer: &Peer<RoleClient>) -> Result<Vec<Result<Facts, String>>, String> {
    let pages = async {
        let (mut tools, mut cursor) = (Vec::new(), None);
        loop {
            let mut params = PaginatedRequestParams::default();
            params.cursor = cursor;
            let request = ListToolsRequest { params: Some(params), ..ListToolsRequest::default() };
            let options = PeerRequestOptions::with_timeout(LISTING);
            let request =
                peer.send_cancellable_request(ClientRequest::ListToolsRequest(request), options).await?;
            let ServerResult::ListToolsResult(page) = request.await_response().await? else {
                return Err(ServiceError::UnexpectedResponse);
            };
            // One more than the maximum shows that there are more.
            let is_last = page.tools.is_empty() || page.next_cursor.is_none();
            let room = MOST + 1 - tools.len();
            tools.extend(
                page.tools
                    .into_iter()
                    .take(room)
                    .map(|tool| catalog::facts(link.name(), &link.redactor, tool)),
            );
            if is_last || tools.len() > MOST {
                return Ok(tools);
            }
            cursor = page.next_cursor;
        }
    };
    match timeout(LISTING, pages).await {
        Ok(listed) => listed.map_err(|error| {
            link.hears(&error);
            format!("it does not list its tools: {}", link.short(&error))
        }),
        Err(_) => Err(format!("it did not list its tools within {LISTING:?}")),
    }
}

/// Subscribes to changes of the list if the protocol requires the client to do so. Never returns.
async fn listen(peer: Peer<RoleClient>, list_changed: &Notify) {
    let is_asked_for = peer.peer_info().is_some_and(|info| {
        let changes = info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
        changes == Some(true) && !info.protocol_version.has_initialize()
    });
    if !is_asked_for {
        return pending().await;
    }
    loop {
        let mut filter = SubscriptionFilter::new();
        filter.tools_list_changed = Some(true);
        match peer.listen(filter).await {
            Ok(mut changes) => {
                // Changes until now were not reported; later ones are handled with all other notifications.
                list_changed.notify_one();
                while let Ok(Some(_)) = changes.next().await {}
            }
            Err(ServiceError::McpError(_)) => return pending().await,
            Err(_) => {}
        }
        sleep(RELISTEN).await;
    }
}

/// Takes note of a demand for a login in the handshake.
fn note_login(link: &Link, error: &ClientInitializeError) {
    match error {
        ClientInitializeError::TransportError { error, .. } => drop(link.hears(error)),
        ClientInitializeError::LegacyFallbackFailed { discover, fallback } => {
            note_login(link, discover);
            note_login(link, fallback);
        }
        _ => {}
    }
}

fn refused(link: &Link, error: &ClientInitializeError) -> String {
    let why = match error {
        // Its own text has the Rust type of the transport.
        ClientInitializeError::TransportError { error, context } => {
            format!("{}, when {context}", link.short(&error.error))
        }
        error => link.short(error),
    };
    format!("the handshake failed: {why}")
}
