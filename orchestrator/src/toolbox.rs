//! All tools: determines what a turn is offered when it begins.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use everturn_wire::{ToolInfo, ToolPolicy, ToolSourceInfo, Tools};
use futures_util::future::join_all;
use tokio::time::timeout;

use crate::{
    journal::Configured,
    panic::guarded,
    tool::{Policy, Tool, ToolSet, ToolSource},
};

/// How long a resuming turn waits for sources that may offer one of its tools.
const SETTLING: Duration = Duration::from_secs(30);

/// Number of [`Configured`] variants cached per list of tools. The cache is cleared when it is full.
const PLACES: usize = 16;

type Listed = Arc<[Arc<dyn Tool>]>;

/// The orchestrator's own tools, and further tool sources.
pub(crate) struct Toolbox {
    own: Vec<Arc<dyn Tool>>,
    sources: Vec<Arc<dyn ToolSource>>,
    /// The result for the sources' latest lists.
    made: Mutex<Made>,
}

struct Made {
    /// The lists that it was built from: one for each source, and which of the own tools were offered.
    of: Vec<Listed>,
    own: Vec<bool>,
    set: ToolSet,
    /// Turn configurations without these tools and with them; shared, because there may be a million turns.
    configured: Vec<(Arc<Configured>, Arc<Configured>)>,
}

impl Toolbox {
    pub(crate) fn new(own: Vec<Arc<dyn Tool>>, sources: Vec<Arc<dyn ToolSource>>) -> Self {
        let of: Vec<Listed> = sources.iter().map(|source| source.tools()).collect();
        let made = Made::new(&own, of);
        Self { own, sources, made: Mutex::new(made) }
    }

    /// The tools offered to a turn that begins now.
    pub(crate) fn current(&self) -> ToolSet {
        self.made(|made| made.set.clone())
    }

    /// The configuration of a turn that begins with these tools; the rest comes from `base`.
    pub(crate) fn defining(&self, base: Arc<Configured>, tools: &ToolSet) -> Arc<Configured> {
        if base.tools.as_deref().is_some_and(|names| tools.names().eq(names)) {
            return base;
        }
        let make = || Arc::new(Configured { tools: Some(owned(tools)), ..(*base).clone() });
        self.made(|made| {
            // The tools changed in the meantime: rare, so not cached.
            if !made.set.is(tools) {
                return make();
            }
            if let Some((_, known)) = made.configured.iter().find(|(of, _)| Arc::ptr_eq(of, &base)) {
                return known.clone();
            }
            let configured = make();
            if made.configured.len() == PLACES {
                made.configured.clear();
            }
            made.configured.push((base.clone(), configured.clone()));
            configured
        })
    }

    /// Whether a tool of this name is offered, or may be by a source that is starting or down.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.current().get(name).is_some() || self.sources.iter().any(|source| source.may_offer(name))
    }

    /// Returns the names of all sources.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().map(|source| source.name())
    }

    /// Waits for sources that may still offer tools of these names, up to [`SETTLING`].
    pub(crate) async fn settled(&self, names: &[String]) {
        let current = self.current();
        let missing: Vec<&String> = names.iter().filter(|name| current.get(name).is_none()).collect();
        let may_offer = |source: &&Arc<dyn ToolSource>| missing.iter().any(|name| source.may_offer(name));
        let awaited = self.sources.iter().filter(may_offer).map(|source| source.settled());
        // On a timeout, the turn continues without the missing tools.
        let _ = timeout(SETTLING, join_all(awaited)).await;
    }

    /// Whether [`Self::settled`] has nothing to wait for.
    pub(crate) fn is_fixed(&self) -> bool {
        self.sources.is_empty()
    }

    /// Describes to people which tools are offered, where they come from, and their policies.
    pub(crate) fn told(&self, policy: &dyn Fn(&str, &dyn Tool) -> Policy) -> Tools {
        let mut taken = BTreeSet::new();
        let own: Vec<_> = self.own.iter().filter(|tool| tool.is_offered()).cloned().collect();
        let (tools, _) = told(&own, &mut taken, policy);
        let source = |source: &Arc<dyn ToolSource>| {
            let (state, (tools, refused)) = (source.state(), told(&source.tools(), &mut taken, policy));
            let refused = refused.map(|name| format!("{name} is not offered: another tool has that name"));
            let message = [state.message, refused].into_iter().flatten().collect::<Vec<_>>().join("; ");
            ToolSourceInfo {
                name: source.name().to_owned(),
                status: state.status,
                message: Some(message).filter(|message| !message.is_empty()),
                login: state.login,
                tools,
            }
        };
        Tools { tools, sources: self.sources.iter().map(source).collect() }
    }

    /// Calls `then` with the result for the sources' current lists.
    fn made<T>(&self, then: impl FnOnce(&mut Made) -> T) -> T {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |(source, of): (&Arc<dyn ToolSource>, &Listed)| Arc::ptr_eq(&source.tools(), of);
        let changed = || {
            let is_own_same = self.own.iter().map(|tool| tool.is_offered()).eq(made.own.iter().copied());
            let is_unchanged = is_own_same && self.sources.iter().zip(&made.of).all(is_same);
            (!is_unchanged)
                .then(|| Made::new(&self.own, self.sources.iter().map(|source| source.tools()).collect()))
        };
        // If a tool panics, what was offered last still is.
        if let Some(changed) = guarded("a list of tools", changed).flatten() {
            *made = changed;
        }
        then(&mut made)
    }
}

impl Made {
    fn new(own: &[Arc<dyn Tool>], of: Vec<Listed>) -> Self {
        let offered = own.iter().filter(|tool| tool.is_offered()).cloned().collect::<Vec<_>>();
        let set = combined(&offered, &of);
        Self { set, of, own: own.iter().map(|tool| tool.is_offered()).collect(), configured: Vec::new() }
    }
}

/// Combines all tools. For equal names, the orchestrator's own tools win (the last of them), then the first source, so
/// no source can replace another's tool.
fn combined(own: &[Arc<dyn Tool>], sources: &[Listed]) -> ToolSet {
    let others = sources.iter().rev().flat_map(|tools| tools.iter().rev().cloned());
    ToolSet::new(others.chain(own.iter().cloned()).collect())
}

fn owned(tools: &ToolSet) -> Vec<String> {
    tools.names().map(str::to_owned).collect()
}

/// Descriptions of the tools by name, and the name of one that cannot be offered because its name is taken.
fn told(
    tools: &[Arc<dyn Tool>],
    taken: &mut BTreeSet<String>,
    policy: &dyn Fn(&str, &dyn Tool) -> Policy,
) -> (Vec<ToolInfo>, Option<String>) {
    let (mut told, mut refused) = (Vec::new(), None);
    for tool in ToolSet::new(tools.to_vec()).iter() {
        let info = info(&**tool, policy);
        match taken.insert(info.name.clone()) {
            true => told.push(info),
            false => refused = Some(info.name),
        }
    }
    (told, refused)
}

fn info(tool: &dyn Tool, policy: &dyn Fn(&str, &dyn Tool) -> Policy) -> ToolInfo {
    let spec = tool.spec();
    let policy = match policy(&spec.name, tool) {
        Policy::Allow => ToolPolicy::Allow,
        Policy::Ask => ToolPolicy::Ask,
        Policy::Review => ToolPolicy::Review,
        Policy::Deny => ToolPolicy::Deny,
    };
    ToolInfo {
        name: spec.name,
        description: spec.description,
        input_schema: spec.parameters,
        policy,
        annotations: tool.annotations(),
    }
}

#[cfg(test)]
mod tests;
