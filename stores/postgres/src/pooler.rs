//! Refuses a pooler that gives a connection to another client after each transaction: the lock, the settings and the prepared
//! statements of a connection would be those of others.

use tokio::time::Duration;

use crate::{OpenError, schema, session::Session, target::Target};

const WHY: &str = "a pooler shares each connection among several clients, as PgBouncer does in transaction mode, which breaks the lock \
                   that keeps a second server away: connect to Postgres directly, or set pool_mode = session";

/// Compares the processes that serve two connections. Directly or in session mode, each keeps its own.
///
/// # Errors
/// If they share one, or change it.
pub(crate) async fn refuse(first: &Session, target: &Target, within: Duration) -> Result<(), OpenError> {
    let second = target.connect_within(within).await?;
    let mut processes = Vec::new();
    for session in [first, &second, first, &second] {
        let process = session.process().await.map_err(|failure| schema::failed(&target.place, &failure))?;
        processes.push(process);
    }
    match processes[0] != processes[1] && processes[..2] == processes[2..] {
        true => Ok(()),
        false => Err(OpenError::Setting { place: target.place.clone(), why: WHY.to_owned() }),
    }
}
