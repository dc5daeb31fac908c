//! Keeps the models up to date: reads the providers' lists, and what other processes added or removed.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use everturn_orchestrator::{Orchestrator, StateStore};
use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout};

use super::{Made, Providers, Source, kept_lists::KeptLists, make};
use crate::config::AddedFile;

/// How long startup waits for the lists. Models of slower providers are offered later.
const STARTING: Duration = Duration::from_secs(3);

/// Interval to look for changes of the file.
const TICK: Duration = Duration::from_secs(1);

/// How long a list counts as current, and the first and longest wait after one that could not be read.
const CURRENT: Duration = Duration::from_secs(60 * 60);
const AGAIN: Duration = Duration::from_secs(15);

impl Providers {
    /// Gives the orchestrator their models, and reads their lists. Returns when they are known or slow; the rest happens in
    /// the background until the task is aborted. `store`: where lists are kept for the next process.
    pub(crate) async fn start(
        &self,
        orchestrator: &Orchestrator,
        store: Option<Arc<dyn StateStore>>,
    ) -> tokio::task::JoinHandle<()> {
        // Nothing else sets it.
        let _ = self.0.orchestrator.set(orchestrator.clone());
        let file = self.0.file.as_ref().and_then(AddedFile::changed_at);
        let mut lists = store.map(KeptLists::new);
        if let Some(lists) = &mut lists {
            lists.restore(&self.all()).await;
            self.tell();
        }
        let this = self.clone();
        let mut first = tokio::spawn(async move {
            this.look(&this.all(), &mut lists).await;
            lists
        });
        let (this, started) = (self.clone(), timeout(STARTING, &mut first).await);
        tokio::spawn(async move {
            let lists = match started {
                Ok(lists) => lists,
                Err(_) => first.await,
            };
            this.keep_up(file, lists.ok().flatten()).await;
        })
    }

    async fn keep_up(&self, mut file: Option<(std::time::SystemTime, u64)>, mut lists: Option<KeptLists>) {
        let mut due = Due::default();
        due.looked(&self.all());
        loop {
            sleep(TICK).await;
            if let Some(lists) = &mut lists {
                // Of providers that people added.
                lists.keep(&self.all()).await;
            }
            let now = self.0.file.as_ref().and_then(AddedFile::changed_at);
            if now != file {
                file = now;
                self.read_again().await;
            }
            let all = due.now(&self.all());
            if !all.is_empty() {
                self.look(&all, &mut lists).await;
                due.looked(&all);
            }
        }
    }

    /// Reads the lists of these providers at once, keeps them, and offers what is new.
    async fn look(&self, all: &[Arc<Made>], lists: &mut Option<KeptLists>) {
        let listed: Vec<&Arc<Made>> = all.iter().filter(|made| made.is_listed()).collect();
        let offered = |made: &&Arc<Made>| (made.listed().models, made.listed().is_old);
        let before: Vec<_> = listed.iter().map(offered).collect();
        for (made, looked) in listed.iter().zip(join_all(listed.iter().map(|made| made.look())).await) {
            if let Err(failure) = looked {
                let provider = &made.provider.name;
                tracing::warn!(provider, error = failure.message, "the list of models cannot be read");
            }
        }
        if !listed.iter().map(offered).eq(before) {
            if let Some(lists) = lists {
                lists.keep(all).await;
            }
            self.tell();
        }
    }

    /// Takes over what another process changed in the file. Providers that are the same keep their connections and lists.
    async fn read_again(&self) {
        let _changing = self.0.changing.lock().await;
        let Some(file) = self.0.file.clone() else { return };
        let entries = match tokio::task::spawn_blocking(move || file.read()).await {
            Ok(Ok(entries)) => entries,
            Ok(Err(error)) => {
                tracing::warn!(error = format!("{error:#}"), "the added providers stay as they were");
                return;
            }
            Err(_) => return,
        };
        let known: HashMap<String, Arc<Made>> =
            self.added().iter().map(|made| (made.provider.name.clone(), made.clone())).collect();
        let mut all = Vec::new();
        for entry in entries.iter().filter(|entry| self.check_name(entry.name()).is_ok()) {
            match make(entry) {
                Ok(made) => {
                    match known.get(&made.provider.name).filter(|known| known.provider == made.provider) {
                        Some(same) => all.push(same.clone()),
                        None => all.push(Arc::new(made)),
                    }
                }
                Err(error) => {
                    tracing::warn!(provider = entry.name(), error = format!("{error:#}"), "cannot be used");
                }
            }
        }
        let is_same = {
            let mut added = self.added();
            let is_same = added.len() == all.len() && added.iter().zip(&all).all(|(a, b)| Arc::ptr_eq(a, b));
            *added = all;
            is_same
        };
        if !is_same {
            self.tell();
        }
    }
}

/// When which list is to be read again.
#[derive(Default)]
struct Due {
    /// By provider: when, and how often in a row it failed.
    at: HashMap<String, (Instant, u32)>,
}

impl Due {
    fn looked(&mut self, all: &[Arc<Made>]) {
        for made in all.iter().filter(|made| made.is_listed()) {
            let failures = self.at.get(&made.provider.name).map_or(0, |(_, failures)| *failures);
            let failures = if made.listed().failure.is_some() { failures + 1 } else { 0 };
            let wait = match failures {
                0 => CURRENT,
                _ => (AGAIN * 2_u32.pow(failures.min(8) - 1)).min(CURRENT),
            };
            self.at.insert(made.provider.name.clone(), (Instant::now() + wait, failures));
        }
    }

    /// Returns those whose list is to be read now.
    fn now(&mut self, all: &[Arc<Made>]) -> Vec<Arc<Made>> {
        let names: HashSet<&str> = all.iter().map(|made| made.provider.name.as_str()).collect();
        self.at.retain(|name, _| names.contains(name.as_str()));
        let now = Instant::now();
        let is_due = |made: &&Arc<Made>| {
            let at = self.at.get(&made.provider.name).map(|(at, _)| *at);
            // One that a person added was read when it was tried.
            let is_new =
                at.is_none() && (made.source == Source::Configuration || made.listed().models.is_none());
            made.is_listed() && (is_new || at.is_some_and(|at| at <= now))
        };
        let due: Vec<Arc<Made>> = all.iter().filter(is_due).cloned().collect();
        let rest: Vec<Arc<Made>> =
            all.iter().filter(|made| !self.at.contains_key(&made.provider.name)).cloned().collect();
        self.looked(&rest);
        due
    }
}
