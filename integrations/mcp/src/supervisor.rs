//! Keeps a server running.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    backoff::Backoff,
    caller::Caller,
    catalog::Catalog,
    connection::Connection,
    link::{Condition, Link},
};

/// Starts a server, and restarts it whenever it ends, until told to stop.
pub(crate) async fn supervise(
    link: Arc<Link>,
    caller: Option<Caller>,
    catalog: Arc<Catalog>,
    stop: CancellationToken,
) {
    let mut backoff = Backoff::default();
    while !stop.is_cancelled() {
        let opened = tokio::select! {
            opened = Connection::open(&link, caller.as_ref(), &catalog) => opened,
            () = stop.cancelled() => break,
        };
        let (why, up) = match opened {
            Ok(connection) => {
                let since = Instant::now();
                let Some(why) = connection.keep(&link, &catalog, &stop).await else {
                    // Calls wait for the other login.
                    link.condition.send_replace(Condition::Starting);
                    continue;
                };
                (why, since.elapsed())
            }
            Err(why) => (why, Duration::ZERO),
        };
        if stop.is_cancelled() {
            break;
        }
        let wait = backoff.next(up);
        let login = link.login();
        // One that was up is tried again first: it may have asked for more rights only.
        let wait = (up > Duration::ZERO || login.is_none()).then_some(wait);
        let why = login.unwrap_or(why);
        tracing::warn!(server = link.name(), restarts_in = ?wait, "an MCP server is down: {why}");
        let again = wait.and_then(|wait| Instant::now().checked_add(wait));
        link.condition.send_replace(Condition::Down { why: why.clone(), again });
        let is_new_login = tokio::select! {
            () = sleep(wait.unwrap_or_default()), if wait.is_some() => false,
            () = link.another_login() => true,
            () = stop.cancelled() => break,
        };
        let restarting = match up.is_zero() && !is_new_login {
            // It may well fail again, so calls fail at once meanwhile.
            true => Condition::Down { why, again: None },
            false => Condition::Starting,
        };
        link.condition.send_replace(restarting);
    }
    link.condition.send_replace(Condition::Down { why: "it was stopped".to_owned(), again: None });
}
