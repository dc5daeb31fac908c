//! A real PgBouncer on a loopback port.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::{nats::wait_for, postgres::PASSWORD};

/// Environment variable: the program `pgbouncer`, if it is not where Debian installs it.
pub const PROGRAM: &str = "EVERTURN_PGBOUNCER";

/// A pooler in front of a server, which ends when this is dropped.
#[derive(Debug)]
pub struct Bouncer {
    address: String,
    process: Child,
}

impl Bouncer {
    /// Starts one in this directory, for the server at this address, in this mode; `None` if there is none on this machine.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(directory: &Path, server: &str, mode: &str) -> Option<Self> {
        let named = std::env::var_os(PROGRAM).map(PathBuf::from);
        let program = named.unwrap_or_else(|| PathBuf::from("/usr/sbin/pgbouncer"));
        if !program.is_file() {
            eprintln!("skipped: no PgBouncer; install it, or name the program with {PROGRAM}");
            return None;
        }
        let (host, port) = server.split_once(':').expect("an address has a port");
        let bound = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let listen = bound.local_addr().expect("it has an address").port();
        drop(bound);
        let users = directory.join("users.txt");
        fs::write(&users, format!("\"everturn\" \"{PASSWORD}\"\n")).expect("a file can be written");
        let settings = format!(
            "[databases]\npostgres = host={host} port={port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {listen}\nunix_socket_dir =\nauth_type = plain\nauth_file = {}\npool_mode = {mode}\n\
             default_pool_size = 100\nmax_client_conn = 200\n",
            users.display()
        );
        let file = directory.join("pgbouncer.ini");
        fs::write(&file, settings).expect("a file can be written");
        let mut command = Command::new(program);
        command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        crate::postgres::unprivileged(&mut command);
        let process = command.spawn().expect("pgbouncer can be started");
        let bouncer = Self { address: format!("127.0.0.1:{listen}"), process };
        let listens = async || tokio::net::TcpStream::connect(&bouncer.address).await.ok();
        wait_for("PgBouncer listens", listens).await;
        Some(bouncer)
    }

    /// Returns its address, as `host:port`.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
