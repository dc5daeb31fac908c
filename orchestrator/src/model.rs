//! Models and routes: what a turn can be run with.

mod allowed;

use std::{collections::BTreeMap, sync::Arc};

use everturn_kernel::{Provider, ProviderInfo, Target};
use everturn_wire::{Category, Failure, Parameters, Priority};

pub(crate) use allowed::Allowed;

use crate::{
    Error,
    names::Names,
    panic::guarded,
    route::{self, Route},
    upstream::RelayProvider,
};

/// Maximum number of characters shown of an unknown name.
const SHOWN: usize = 128;

/// A model that turns can be run with, with one credential.
pub(crate) struct Model {
    /// `credential/model`: how clients name it.
    pub(crate) id: String,
    /// How the provider names it.
    pub(crate) name: String,
    pub(crate) provider: Arc<dyn Provider>,
    /// The id of the model that this is another credential for. Clients ask for that one.
    pub(crate) sibling_of: Option<String>,
    /// The target of its calls. Siblings have the same model. Equally named models at different hosts do not, because
    /// an overload of one says nothing about the others.
    pub(crate) target: Target,
}

impl Model {
    pub(crate) fn new(
        credential: &str,
        name: &str,
        provider: Arc<dyn Provider>,
        sibling_of: Option<String>,
    ) -> Self {
        let id = format!("{credential}/{name}");
        let target = Target {
            name: id.clone(),
            credential: credential.to_owned(),
            model: sibling_of.clone().unwrap_or_else(|| id.clone()),
        };
        Self { id, name: name.to_owned(), provider, sibling_of, target }
    }

    /// Returns the description of its API for observers; an empty one if the provider panics.
    pub(crate) fn about(&self) -> ProviderInfo {
        guarded("the provider", || self.provider.about()).unwrap_or_default()
    }

    /// Whether it is the model with this id, with any credential.
    fn is_of(&self, id: &str) -> bool {
        self.sibling_of.as_deref().unwrap_or(&self.id) == id
    }
}

/// What a turn is run with: one model, or a route over several.
#[derive(Clone)]
pub(crate) enum Choice {
    Model(Arc<Model>),
    Route(Arc<Route>),
}

impl Choice {
    /// How clients name it.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Model(model) => &model.id,
            Self::Route(route) => &route.id,
        }
    }

    /// Returns the priority of its calls.
    pub(crate) fn priority(&self) -> Priority {
        self.as_route().map_or_else(Priority::default, |route| route.priority)
    }

    /// Returns the route, if it is one.
    pub(crate) fn as_route(&self) -> Option<&Route> {
        match self {
            Self::Model(_) => None,
            Self::Route(route) => Some(route),
        }
    }
}

/// All models and routes. Cheap to clone, as each request of a caller that may use some only does.
#[derive(Clone, Default)]
pub(crate) struct Models {
    pub(crate) models: Arc<Vec<Arc<Model>>>,
    /// A route with the id of a model takes precedence over the model.
    pub(crate) routes: Arc<Vec<Arc<Route>>>,
    /// The id of the default. `None` = the first model.
    pub(crate) default: Option<String>,
    /// The providers that calls are passed through to.
    pub(crate) relays: Arc<Vec<RelayProvider>>,
    /// Credentials whose models are not known: any name is passed on.
    pub(crate) unlisted: Arc<Vec<(String, Arc<dyn Provider>)>>,
    /// Context windows in tokens, by model id.
    pub(crate) windows: Arc<BTreeMap<String, u64>>,
    /// Which of them can be asked for; `None` = all. Targets of a route need not be among them.
    pub(crate) allowed: Option<Arc<Allowed>>,
    /// The models used so far that are not listed.
    pub(crate) names: Arc<Names>,
}

impl Models {
    pub(crate) fn is_empty(&self) -> bool {
        self.models.is_empty() && self.unlisted.is_empty()
    }

    /// Returns all names that clients may ask for, the default first.
    pub(crate) fn ids(&self) -> Vec<String> {
        let models = self.models.iter().filter(|model| model.sibling_of.is_none()).map(|model| &model.id);
        let routes = self.routes.iter().map(|route| &route.id).filter(|id| id.starts_with(route::PREFIX));
        let mut ids: Vec<String> = models.chain(routes).filter(|id| self.allows(id)).cloned().collect();
        if let Some(at) = ids.iter().position(|id| Some(id) == self.default.as_ref()) {
            ids[..=at].rotate_right(1);
        }
        ids
    }

    /// Returns the targets of a model: one for each of its credentials.
    pub(crate) fn targets(&self, id: &str) -> Vec<Target> {
        self.models.iter().filter(|model| model.is_of(id)).map(|model| model.target.clone()).collect()
    }

    /// Returns the targets of these models or routes, each once. An unknown id becomes a target whose calls fail.
    pub(crate) fn targets_of(&self, ids: &[String]) -> Vec<Target> {
        let mut targets: Vec<Target> = Vec::new();
        for id in ids {
            let route = self.routes.iter().find(|route| route.id == *id);
            let mut found = route.map_or_else(|| self.targets(id), |route| route.targets.clone());
            if found.is_empty() {
                found.extend(self.unlisted(id).map(|model| model.target.clone()));
            }
            if found.is_empty() {
                let (credential, name) = id.split_once('/').unwrap_or((id, id));
                found.push(Target {
                    name: id.clone(),
                    credential: credential.to_owned(),
                    model: name.to_owned(),
                });
            }
            for target in found {
                if !targets.iter().any(|known| known.name == target.name) {
                    targets.push(target);
                }
            }
        }
        targets
    }

    /// Whether this can be asked for, if it exists.
    pub(crate) fn allows(&self, id: &str) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.has(id))
    }

    /// Whether there is a model or route with this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.find(id).is_some()
    }

    /// Returns the requested model or route. The provider's name of a model is enough if no other model has it. Without a request: the last one used, if it still exists, else the
    /// default.
    pub(crate) fn choose(&self, asked: Option<&str>, last: Option<&str>) -> Result<Choice, Error> {
        let chosen = match asked {
            Some(asked) => self.find(asked).or_else(|| self.find_by_name(asked)),
            None => {
                let of = |id: Option<&str>| id.and_then(|id| self.find(id));
                // What a caller may ask for may not include the first model.
                let first = || of(self.ids().first().map(String::as_str));
                of(last).or_else(|| of(self.default.as_deref())).or_else(first)
            }
        };
        let is_bounded = |choice: &Choice| match choice {
            Choice::Model(model) => self.lists(&model.id) || self.names.takes(&model.id),
            Choice::Route(_) => true,
        };
        chosen.filter(is_bounded).ok_or_else(|| Error::UnknownModel {
            model: asked.unwrap_or_default().chars().take(SHOWN).collect(),
            known: self.ids(),
        })
    }

    /// Whether there is this model, route or target.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.find(id).is_some() || self.target(id).is_some()
    }

    /// Refuses parameters that one of the targets does not support.
    pub(crate) fn check_parameters(&self, choice: &Choice, parameters: &Parameters) -> Result<(), Error> {
        if parameters.names().is_empty() {
            return Ok(());
        }
        let asked = match choice {
            Choice::Model(model) => vec![model.clone()],
            // Targets that no longer exist are not checked.
            Choice::Route(route) => {
                route.targets.iter().filter_map(|target| self.asked(choice, Some(target)).ok()).collect()
            }
        };
        for model in asked {
            let names = model.provider.refuses(parameters);
            if !names.is_empty() {
                return Err(Error::UnsupportedParameter { names, target: model.id.clone() });
            }
        }
        Ok(())
    }

    /// Returns the model to call for a turn's target.
    ///
    /// # Errors
    /// When it is no longer configured. To the turn, its target has failed permanently.
    pub(crate) fn asked(&self, choice: &Choice, target: Option<&Target>) -> Result<Arc<Model>, Failure> {
        // Looked up anew, because a key may have been replaced or removed since the turn began.
        let id = target.map_or(choice.id(), |target| &target.name);
        self.model(id).ok_or_else(|| {
            let of_route = if choice.as_route().is_some() { " of this route" } else { "" };
            let text = format!("the model {id}{of_route} is not configured");
            Failure::new(Category::NotFound, false, text)
        })
    }

    /// Returns the target with this name.
    pub(crate) fn target(&self, name: &str) -> Option<Target> {
        self.model(name).map(|model| model.target.clone())
    }

    fn lists(&self, id: &str) -> bool {
        self.models.iter().any(|model| model.id == id)
    }

    fn model(&self, id: &str) -> Option<Arc<Model>> {
        let listed = self.models.iter().find(|model| model.id == id).cloned();
        listed.or_else(|| self.unlisted(id))
    }

    /// Returns the model with this id of a credential whose models are not known.
    fn unlisted(&self, id: &str) -> Option<Arc<Model>> {
        let (credential, name) = id.split_once('/').filter(|(_, name)| !name.trim().is_empty())?;
        let (credential, provider) = self.unlisted.iter().find(|(known, _)| known == credential)?;
        Some(Arc::new(Model::new(credential, name, provider.clone(), None)))
    }

    /// Returns the only model that its provider calls this.
    fn find_by_name(&self, name: &str) -> Option<Choice> {
        let mut named = self.models.iter().filter(|model| model.sibling_of.is_none() && model.name == name);
        match (named.next(), named.next()) {
            (Some(model), None) if self.allows(&model.id) => Some(Choice::Model(model.clone())),
            _ => None,
        }
    }

    fn find(&self, id: &str) -> Option<Choice> {
        if !self.allows(id) {
            return None;
        }
        let route = self.routes.iter().find(|route| route.id == id).cloned().map(Choice::Route);
        route.or_else(|| self.model(id).map(Choice::Model))
    }
}
