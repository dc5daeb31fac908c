//! The providers of a server: those of the configuration, and those that people add while it runs.

mod api;
mod kept_lists;
mod made;
mod trial;
mod upkeep;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Result, bail};
use everturn_orchestrator::{Catalog, Orchestrator};
use everturn_provider::{Demo, Redactor};
use everturn_wire::Priority;

use crate::config::{Added, AddedFile, Config, Provider, Route, Wanted};
pub(crate) use api::router;
pub(crate) use made::{Made, Source};
pub(crate) use trial::{Problem, Tried, attempt};

/// All providers of a server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Providers(Arc<Shared>);

struct Shared {
    /// Those of the configuration.
    configured: Vec<Arc<Made>>,
    /// Those that were added.
    added: Mutex<Vec<Arc<Made>>>,
    /// Where they are kept; `None` = in memory.
    file: Option<AddedFile>,
    /// Names, targets and schedules of the routes.
    routes: Vec<Route>,
    default_model: Option<String>,
    /// Names in the configuration, also of disabled providers.
    taken: BTreeSet<String>,
    /// Whether there is no provider, so that the demo is offered.
    is_demo: Arc<AtomicBool>,
    /// Removes the secrets of all of them from text, also of those that were removed.
    redactor: RwLock<Redactor>,
    orchestrator: OnceLock<Orchestrator>,
    /// Changes come one at a time.
    changing: tokio::sync::Mutex<()>,
}

impl Providers {
    /// Makes the adapters without connecting.
    pub(crate) fn new(config: &mut Config) -> Result<Self> {
        let redactor = config.redactor();
        let make = |providers: Vec<Provider>, source| {
            providers
                .into_iter()
                .map(|provider| Made::new(provider, source).map(Arc::new))
                .collect::<Result<Vec<_>>>()
        };
        let configured = make(std::mem::take(&mut config.providers), Source::Configuration)?;
        let added = make(std::mem::take(&mut config.added), Source::Added)?;
        let providers = Self(Arc::new(Shared {
            configured,
            added: Mutex::new(added),
            file: config.added_file.clone(),
            routes: config.routes.clone(),
            default_model: config.default_model.clone(),
            taken: config.names.clone(),
            is_demo: Arc::default(),
            redactor: RwLock::new(redactor),
            orchestrator: OnceLock::new(),
            changing: tokio::sync::Mutex::default(),
        }));
        providers.tell();
        Ok(providers)
    }

    /// Whether only the demo is offered. Shared with whatever depends on it.
    pub(crate) fn is_demo(&self) -> Arc<AtomicBool> {
        self.0.is_demo.clone()
    }

    /// Returns the models and routes of all of them; of the demo, if there are none.
    pub(crate) fn catalog(&self) -> Catalog {
        let mut catalog = Catalog::new();
        let all = self.all();
        for made in &all {
            made.offer(&mut catalog);
        }
        if all.is_empty() {
            catalog.model("demo", Demo::MODEL, Arc::new(Demo));
        }
        for Route { name, targets, policy, is_own, priority, .. } in &self.0.routes {
            catalog.route(name, targets.clone(), is_own.then(|| policy.clone()));
            if *priority == Priority::Background {
                catalog.background(name);
            }
        }
        if let Some(model) = &self.0.default_model {
            catalog.default_model(model);
        }
        catalog
    }

    /// Returns all of them, those of the configuration first.
    pub(crate) fn all(&self) -> Vec<Arc<Made>> {
        self.0.configured.iter().chain(&*self.added()).cloned().collect()
    }

    /// Returns the file that added providers are kept in.
    fn file(&self) -> Option<&std::path::Path> {
        self.0.file.as_ref().map(AddedFile::path)
    }

    /// Removes all secrets of the server from a text, also those of removed providers.
    #[cfg(feature = "otlp")]
    pub(crate) fn redact(&self, text: &mut String) {
        self.0.redactor.read().unwrap_or_else(PoisonError::into_inner).redact(text);
    }

    /// Tries a provider and adds it, or has it replace the added one of its name. `anyway`: although it did not work.
    ///
    /// # Errors
    /// When it is not valid, or does not work.
    pub(crate) async fn add(
        &self,
        wanted: Wanted,
        anyway: bool,
    ) -> Result<(Arc<Made>, Tried, bool), Problem> {
        let added = wanted.resolve().map_err(|error| Problem::plain(format!("{error:#}")))?;
        self.check_name(added.name()).map_err(|error| Problem::plain(format!("{error:#}")))?;
        let made = make(&added).map_err(|error| Problem::plain(format!("{error:#}")))?;
        let tried = match attempt(&made).await {
            Err(problem) if anyway => Tried { note: Some(problem), ..Tried::default() },
            tried => tried?,
        };
        let _changing = self.0.changing.lock().await;
        let is_new = self.keep(&added).await.map_err(|error| Problem::plain(format!("{error:#}")))?;
        let made = Arc::new(made);
        let mut all = self.added();
        let known = all.iter().position(|known| known.provider.name == made.provider.name);
        match known {
            Some(at) => all[at] = made.clone(),
            None => all.push(made.clone()),
        }
        drop(all);
        self.tell();
        Ok((made, tried, is_new && known.is_none()))
    }

    /// Removes an added provider. Returns whether there was one.
    ///
    /// # Errors
    /// When it belongs to the configuration, or the file cannot be written.
    pub(crate) async fn remove(&self, name: &str) -> Result<bool> {
        let _changing = self.0.changing.lock().await;
        self.check_name(name)?;
        let was_kept = match self.0.file.clone() {
            Some(file) => {
                let name = name.to_owned();
                tokio::task::spawn_blocking(move || file.remove(&name)).await??
            }
            None => false,
        };
        let mut all = self.added();
        let before = all.len();
        all.retain(|made| made.provider.name != name);
        let was_there = was_kept || all.len() < before;
        drop(all);
        self.tell();
        Ok(was_there)
    }

    fn check_name(&self, name: &str) -> Result<()> {
        if self.0.taken.contains(name) {
            bail!(
                "{name:?} is in the configuration (its file or the environment), and can only be changed there; give an \
                 added provider another name"
            );
        }
        Ok(())
    }

    /// Writes an added provider to the file. Returns whether it was not there.
    async fn keep(&self, added: &Added) -> Result<bool> {
        let Some(file) = self.0.file.clone() else { return Ok(true) };
        let added = added.clone();
        Ok(!tokio::task::spawn_blocking(move || file.add(added)).await??)
    }

    /// Has all who depend on the providers know them.
    fn tell(&self) {
        let all = self.all();
        {
            let mut redactor = self.0.redactor.write().unwrap_or_else(PoisonError::into_inner);
            let added = all.iter().filter(|made| made.source == Source::Added);
            added.for_each(|made| made.provider.hide_in(&mut redactor));
        }
        self.0.is_demo.store(all.is_empty(), Ordering::Relaxed);
        if let Some(orchestrator) = self.0.orchestrator.get() {
            orchestrator.offer(self.catalog());
        }
    }

    fn added(&self) -> MutexGuard<'_, Vec<Arc<Made>>> {
        self.0.added.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the adapters of an added provider.
pub(crate) fn make(added: &Added) -> Result<Made> {
    Made::new(Provider::of_added(added)?, Source::Added)
}
