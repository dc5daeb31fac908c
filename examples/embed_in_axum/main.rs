//! Everturn embedded in your own axum server: your model, your tool, your schedule, your routes.
//!
//! `cargo run -p everturn-examples --example embed_in_axum` runs one turn against itself and ends. With `-- --serve`,
//! it keeps running:
//! `curl -N 127.0.0.1:4888/chat -H 'content-type: application/json' -d '{"message":"How warm is the lake?"}'`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod client;
mod model;
mod tool;
mod watcher;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Result;
use axum::{Router, routing::get};
use everturn_orchestrator::{Exponential, Orchestrator};
use everturn_transport_http::{Access, CallLimits, Callers, Guard, Metrics};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<()> {
    let stays = std::env::args().any(|argument| argument == "--serve");
    let listener = TcpListener::bind(if stays { "127.0.0.1:4888" } else { "127.0.0.1:0" }).await?;
    let address = listener.local_addr()?;

    let orchestrator = orchestrator();
    let server = axum::serve(listener, app(&orchestrator, address)?);
    println!("listening on http://{address}");
    if stays {
        return Ok(server.await?);
    }
    tokio::spawn(server.into_future());
    client::one_turn(address).await
}

/// Everything except the models has a default.
fn orchestrator() -> Orchestrator {
    Orchestrator::builder()
        // Clients use the name `house/weather`. For real models, everturn-provider has adapters.
        .model("house", "weather", Arc::new(model::Weather))
        .tool(tool::Thermometer)
        .observer(Arc::new(watcher::PrintRetries))
        // 50 ms, 100 ms, 200 ms, ...: short waits for a demonstration.
        .schedule(Exponential { base: Duration::from_millis(50), max_retries: 5, ..Exponential::default() })
        .build()
}

/// Your own routes, and the two transports.
fn app(orchestrator: &Orchestrator, bound: SocketAddr) -> Result<Router> {
    let routes = Router::new()
        .route("/about", get(async || "A server with a chat in it"))
        .merge(everturn_transport_http::router(orchestrator.clone(), CallLimits::default(), Metrics::none()))
        .merge(everturn_transport_ws::router(
            orchestrator.clone(),
            everturn_transport_ws::SocketLimits::default(),
        ));
    // Without it, any page open in your browser could use your models.
    let access = Access {
        bound,
        hosts: vec![],
        origins: vec![],
        token: None,
        callers: Callers::default(),
        caller_header: None,
        is_open: |_| false,
    };
    let guard = Guard::new(access)?;
    Ok(guard.protect(routes))
}
