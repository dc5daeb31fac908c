//! `everturn serve`: the page and the API at one address.

use std::{
    env,
    io::{self, ErrorKind, Write as _},
    net::SocketAddr,
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use everturn_orchestrator::{Clock as _, Orchestrator, SystemClock};
use everturn_terminal::Interrupt;
use everturn_transport_http::{Metrics, serve_tls};
use futures_util::future::join;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle, time::timeout};

use crate::{
    assembly, callers,
    capacity::Capacity,
    cli,
    config::{Config, Environment},
    greeting,
    mcp::McpServers,
    providers::Providers,
    retention,
    router::{self, Place},
    storage::Storage,
    titles, tls,
    traces::Exporting,
};

/// How long running turns may continue after a request to shut down, and how long saving them may take after that.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
const SAVING: Duration = Duration::from_secs(5);
/// How long running turns may continue if another server is going to continue them.
const HAND_OVER: Duration = Duration::from_millis(500);
/// How long clients may take to disconnect.
const GOODBYE: Duration = Duration::from_secs(1);

/// Serves until asked to end.
pub(crate) async fn run(args: &cli::Serve) -> Result<ExitCode> {
    let mut config = Config::resolve(&args.flags(), &Environment::of_process())?;
    config.check_exposure()?;
    let mut interrupt = Interrupt::listen()?;
    let metrics = Metrics::install()?;
    // Bind first, because if another server is running, an error about its port is clearer than one about its data
    // file.
    let listener = bind(config.listen).await?;
    let address = listener.local_addr()?;
    let storage = Storage::open(&config, &address.to_string()).await?;
    let database = storage.database();
    let servers = McpServers::start(&config.mcp)?;
    let certificate = config.tls.as_ref().map(tls::certificate).transpose()?;
    let providers = Providers::new(&mut config)?;
    let exporting = Exporting::start(&config, &providers)?;
    let traces = exporting.as_ref().and_then(Exporting::observer);
    let orchestrator = assembly::orchestrator(&config, &providers, storage.clone(), &servers, traces);
    let capacity = Capacity::of_process();
    let upkeep = tokio::spawn(metrics.clone().keep_up());
    let callers = callers::Kept::read(&config, &orchestrator)?;
    let place = Place { metrics, callers: callers.callers.clone(), bound: address };
    let (app, sockets) = router::open(&orchestrator, &config, &providers, &servers, &capacity, place)?;
    let noticing = tokio::spawn(callers.keep_up());
    let (offering, ()) = join(providers.start(&orchestrator, storage.state()), servers.settled()).await;
    let resumed = orchestrator.resume().await.context("cannot resume earlier turns")?;
    let pruning = storage.journal().map(|journal| {
        let clock = SystemClock::default();
        tokio::spawn(retention::run(orchestrator.clone(), journal, config.keep, move || clock.now()))
    });
    let titling =
        config.titles.clone().map(|titles| tokio::spawn(titles::keep_up(orchestrator.clone(), titles)));
    let logins = tokio::spawn(servers.clone().keep_up(config.login_file.clone()));
    let sweeping = tokio::spawn(retention::drop_ephemeral(orchestrator.clone()));
    let program = env::args().next().unwrap_or_else(|| "everturn".to_owned());
    let greeting = greeting::of(
        &config,
        &providers,
        address,
        &orchestrator,
        &program,
        greeting::Kept { database, resumed },
        exporting.as_ref(),
    );
    // The terminal may have been closed; the server continues all the same.
    let _ = io::stdout().write_all(greeting.as_bytes());
    let (close, closed) = oneshot::channel::<()>();
    let mut serving =
        tokio::spawn(serve_tls(listener, app, capacity.connections, certificate.clone(), async {
            drop(closed.await);
        }));
    let renewing = config
        .tls
        .clone()
        .zip(certificate)
        .map(|(files, certificate)| tokio::spawn(tls::keep_up(files, certificate)));
    tokio::select! {
        served = &mut serving => served?,
        () = interrupt.next() => {
            let ended = async {
                let grace = if config.cluster.is_some() { HAND_OVER } else { GRACE };
                save(&orchestrator, grace).await;
                drop(close);
                // No turn calls their tools any more.
                let goodbye = timeout(GOODBYE, join(sockets.ended(), serving));
                let _ = join(servers.close(), goodbye).await;
                if let Some(exporting) = exporting {
                    exporting.finish().await;
                }
            };
            tokio::select! {
                () = ended => {}
                // A second interrupt: running turns are left as after a crash.
                () = interrupt.next() => orchestrator.abandon(),
            }
        }
    }
    logins.abort();
    sweeping.abort();
    noticing.abort();
    titling.inspect(JoinHandle::abort);
    offering.abort();
    renewing.inspect(JoinHandle::abort);
    pruning.inspect(JoinHandle::abort);
    upkeep.abort();
    Ok(ExitCode::SUCCESS)
}

/// Lets running turns end or come to rest. Requests are still answered meanwhile: a turn can be stopped, and new turns
/// are refused with a reason.
pub(crate) async fn save(orchestrator: &Orchestrator, grace: Duration) {
    if timeout(grace + SAVING, orchestrator.shutdown(grace)).await.is_err() {
        tracing::warn!(
            "the journal did not save everything in time: some turns will resume from an earlier point"
        );
        orchestrator.abandon();
    }
}

pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => anyhow!(
            "cannot listen on {address}: the address is in use, perhaps by another everturn. Stop that one, or choose \
             another port with --listen, e.g. --listen 127.0.0.1:0 for any free one"
        ),
        ErrorKind::PermissionDenied => {
            anyhow!("cannot listen on {address}: the system does not allow it; choose a port above 1023 with --listen")
        }
        ErrorKind::AddrNotAvailable => {
            anyhow!("cannot listen on {address}: this machine has no such address; choose another with --listen")
        }
        _ => anyhow!("cannot listen on {address}: {error}"),
    })
}
