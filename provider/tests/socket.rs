//! Socket options of connections to providers.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::{fs, os::fd::OwnedFd};

use everturn_kernel::{Op, Provider as _, Request};
use everturn_provider::{ChatCompletions, ChatConfig, EndpointConfig, HttpClient, HttpConfig};
use everturn_sim::{Gate, Loopback, Reply};
use futures_util::StreamExt as _;
use rustix::{
    net::sockopt,
    process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open},
};

/// Returns this process's socket connected to a loopback port.
fn connected_to(port: u16) -> OwnedFd {
    let remote = format!(":{port:04X}");
    let table = fs::read_to_string("/proc/self/net/tcp").unwrap();
    let columns = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    // Columns of this table: number, local and remote address, state, ..., with the inode as the tenth.
    let ours = table.lines().map(columns).find(|columns| columns[2].ends_with(&remote) && columns[3] == "01");
    let link = format!("socket:[{}]", ours.expect("the connection is in the table")[9]);
    let mut descriptors = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    let path = descriptors.find(|path| fs::read_link(path).is_ok_and(|to| to.to_str() == Some(&*link)));
    let number = path.unwrap().file_name().unwrap().to_str().unwrap().parse().unwrap();
    let process = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    pidfd_getfd(process, number, PidfdGetfdFlags::empty()).unwrap()
}

#[tokio::test]
async fn a_dead_peer_is_noticed_within_a_minute() {
    let gate = Gate::new();
    let server = Loopback::start([Reply::sse(["data: {}\n\n"]).hold(&gate)]).await;
    let http = HttpClient::new(HttpConfig::default()).unwrap();
    let endpoint = EndpointConfig::new(format!("{}/v1", server.base_url()));
    let provider = ChatCompletions::new(http, ChatConfig::new(endpoint)).unwrap();
    let mut call = provider.stream(Request {
        op: Op::default(),
        model: "m".into(),
        messages: Vec::new(),
        tools: [].into(),
        parameters: Default::default(),
        max_output_tokens: None,
        reasoning_effort: None,
        eager_calls: false,
        trace: None,
    });
    tokio::select! {
        fact = call.next() => panic!("the server was silent: {fact:?}"),
        () = server.arrived(1) => {}
    }
    let port = server.base_url().rsplit(':').next().unwrap().parse().unwrap();
    let socket = connected_to(port);
    assert!(sockopt::socket_keepalive(&socket).unwrap());
    assert_eq!(sockopt::tcp_keepidle(&socket).unwrap().as_secs(), 15);
    assert_eq!(sockopt::tcp_keepintvl(&socket).unwrap().as_secs(), 15);
    assert_eq!(sockopt::tcp_keepcnt(&socket).unwrap(), 3);
    assert_eq!(sockopt::tcp_user_timeout(&socket).unwrap(), 60_000);
}
