//! What turns ask: models, routes, retries, parameters.

use std::sync::Arc;

use everturn_kernel::{Provider, Settings};
use everturn_pacing::RetryPolicy;

use super::Builder;
use crate::{RelayProvider, catalog::Catalog, usage::Price};

impl Builder {
    /// Sets all models and routes at once, instead of those added before. [`offer`](crate::Orchestrator::offer) can replace them later.
    #[must_use]
    pub fn catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = catalog;
        self
    }

    /// Adds a model. Clients call it `credential/name`; the provider receives `name`. The first model is the default. It replaces a
    /// model with the same id.
    #[must_use]
    pub fn model(mut self, credential: &str, name: &str, provider: Arc<dyn Provider>) -> Self {
        self.catalog.model(credential, name, provider);
        self
    }

    /// Adds another credential for an existing model: turns switch to it when the first one is exhausted or rejected. `of` is
    /// the id of the model, as `credential/name`; an unknown id creates a separate model.
    #[must_use]
    pub fn credential(mut self, of: &str, credential: &str, provider: Arc<dyn Provider>) -> Self {
        self.catalog.credential(of, credential, provider);
        self
    }

    /// Adds a provider that calls are passed through to ([`pass_through`](crate::Orchestrator::pass_through)). For models of its
    /// list, add [`Self::model`] with its name as the credential, so that both share limits and routes.
    #[must_use]
    pub fn relay(mut self, provider: RelayProvider) -> Self {
        self.catalog.relay(provider);
        self
    }

    /// Adds a route: several models offered as one, called `route/name`. A turn starts with the first target and moves on as
    /// its policy decides ([`RetryPolicy::on_route`]).
    ///
    /// Targets are ids of models, as `credential/name`. Each is used once, with all its credentials. An unknown target counts
    /// as permanently failed. A route without targets is not offered. It replaces a route with the same name.
    #[must_use]
    pub fn route<T: Into<String>>(
        mut self,
        name: &str,
        targets: impl IntoIterator<Item = T>,
        policy: impl Into<RetryPolicy>,
    ) -> Self {
        let targets = targets.into_iter().map(Into::into).collect();
        self.catalog.route(name, targets, Some(policy.into()));
        self
    }

    /// Adds a route that uses the default schedule ([`Self::schedule`]). Unlike a route's own schedule, it follows global
    /// retry settings.
    #[must_use]
    pub fn plain_route<T: Into<String>>(mut self, name: &str, targets: impl IntoIterator<Item = T>) -> Self {
        let targets = targets.into_iter().map(Into::into).collect();
        self.catalog.route(name, targets, None);
        self
    }

    /// Sets the model or route of turns that name none, by its id. Default: the first model. An unknown id counts as the default, and
    /// logs a warning.
    #[must_use]
    pub fn default_model(mut self, id: impl Into<String>) -> Self {
        self.catalog.default_model(id);
        self
    }

    /// Sets the context window of a model, in tokens.
    #[must_use]
    pub fn context_window(mut self, model: impl Into<String>, tokens: u64) -> Self {
        self.catalog.context_window(model, tokens);
        self
    }

    /// Sets what turns do about failures by default: a preset such as [`Exponential`](crate::Exponential), or
    /// [`RetryPolicy::own`] with a schedule of your own. Retry settings override it. Default: [`Patient`](crate::Patient).
    #[must_use]
    pub fn schedule(mut self, policy: impl Into<RetryPolicy>) -> Self {
        self.policy = policy.into();
        self
    }

    /// Sets the token price of models whose id, `credential/model`, matches a pattern, in which `*` matches any number of
    /// characters. The most specific pattern counts. Used by usage reports and by limits in money.
    #[must_use]
    pub fn price(mut self, pattern: impl Into<String>, price: Price) -> Self {
        self.prices.add(pattern.into(), price);
        self
    }

    /// Sets whether failures are retried automatically. Retry settings override it. Default: `true`.
    #[must_use]
    pub fn auto_retry(mut self, enabled: bool) -> Self {
        self.retry.enabled = Some(enabled);
        self
    }

    /// Sets the models or routes to ask, in order, instead of a model or route that fails; all are given by their ids. An
    /// unknown one counts as permanently failed. Retry settings that set fallback chains replace all of them.
    #[must_use]
    pub fn fallback_chain<T: Into<String>>(
        mut self,
        of: impl Into<String>,
        chain: impl IntoIterator<Item = T>,
    ) -> Self {
        let chains = &mut self.retry.fallback_chains.get_or_insert_default().0;
        chains.insert(of.into(), chain.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the initial settings of every turn. Default: [`Settings::default`]. Unless bounded here, the waits of a step are
    /// limited to [`Patient::BUDGET`](crate::Patient::BUDGET), 8 h: see [`Self::unbounded_waits`]. Names of idempotent tools are filled in.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Removes the limit on the total wait of a step, unless [`Settings`] set one.
    #[must_use]
    pub fn unbounded_waits(mut self) -> Self {
        self.unbounded_waits = true;
        self
    }

    /// Makes turns wait until usage limits reset, and whenever a provider asks for a wait beyond the budget, whatever
    /// their schedule: see [`LongLimits::SitOut`](crate::LongLimits::SitOut). Default: such a failure ends the turn.
    #[must_use]
    pub fn sit_out_usage_limits(mut self) -> Self {
        self.sits_out_limits = true;
        self
    }

    /// Sets the system prompt of every request.
    #[must_use]
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.system_prompt = Some(text.into());
        self
    }

    /// Sets the maximum number of tokens in an answer.
    #[must_use]
    pub fn max_output_tokens(mut self, tokens: u32) -> Self {
        self.max_output_tokens = Some(tokens);
        self
    }
}
