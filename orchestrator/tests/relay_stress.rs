//! The same request from several threads at once: it begins one call.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{Arc, Barrier},
    thread,
};

use bytes::Bytes;
use everturn_orchestrator::{Dialect, Orchestrator, Outgoing, Passed, RelayCall, RelayProvider, Upstream};
use everturn_wire::Priority;
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use http::{HeaderMap, Method};
use tokio::runtime::Runtime;

const THREADS: usize = 4;
const ROUNDS: usize = 500;

/// Never answers.
struct Silent;

impl Upstream for Silent {
    fn send(&self, _: Outgoing) -> BoxStream<'static, Passed> {
        stream::pending().boxed()
    }
}

fn call(round: usize) -> RelayCall {
    let request = Outgoing {
        method: Method::POST,
        path: "messages".to_owned(),
        query: None,
        headers: HeaderMap::new(),
        body: Bytes::from(round.to_string()),
        dialect: Some(Dialect::Messages),
        streams: true,
        whole: false,
    };
    let session = Some("s".to_owned());
    let dialects = vec![Dialect::Messages];
    RelayCall {
        caller: None,
        dialects,
        provider: None,
        model: None,
        session,
        program: None,
        request,
        budget: None,
        quota: None,
        priority: Priority::Interactive,
    }
}

#[test]
fn a_request_that_comes_several_times_at_once_begins_one_call() {
    let runtime = Runtime::new().unwrap();
    let entered = runtime.enter();
    let provider = RelayProvider::new("p", Dialect::Messages, Arc::new(Silent));
    let orchestrator = Orchestrator::builder().relay(provider).build();
    drop(entered);
    let barrier = Barrier::new(THREADS);
    let listeners: Vec<_> = thread::scope(|scope| {
        let repeat = || {
            let _entered = runtime.enter();
            let ask = |round| {
                barrier.wait();
                orchestrator.pass_through(call(round)).unwrap()
            };
            (0..ROUNDS).map(ask).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(repeat)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let calls = orchestrator.calls();
    assert_eq!(calls.len(), ROUNDS);
    assert!(calls.iter().all(|call| call.listeners as usize == THREADS));
    drop(listeners);
}
