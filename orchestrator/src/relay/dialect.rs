//! What can be asked for in one dialect.

use super::choice::of_credential;
use crate::{
    model::{Choice, Models},
    route::PREFIX,
    upstream::Dialect,
};

/// A model or route that a caller of some dialect can ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfferedModel {
    /// The provider's own name of the model, or the id of the route.
    pub name: String,
    /// Its context window in tokens, if known.
    pub context_window: Option<u64>,
}

/// Returns what a caller of this dialect can ask for, each name once.
pub(crate) fn models_of(models: &Models, dialect: Dialect) -> Vec<OfferedModel> {
    let mut offered: Vec<OfferedModel> = Vec::new();
    let of_providers =
        models.relays.iter().filter(|provider| provider.dialect == dialect).flat_map(|provider| {
            let id = |name: &String| (name.clone(), format!("{}/{name}", provider.name));
            provider.models.iter().map(id)
        });
    let ids = models.ids().into_iter();
    let of_routes =
        ids.filter(|id| id.starts_with(PREFIX) && speaks(models, id, dialect)).map(|id| (id.clone(), id));
    for (name, id) in of_providers.chain(of_routes).filter(|(_, id)| models.allows(id)) {
        if !offered.iter().any(|known| known.name == name) {
            offered.push(OfferedModel { name, context_window: models.windows.get(&id).copied() });
        }
    }
    offered
}

/// Whether all that a model's name stands for can be asked in this dialect.
pub(crate) fn speaks(models: &Models, asked: &str, dialect: Dialect) -> bool {
    let providers = &models.relays;
    let by_credential =
        |name: &str| of_credential(providers, name).is_some_and(|(provider, _)| provider.dialect == dialect);
    let by_dialect = || providers.iter().filter(|provider| provider.dialect == dialect);
    let known = models.has(asked).then(|| models.choose(Some(asked), None));
    match known {
        Some(Ok(Choice::Model(model))) => return by_credential(&model.target.credential),
        Some(Ok(Choice::Route(route))) => {
            return route.targets.iter().all(|target| by_credential(&target.credential));
        }
        Some(Err(_)) => return false,
        None => {}
    }
    if by_dialect().any(|provider| provider.models.iter().any(|model| model == asked)) {
        return true;
    }
    let ids = models.ids();
    let is_of_other = ids.iter().any(|id| id.split_once('/').is_some_and(|(_, name)| name == asked));
    let named = asked.split_once('/').map(|(provider, _)| provider);
    let is_named = |provider: &&str| ids.iter().any(|id| id.split('/').next() == Some(provider));
    match named {
        _ if is_of_other || asked.starts_with(PREFIX) => false,
        Some(name) if providers.iter().any(|provider| provider.name == name) => by_credential(name),
        // One whose calls cannot be passed through.
        Some(name) if is_named(&name) => false,
        _ => by_dialect().next().is_some(),
    }
}
