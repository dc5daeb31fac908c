//! The process in between: a bare reverse proxy, or a server through which calls pass.

use std::sync::Arc;

use anyhow::{Result, bail};
use everturn_orchestrator::{Dialect, Orchestrator, Outgoing, Passed, RelayProvider, Upstream};
use everturn_provider::{
    AnswerForm, EndpointConfig, HttpClient, HttpConfig, KeyHeader, Relay, RelayEvent, RelayRequest,
};
use everturn_transport_http::{
    Access, CallLimits, Callers, ConnectionLimits, Guard, Metrics, router, serve as serve_router,
};
use futures_util::{StreamExt, future, stream::BoxStream};
use hyper::{Request, Uri, body::Incoming, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use tokio::net::TcpListener;

use crate::{callers::limiting, stream::block_on};

pub(super) fn serve(kind: &str, upstream: &str) -> Result<()> {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        match kind {
            "bare" => bare(listener, upstream).await,
            "everturn" => everturn(listener, upstream, false).await,
            "callers" => everturn(listener, upstream, true).await,
            other => bail!("nothing is called {other:?}"),
        }
    })
}

/// What hyper alone does: each request is sent on, and each answer comes back as it comes.
async fn bare(listener: TcpListener, upstream: &str) -> Result<()> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<HttpConnector, Incoming> = Client::builder(TokioExecutor::new()).build(connector);
    let upstream: Arc<str> = upstream.into();
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let (client, upstream) = (client.clone(), upstream.clone());
        tokio::spawn(async move {
            let forward = service_fn(move |mut request: Request<Incoming>| {
                let to =
                    format!("{upstream}{}", request.uri().path_and_query().map_or("/", |path| path.as_str()));
                let client = client.clone();
                async move {
                    *request.uri_mut() = to.parse::<Uri>()?;
                    request.headers_mut().remove("host");
                    anyhow::Ok(client.request(request).await?)
                }
            });
            // A disconnect only ends that connection.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), forward)
                .await;
        });
    }
}

/// A server with one provider that lists no models, with what the binary puts around its calls.
async fn everturn(listener: TcpListener, upstream: &str, knows_callers: bool) -> Result<()> {
    let bound = listener.local_addr()?;
    let http = HttpClient::new(HttpConfig { system_proxy: false, ..HttpConfig::default() })?;
    let relay = Relay::new(http, &EndpointConfig::new(format!("{upstream}/v1")), KeyHeader::Bearer, false)?;
    let provider = RelayProvider::new("bench", Dialect::Chat, Arc::new(Endpoint(relay)));
    let builder = Orchestrator::builder().relay(provider);
    let (orchestrator, callers) = match knows_callers {
        true => limiting(builder).await?,
        false => (builder.build(), Callers::default()),
    };
    let access = Access {
        bound,
        hosts: Vec::new(),
        origins: Vec::new(),
        token: None,
        callers,
        caller_header: None,
        is_open: |_| false,
    };
    let app = Guard::new(access)?.protect(router(orchestrator, CallLimits::default(), Metrics::none()));
    serve_router(listener, app, ConnectionLimits::default(), future::pending::<()>()).await;
    bail!("it ended")
}

struct Endpoint(Relay);

impl Upstream for Endpoint {
    fn send(&self, request: Outgoing) -> BoxStream<'static, Passed> {
        let Outgoing { method, path, query, headers, body, streams, whole, .. } = request;
        let request =
            RelayRequest { method, path, query, headers, body, form: AnswerForm::Chat, streams, whole };
        let passed = self.0.send(request).map(|event| match event {
            RelayEvent::Head(status, headers) => Passed::Head(status, headers),
            RelayEvent::Piece(piece) => Passed::Piece(piece),
            RelayEvent::LastIsNext => Passed::LastIsNext,
            RelayEvent::Cut => Passed::Cut,
            RelayEvent::Fact(fact) => Passed::Fact(fact),
        });
        passed.boxed()
    }
}
