//! Time to the first event, also over reused sockets, and from a stop to the last event.

mod socket;

use std::time::Instant;

use anyhow::Result;
use everturn_orchestrator::StartTurn;

use crate::{bare::Bare, stream::orchestrator};

const ROUNDS: usize = 400;

/// Prints the p50 of the bare client and of Everturn in microseconds, the p99 of a stop in milliseconds; then in
/// microseconds the bare client's p99, and p50 and p99 of a WebSocket and of a `POST` over persistent connections.
pub(crate) fn measure(base: &str) -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let (one, stall) = (format!("{base}/one"), format!("{base}/stall"));
        let (mut bare_us, mut ours_us, mut stop_ms) = (Vec::new(), Vec::new(), Vec::new());
        let mut bare = Bare::connect(&one).await?;
        let ours = orchestrator(&one)?;
        let mut clients = socket::Clients::connect(ours.clone()).await?;
        let (mut socket_us, mut post_us) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            // Alternates, so that both see the same conditions.
            let started = Instant::now();
            let mut first = None;
            bare.stream("Hi", |_| {
                first.get_or_insert_with(|| started.elapsed());
            })
            .await?;
            bare_us.push(first.unwrap_or_default().as_secs_f64() * 1e6);
            ours_us.push(first_event(&ours).await?);
            socket_us.push(clients.over_socket().await?);
            post_us.push(clients.over_post().await?);
        }
        let ours = orchestrator(&stall)?;
        for _ in 0..ROUNDS {
            stop_ms.push(stop(&ours).await?);
        }
        let first = [part(&mut bare_us, 0.5), part(&mut ours_us, 0.5), part(&mut stop_ms, 0.99)];
        let kept = [&mut socket_us, &mut post_us].map(|us| [part(us, 0.5), part(us, 0.99)]);
        let all = first.into_iter().chain([part(&mut bare_us, 0.99)]).chain(kept.into_iter().flatten());
        println!("{}", all.map(|figure| figure.to_string()).collect::<Vec<_>>().join(" "));
        Ok(())
    })
}

async fn first_event(orchestrator: &everturn_orchestrator::Orchestrator) -> Result<f64> {
    let started = Instant::now();
    let turn = orchestrator.start(StartTurn::new("Hi")).await?;
    let mut events = orchestrator.subscribe(&turn.conversation_id, Some(turn.from), false).await?;
    let mut first = None;
    loop {
        let frame = events.next().await?;
        if first.is_none() && frame.event().starts_with(br#"{"type":"text-delta""#) {
            first = Some(started.elapsed());
        }
        if frame.ends_turn() {
            return Ok(first.unwrap_or_default().as_secs_f64() * 1e6);
        }
    }
}

async fn stop(orchestrator: &everturn_orchestrator::Orchestrator) -> Result<f64> {
    let turn = orchestrator.start(StartTurn::new("Hi")).await?;
    let mut events = orchestrator.subscribe(&turn.conversation_id, Some(turn.from), false).await?;
    while !events.next().await?.event().starts_with(br#"{"type":"text-delta""#) {}
    let asked = Instant::now();
    orchestrator.stop(&turn.conversation_id).await?;
    while !events.next().await?.ends_turn() {}
    Ok(asked.elapsed().as_secs_f64() * 1e3)
}

/// Returns the given quantile.
fn part(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part) as usize]
}
