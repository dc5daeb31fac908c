//! The models and routes on offer, which can be replaced while turns run.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, PoisonError, RwLock},
};

use everturn_kernel::Provider;
use everturn_pacing::{LongLimits, RetryPolicy};
use everturn_wire::{CallerName, Priority};

use crate::{
    RelayProvider,
    journal::Configured,
    model::{Allowed, Model, Models},
    route::{PREFIX, Route},
    schedule,
};

/// Models and routes to offer: see [`Builder`](crate::Builder) and [`Orchestrator::offer`](crate::Orchestrator::offer).
#[derive(Clone, Default)]
pub struct Catalog {
    models: Models,
    /// The id, the ids of the targets, and the policy. `None` = the default one.
    routes: Vec<(String, Vec<String>, Option<RetryPolicy>)>,
    /// The ids of routes whose calls give way to others.
    background: BTreeSet<String>,
}

impl Catalog {
    /// Creates a catalog without models.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a model: see [`Builder::model`](crate::Builder::model).
    pub fn model(&mut self, credential: &str, name: &str, provider: Arc<dyn Provider>) {
        self.put(Model::new(credential, name, provider, None));
    }

    /// Adds a model, in place of one with the same id.
    fn put(&mut self, model: Model) {
        let models = Arc::make_mut(&mut self.models.models);
        match models.iter_mut().find(|known| known.id == model.id) {
            Some(known) => *known = Arc::new(model),
            None => models.push(Arc::new(model)),
        }
    }

    /// Adds another credential for a model: see [`Builder::credential`](crate::Builder::credential).
    pub fn credential(&mut self, of: &str, credential: &str, provider: Arc<dyn Provider>) {
        let name = of.split_once('/').map_or(of, |(_, name)| name);
        let is_known = self.models.models.iter().any(|model| model.id == of);
        let sibling_of = is_known.then(|| of.to_owned());
        self.put(Model::new(credential, name, provider, sibling_of));
    }

    /// Accepts any model name for a credential, because its models are not known: `credential/anything` is passed on to
    /// the provider. Such models are not listed.
    pub fn any_model(&mut self, credential: &str, provider: Arc<dyn Provider>) {
        Arc::make_mut(&mut self.models.unlisted).push((credential.to_owned(), provider));
    }

    /// Adds a provider that calls are passed through to: see [`Builder::relay`](crate::Builder::relay).
    pub fn relay(&mut self, provider: RelayProvider) {
        Arc::make_mut(&mut self.models.relays).push(provider);
    }

    /// Adds a route: see [`Builder::route`](crate::Builder::route). `policy`: `None` = the default one, as with
    /// [`Builder::plain_route`](crate::Builder::plain_route).
    pub fn route(&mut self, name: &str, targets: Vec<String>, policy: Option<RetryPolicy>) {
        let id = format!("{PREFIX}{name}");
        self.routes.retain(|(known, ..)| *known != id);
        self.routes.push((id, targets, policy));
    }

    /// Lets the calls of a route give way to others when calls have to wait.
    pub fn background(&mut self, route: &str) {
        self.background.insert(format!("{PREFIX}{route}"));
    }

    /// Sets the model or route of turns that name none. Default: the first model.
    pub fn default_model(&mut self, id: impl Into<String>) {
        self.models.default = Some(id.into());
    }

    /// Sets the context window of a model, in tokens.
    pub fn context_window(&mut self, model: impl Into<String>, tokens: u64) {
        Arc::make_mut(&mut self.models.windows).insert(model.into(), tokens);
    }
}

/// What a catalog's routes are made with.
pub(crate) struct Defaults {
    pub(crate) policy: RetryPolicy,
    /// Whether turns wait out usage limits.
    pub(crate) sits_out_limits: bool,
    pub(crate) configured: Arc<Configured>,
}

impl Defaults {
    /// Returns a policy as turns use it.
    pub(crate) fn completed(&self, policy: RetryPolicy) -> RetryPolicy {
        if self.sits_out_limits { policy.with(LongLimits::SitOut) } else { policy }
    }

    /// Makes the routes. A model with several credentials is one, too.
    fn resolve(&self, catalog: Catalog) -> Models {
        let mut models = catalog.models;
        let several = models.models.iter().filter_map(|model| model.sibling_of.clone());
        let several = several.collect::<BTreeSet<_>>().into_iter().map(|id| (id.clone(), vec![id], None));
        for (id, targets, policy) in catalog.routes.into_iter().chain(several) {
            let is_own = policy.is_some();
            let policy = policy.unwrap_or_else(|| self.policy.clone()).on_route();
            let policy = self.completed(policy);
            let configured =
                Arc::new(Configured { schedule: schedule::saved(&policy), ..(*self.configured).clone() });
            let targets = models.targets_of(&targets);
            if !targets.is_empty() {
                let is_background = catalog.background.contains(&id);
                let priority = if is_background { Priority::Background } else { Priority::Interactive };
                let route = Route { id, targets, policy, is_own, priority, configured };
                Arc::make_mut(&mut models.routes).push(Arc::new(route));
            }
        }
        if let Some(default) = models.default.as_deref().filter(|id| !models.is_empty() && !models.has(id)) {
            tracing::warn!(default, "there is no such model or route, so the first model is the default");
        }
        models
    }
}

/// The models and routes that turns can be run with now.
pub(crate) struct Offered {
    defaults: Defaults,
    models: RwLock<Arc<Models>>,
    /// What callers may ask for, if not everything.
    allowed: RwLock<HashMap<CallerName, Arc<Allowed>>>,
}

impl Offered {
    pub(crate) fn new(defaults: Defaults, catalog: Catalog) -> Self {
        let models = RwLock::new(Arc::new(defaults.resolve(catalog)));
        Self { defaults, models, allowed: RwLock::default() }
    }

    pub(crate) fn now(&self) -> Arc<Models> {
        self.models.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns what a caller may ask for now.
    pub(crate) fn of(&self, caller: Option<&CallerName>) -> Arc<Models> {
        let allowed = self.allowed.read().unwrap_or_else(PoisonError::into_inner);
        let Some(allowed) = caller.and_then(|caller| allowed.get(caller)) else { return self.now() };
        Arc::new(Models { allowed: Some(allowed.clone()), ..(*self.now()).clone() })
    }

    /// Replaces what callers may ask for.
    pub(crate) fn allow(&self, all: HashMap<CallerName, Arc<Allowed>>) {
        *self.allowed.write().unwrap_or_else(PoisonError::into_inner) = all;
    }

    pub(crate) fn replace(&self, catalog: Catalog) {
        let mut models = self.defaults.resolve(catalog);
        models.names = self.now().names.clone();
        let models = Arc::new(models);
        *self.models.write().unwrap_or_else(PoisonError::into_inner) = models;
    }
}
