//! Who is asked, by which rules.

use std::{cell::LazyCell, sync::Arc};

use everturn_kernel::{Millis, Settings, Target};
use everturn_pacing::{LongLimits, RetryPolicy};
use everturn_wire::{OnQuota, Priority, RetrySettings};

use super::{RelayCall, RelayError, key};
use crate::{
    model::{Choice, Models},
    names::Names,
    retry_settings::Set,
    route::PREFIX,
    session::Ports,
    upstream::{RelayProvider, Upstream},
};

/// Maximum number of characters shown of an unknown name.
const SHOWN: usize = 128;

/// Stands for all further models that no configuration lists.
const UNLISTED: &str = "*";

/// One target that a call may ask.
#[derive(Clone)]
pub(super) struct Leg {
    pub(super) target: Target,
    pub(super) upstream: Arc<dyn Upstream>,
    /// The provider's name of the model, if the request's must be replaced.
    pub(super) renamed: Option<String>,
}

/// Who is asked, by which rules.
pub(super) struct Chosen {
    /// Never empty.
    pub(super) legs: Vec<Leg>,
    pub(super) policy: RetryPolicy,
    pub(super) settings: Settings,
    pub(super) whole: bool,
    /// That of its route.
    pub(super) priority: Priority,
    /// The model as the caller named it, for people.
    pub(super) model: String,
}

/// Returns the provider that has a credential.
pub(super) fn of_credential<'a>(
    providers: &'a [RelayProvider],
    credential: &str,
) -> Option<(&'a RelayProvider, &'a Arc<dyn Upstream>)> {
    providers.iter().find_map(|provider| {
        let mut credentials = provider.credentials.iter();
        credentials.find(|(name, _)| name == credential).map(|(_, upstream)| (provider, upstream))
    })
}

/// Returns the providers that speak one of the dialects, the preferred ones first.
fn speaking<'a>(
    providers: &'a [RelayProvider],
    call: &'a RelayCall,
) -> impl Iterator<Item = &'a RelayProvider> {
    let named = |provider: &&RelayProvider| call.provider.as_ref().is_none_or(|name| provider.name == *name);
    let any = call.dialects.is_empty().then_some(None);
    let wanted = any.into_iter().chain(call.dialects.iter().copied().map(Some));
    wanted
        .flat_map(|dialect| {
            providers.iter().filter(move |it| dialect.is_none_or(|wanted| it.dialect == wanted))
        })
        .filter(named)
}

/// Chooses the targets of a call and its rules.
///
/// # Errors
/// When nobody can be asked.
pub(super) fn choose(
    ports: &Ports,
    names: &Names,
    call: &RelayCall,
    now: Millis,
) -> Result<Chosen, RelayError> {
    let asked = call.model.as_ref().map(|model| model.name.as_str());
    let models = ports.models.of(call.caller.as_ref());
    if models.allowed.is_some() && call.model.as_ref().is_some_and(|model| model.is_ambiguous) {
        let why = "this caller may use some models only, and the request names one in more than one place: leave one field `model`";
        return Err(RelayError::NoTarget(why.to_owned()));
    }
    let (provider, choice, mut legs) = match known(&models, call, asked)? {
        Some(known) => known,
        None => {
            let found = unlisted(&models.relays, names, call, asked)?;
            check_allowed(&models, found.0, asked)?;
            found
        }
    };
    let caller = LazyCell::new(|| key::caller(&call.request.headers, call.request.query.as_deref()));
    for leg in &mut legs {
        if leg.upstream.is_of_caller() {
            // One caller's limit or key says nothing about another's, nor about the server's.
            let name = format!("{}#{}", leg.target.name, *caller);
            let is_taken = names.takes(&name);
            leg.target.credential.push('#');
            leg.target.credential.push_str(if is_taken { &caller } else { UNLISTED });
            if is_taken {
                leg.target.name = name;
            }
        }
    }
    let quota = call.quota.or(provider.quota);
    let own = quota.map(|quota| RetrySettings { quota: Some(quota), ..RetrySettings::default() });
    let global = ports.retry.global.get();
    let set = Set { message: own.as_ref(), conversation: None, global: global.as_deref() };
    let base = choice.as_ref().map_or_else(|| ports.plain_base(), |choice| ports.base(choice));
    let begun = ports.retry.begin(&base, set);
    let policy = if legs.len() > 1 { begun.policy.on_route() } else { begun.policy };
    let policy = if quota == Some(OnQuota::Fail) { policy.with(LongLimits::GiveUp) } else { policy };
    let targets =
        if legs.len() > 1 { legs.iter().map(|leg| leg.target.clone()).collect() } else { Vec::new() };
    let settings = Settings {
        targets,
        max_steps: Some(1),
        budget: call
            .budget
            .into_iter()
            .chain(provider.budget)
            .fold(ports.settings.budget, |budget, most| budget.at_most(most, now)),
        compaction: None,
        final_report: None,
        ..Settings::default()
    };
    let whole = call.request.whole || provider.whole;
    let model = asked.unwrap_or_default().chars().take(SHOWN).collect();
    let priority = choice.as_ref().map_or_else(Priority::default, Choice::priority);
    Ok(Chosen { legs, policy, settings, whole, priority, model })
}

type Found<'a> = (&'a RelayProvider, Option<Choice>, Vec<Leg>);

/// Returns the targets of a model or route that is configured.
fn known<'a>(
    models: &'a Models,
    call: &'a RelayCall,
    asked: Option<&str>,
) -> Result<Option<Found<'a>>, RelayError> {
    let Some(asked) = asked else { return Ok(None) };
    let providers = &models.relays;
    // The provider's own name is enough, even if providers of other dialects use it as well.
    let by_name = || {
        let lists = |provider: &&RelayProvider| provider.models.iter().any(|model| model == asked);
        speaking(providers, call).find(lists).map(|provider| format!("{}/{asked}", provider.name))
    };
    let id = if models.has(asked) { Some(asked.to_owned()) } else { by_name() };
    let Some(choice) = id.and_then(|id| models.choose(Some(&id), None).ok()) else { return Ok(None) };
    let targets = match &choice {
        Choice::Model(model) => vec![model.target.clone()],
        Choice::Route(route) => route.targets.clone(),
    };
    let mut first = None;
    let mut legs = Vec::with_capacity(targets.len());
    for target in targets {
        let Ok(model) = models.asked(&choice, Some(&target)) else { continue };
        let found = of_credential(providers, &target.credential);
        let Some((provider, upstream)) = found.filter(|(provider, _)| fits(provider, call)) else {
            tracing::info!(
                target = target.name,
                "a target is skipped, because it does not speak the caller's protocol"
            );
            continue;
        };
        first = first.or(Some(provider));
        let renamed = (model.name != asked).then(|| model.name.clone());
        legs.push(Leg { target, upstream: upstream.clone(), renamed });
    }
    match first {
        Some(provider) => Ok(Some((provider, Some(choice), legs))),
        None if asked.starts_with(PREFIX) => {
            Err(RelayError::NoTarget(format!("no target of {asked} speaks the protocol of this path")))
        }
        None => Ok(None),
    }
}

/// # Errors
/// When the caller may not ask for this model of a provider, or for some models only, and names none.
fn check_allowed(models: &Models, provider: &RelayProvider, asked: Option<&str>) -> Result<(), RelayError> {
    if models.allowed.is_none() {
        return Ok(());
    }
    let known = models.ids().join(", ");
    let Some(asked) = asked else {
        let why = format!("this caller may use these models only, and the request names none: {known}");
        return Err(RelayError::NoTarget(why));
    };
    let own = asked.strip_prefix(&format!("{}/", provider.name)).unwrap_or(asked);
    if models.allows(&format!("{}/{own}", provider.name)) {
        return Ok(());
    }
    let shown: String = asked.chars().take(SHOWN).collect();
    Err(RelayError::NoTarget(format!("unknown model {shown:?}; known models: {known}")))
}

/// Returns the targets of a model that no configuration lists: the default provider knows.
fn unlisted<'a>(
    providers: &'a [RelayProvider],
    names: &Names,
    call: &'a RelayCall,
    asked: Option<&str>,
) -> Result<Found<'a>, RelayError> {
    let named = asked.and_then(|asked| {
        let (provider, name) = asked.split_once('/')?;
        let provider = speaking(providers, call).find(|known| known.name == provider)?;
        Some((provider, Some(name.to_owned())))
    });
    let lists = |provider: &&RelayProvider| provider.models.iter().any(|model| Some(model.as_str()) == asked);
    let listing = || speaking(providers, call).find(lists);
    let default = || listing().or_else(|| speaking(providers, call).next()).map(|provider| (provider, None));
    let (provider, renamed) = named.or_else(default).ok_or_else(|| {
        RelayError::NoTarget(match &call.provider {
            Some(name) => format!("no provider is named {}", name.chars().take(SHOWN).collect::<String>()),
            None => "no configured provider speaks the protocol of this path: add one to the configuration"
                .to_owned(),
        })
    })?;
    let name = renamed.as_deref().or(asked).unwrap_or_default();
    let name = if names.takes(&format!("{}/{name}", provider.name)) { name } else { UNLISTED };
    let id = format!("{}/{name}", provider.name);
    let legs = provider.credentials.iter().map(|(credential, upstream)| Leg {
        target: Target {
            name: format!("{credential}/{name}"),
            credential: credential.clone(),
            model: id.clone(),
        },
        upstream: upstream.clone(),
        renamed: renamed.clone(),
    });
    Ok((provider, None, legs.collect()))
}

fn fits(provider: &RelayProvider, call: &RelayCall) -> bool {
    let speaks = call.dialects.is_empty() || call.dialects.contains(&provider.dialect);
    speaks && call.provider.as_ref().is_none_or(|name| provider.name == *name)
}
