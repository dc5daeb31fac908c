//! Servers whose disk is full, or slow to flush.

use std::time::Duration;

use everturn_orchestrator::{Commit, Journal, JournalError, Version, Window};
use everturn_sim::nats::{self, NatsCluster, NatsConfig, SmallDisks};
use everturn_store_nats::{NatsJournal, Options};
use everturn_wire::ConversationId;

use crate::{
    cluster::options,
    support::{CLUSTER, Server, numbered},
};

/// Size of each text: nothing that a server could compress.
const TEXT: usize = 40_000;

/// A writer that knows what is stored.
struct Writer {
    journal: NatsJournal,
    id: ConversationId,
    random: fastrand::Rng,
    version: Version,
    texts: Vec<String>,
}

impl Writer {
    async fn new(options: &Options) -> Self {
        let journal = NatsJournal::connect(options).await.unwrap();
        let random = fastrand::Rng::with_seed(1);
        Self { journal, id: "c".into(), random, version: Version(0), texts: Vec::new() }
    }

    fn next(&self) -> Commit {
        let number = self.texts.len();
        numbered(number as u64, &self.texts[number - 1])
    }

    /// Appends another text.
    async fn append(&mut self) -> Result<(), JournalError> {
        let text = std::iter::repeat_with(|| self.random.alphanumeric()).take(TEXT).collect();
        self.texts.push(text);
        self.append_again().await
    }

    /// Appends the last text, unless it is stored.
    async fn append_again(&mut self) -> Result<(), JournalError> {
        let stored = self.journal.load(&self.id).await?.map_or(Version(0), |stored| stored.version);
        if stored < self.version {
            return Err(JournalError::Storage(format!("{stored:?} instead of {:?}", self.version)));
        }
        self.version = match stored == self.version {
            true => self.journal.append(&self.id, self.version, self.next()).await?,
            false => stored,
        };
        Ok(())
    }

    /// Appends until that fails.
    async fn fail(&mut self) -> JournalError {
        loop {
            if let Err(error) = self.append().await {
                return error;
            }
        }
    }

    /// Asserts that all texts are stored, once, and nothing else.
    async fn audit(&self, reader: &NatsJournal) {
        let chunks = reader.chunks(&self.id, Window::default()).await.unwrap();
        let expected: Vec<_> =
            (1..).zip(&self.texts).flat_map(|(number, text)| numbered(number, text).chunks).collect();
        assert!(chunks == expected, "{} of {} chunks", chunks.len(), expected.len());
    }
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_the_error_says_what_to_check() {
    let directory = tempfile::tempdir().unwrap();
    let Some(disks) = SmallDisks::mount(directory.path(), &["single"], 16) else { return };
    let within = disks.within();
    let config = NatsConfig { within: &within, ..NatsConfig::default() };
    let Some(mut server) = Server::start_in(directory, config).await else { return };
    let mut options = server.options();
    options.give_up_after = Duration::from_secs(1);
    let mut writer = Writer::new(&options).await;
    let error = writer.fail().await;
    assert!(matches!(error, JournalError::Unknown(_)), "{error}");
    assert!(error.to_string().contains("their disks have room"), "{error}");
    // More room alone is not enough for the server.
    disks.resize("single", 64);
    let error = writer.append_again().await.unwrap_err();
    assert!(matches!(error, JournalError::Unknown(_)), "{error}");
    server.server.restart();
    server.server.wait_until_healthy().await;
    writer.append_again().await.unwrap();
    writer.append().await.unwrap();
    writer.audit(&NatsJournal::connect(&options).await.unwrap()).await;
}

/// Such a leader loses what it stored last, and accepts appends at the version before, which the other servers store. That takes
/// two minutes, unless whoever watches the servers restarts it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_of_the_leader_of_three_loses_nothing() {
    let Some(program) = nats::program() else { return };
    let _alone = CLUSTER.lock().await;
    let directory = tempfile::tempdir().unwrap();
    let names = ["n0", "n1", "n2"];
    let Some(disks) = SmallDisks::mount(directory.path(), &names, 256) else { return };
    let within = disks.within();
    let config = NatsConfig { within: &within, ..NatsConfig::default() };
    let mut cluster = NatsCluster::start(&program, directory.path(), config).await;
    let mut options = options(cluster.urls(), "t");
    options.give_up_after = Duration::from_secs(2);
    let mut writer = Writer::new(&options).await;
    writer.append().await.unwrap();
    let leader = cluster.leader_of("T").await;
    disks.resize(names[leader], disks.used(names[leader]) + 1);
    let error = writer.fail().await;
    assert!(matches!(error, JournalError::Unknown(_) | JournalError::Storage(_)), "{error}");
    // Another node knows only what the leader says.
    let (other, id) = (NatsJournal::connect(&options).await.unwrap(), writer.id.clone());
    let known = other.load(&id).await.unwrap().unwrap().version;
    let number = writer.texts.len() as u64 - 1;
    let error = other.append(&id, known, numbered(number, "of the other node")).await.unwrap_err();
    let is_known =
        matches!(error, JournalError::Stale { .. } | JournalError::Unknown(_) | JournalError::Storage(_));
    assert!(known <= writer.version && is_known, "{error}");
    disks.resize(names[leader], 256);
    cluster.servers[leader].restart();
    cluster.servers[leader].wait_until_healthy().await;
    let recovered = async { while writer.append_again().await.is_err() {} };
    tokio::time::timeout(Duration::from_secs(120), recovered).await.expect("it goes on");
    for _ in 0..10 {
        writer.append().await.unwrap();
    }
    for url in cluster.urls() {
        options.servers = vec![url];
        writer.audit(&NatsJournal::connect(&options).await.unwrap()).await;
    }
}

#[tokio::test]
async fn appends_wait_for_a_disk_that_flushes_slowly() {
    if std::process::Command::new("strace").arg("-V").output().is_err() {
        eprintln!("skipped: strace is not installed");
        return;
    }
    // Stops at flushes alone: with stops at every call and signal, a server once did not start within three minutes on a busy machine.
    let strace = "env GODEBUG=asyncpreemptoff=1 strace -D -f --seccomp-bpf -qq -o /dev/null \
                  -e trace=fsync -e inject=fsync:delay_exit=150ms";
    let within: Vec<String> = strace.split_whitespace().map(str::to_owned).collect();
    let config = NatsConfig { within: &within, jetstream: "sync_interval: always", ..NatsConfig::default() };
    let Some(server) = Server::start_with(config).await else { return };
    let mut options = server.options();
    // Shorter than a flush.
    options.answer_within = Duration::from_millis(100);
    let mut writer = Writer::new(&options).await;
    for _ in 0..20 {
        writer.append().await.unwrap();
    }
    assert!(writer.journal.lost_answers() > 10, "{} answers came too late", writer.journal.lost_answers());
    writer.audit(&writer.journal).await;
}
