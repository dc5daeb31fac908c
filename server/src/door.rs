//! Who is let in, and where to.

use std::net::SocketAddr;

use anyhow::Result;
use axum::{Router, http::HeaderMap, routing::get};
use everturn_orchestrator::Orchestrator;

use crate::{config::Config, page};

pub(crate) fn router(_orchestrator: &Orchestrator, _config: &Config, _address: SocketAddr) -> Result<Router> {
    Ok(page::router().route("/", get(async |headers: HeaderMap| page::index(&headers))))
}
