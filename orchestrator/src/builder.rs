//! The orchestrator's builder.

mod build;

use std::{path::PathBuf, sync::Arc, time::Duration};

use everturn_kernel::{Provider, Settings};
use everturn_pacing::RetryPolicy;
use everturn_wire::{RequiredReport, RetrySettings};

use crate::{
    Clock, Cluster, Compactor, Journal, MemoryJournal, Observer, Orchestrator, Policy, RelayProvider,
    Reviewer, StateStore, SystemClock, Tool, ToolSource,
    catalog::Catalog,
    compaction::Compactions,
    health::SharedHealth,
    memory::{Memory, MemoryLimits},
    pacing::Pacing,
    permission::Permissions,
    report::RequiredReports,
    route::PREFIX,
    usage::{Price, Prices, UsageBook},
};

/// Default lifetime of ephemeral conversations.
const KEEP_EPHEMERAL: Duration = Duration::from_secs(60 * 60);

/// Builds an [`Orchestrator`]. Everything except the models has a default.
pub struct Builder {
    catalog: Catalog,
    tools: Vec<Arc<dyn Tool>>,
    tool_sources: Vec<Arc<dyn ToolSource>>,
    policy: RetryPolicy,
    /// Whether failures are retried, and the fallback chains, if no retry settings say otherwise.
    retry: RetrySettings,
    journal: Arc<dyn Journal>,
    state: Option<Arc<dyn StateStore>>,
    observer: Option<Arc<dyn Observer>>,
    clock: Arc<dyn Clock>,
    settings: Settings,
    unbounded_waits: bool,
    sits_out_limits: bool,
    system_prompt: Option<String>,
    max_output_tokens: Option<u32>,
    keep_ephemeral: Duration,
    spool: Option<PathBuf>,
    max_tool_result: usize,
    max_live_output: usize,
    permissions: Permissions,
    reviewer: Option<Arc<dyn Reviewer>>,
    /// Id of the model or route that reviews tool calls.
    review_model: Option<String>,
    reports: RequiredReports,
    usual_max_steps: Option<u32>,
    compactions: Compactions,
    /// Whether long histories are summarized, and by which model or route; `None` = the turn's own.
    compacts: Option<Option<String>>,
    /// Shared with the reviewers' orchestrator.
    health: Arc<SharedHealth>,
    /// Shared with the reviewers' orchestrator, like the health.
    memory: Arc<Memory>,
    pacing: Arc<Pacing>,
    usage: Arc<UsageBook>,
    prices: Prices,
    /// Whether its turns are reviews.
    for_reviews: bool,
    cluster: Option<Cluster>,
}

/// Default size limit of a tool result, in bytes: about 64,000 tokens, far more than is useful.
const MAX_TOOL_RESULT: usize = 256 << 10;

/// Default limit on the live output of a call, in bytes: about 10,000 lines.
const MAX_LIVE_OUTPUT: usize = 1 << 20;

impl Orchestrator {
    /// Creates a builder without models.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Builder {
    fn new() -> Self {
        Self {
            catalog: Catalog::new(),
            tools: Vec::new(),
            tool_sources: Vec::new(),
            policy: RetryPolicy::default(),
            retry: RetrySettings::default(),
            journal: Arc::new(MemoryJournal::new()),
            state: None,
            observer: None,
            clock: Arc::new(SystemClock::new()),
            settings: Settings::default(),
            unbounded_waits: false,
            sits_out_limits: false,
            system_prompt: None,
            max_output_tokens: None,
            keep_ephemeral: KEEP_EPHEMERAL,
            spool: None,
            max_tool_result: MAX_TOOL_RESULT,
            max_live_output: MAX_LIVE_OUTPUT,
            permissions: Permissions::default(),
            reviewer: None,
            review_model: None,
            reports: RequiredReports::default(),
            usual_max_steps: None,
            compactions: Compactions::default(),
            compacts: None,
            health: Arc::default(),
            memory: Arc::default(),
            pacing: Arc::default(),
            usage: Arc::default(),
            prices: Prices::default(),
            for_reviews: false,
            cluster: None,
        }
    }

    /// Sets all models and routes at once, instead of those added before. [`Orchestrator::offer`] can replace them later.
    #[must_use]
    pub fn catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = catalog;
        self
    }

    /// Adds a model. Clients call it `credential/name`; the provider receives `name`. The first model is the default.
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

    /// Adds a provider that calls are passed through to ([`Orchestrator::pass_through`]). For models of its list, add
    /// [`Self::model`] with its name as the credential, so that both share limits and routes.
    #[must_use]
    pub fn relay(mut self, provider: RelayProvider) -> Self {
        self.catalog.relay(provider);
        self
    }

    /// Adds a route: several models offered as one, called `route/name`. A turn starts with the first target and moves on as
    /// its policy decides ([`RetryPolicy::on_route`]).
    ///
    /// Targets are ids of models, as `credential/name`. Each is used once, with all its credentials. An unknown target counts
    /// as permanently failed. A route without targets is not offered.
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

    /// Sets the model or route of turns that name none. Default: the first model.
    #[must_use]
    pub fn default_model(mut self, id: impl Into<String>) -> Self {
        self.catalog.default_model(id);
        self
    }

    /// Adds a tool. It replaces a tool with the same name.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds a source of tools that may change at run time. A turn uses the tools available when it begins. On a name clash,
    /// tools added with [`Self::tool`] win, then the source added first.
    #[must_use]
    pub fn tool_source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.tool_sources.push(source);
        self
    }

    /// Sets the policy for tools whose name matches a pattern, in which `*` matches any number of characters. The most
    /// specific pattern wins: an exact name, then the longest pattern, then the stricter policy. Default: the tool's own
    /// ([`Tool::policy`]).
    #[must_use]
    pub fn tool_policy(mut self, pattern: impl Into<String>, policy: Policy) -> Self {
        self.permissions.rules.add(pattern.into(), policy);
        self
    }

    /// Sets how long a call waits for a person's approval before it is denied. Default: no limit.
    #[must_use]
    pub fn approval_timeout(mut self, wait: Duration) -> Self {
        self.permissions.approval_timeout = Some(wait);
        self
    }

    /// Sets the reviewer for tools with [`Policy::Review`]. Default: none, so every review fails.
    #[must_use]
    pub fn reviewer(mut self, reviewer: Arc<dyn Reviewer>) -> Self {
        self.reviewer = Some(reviewer);
        self
    }

    /// Lets a model or route, given by its id, review tools with [`Policy::Review`]. It runs in separate hidden conversations
    /// ([`Orchestrator::hidden`]), without tools or retries, and receives the user's message and the full call.
    #[must_use]
    pub fn review_with(mut self, model: impl Into<String>) -> Self {
        self.review_model = Some(model.into());
        self
    }

    /// Requires every turn to end with a report that matches a schema, submitted through the tool `final_report`: see
    /// [`StartTurn::final_report`](crate::StartTurn::final_report). Routes and messages may override it. An invalid schema
    /// accepts every report and logs a warning.
    #[must_use]
    pub fn final_report(mut self, report: RequiredReport) -> Self {
        self.reports.rest = Some(Arc::new(report));
        self
    }

    /// Requires turns on the named route to end with a report.
    #[must_use]
    pub fn route_report(mut self, route: &str, report: RequiredReport) -> Self {
        self.reports.routes.insert(format!("{PREFIX}{route}"), Arc::new(report));
        self
    }

    /// Sets the maximum number of steps of turns that need no report, unless [`Settings`] set one. Turns that must report
    /// get 10.
    #[must_use]
    pub fn usual_max_steps(mut self, steps: u32) -> Self {
        self.usual_max_steps = Some(steps);
        self
    }

    /// Summarizes the older part of a history that is too long for its model, using the model of the turn. The log is kept
    /// in full, and people still see all of it. Default: such a turn fails with [`Category::ContextOverflow`].
    ///
    /// [`Category::ContextOverflow`]: everturn_wire::Category::ContextOverflow
    #[must_use]
    pub fn compact(mut self) -> Self {
        self.compacts = Some(None);
        self
    }

    /// Like [`Self::compact`], but the given model or route writes the summary.
    #[must_use]
    pub fn compact_with(mut self, model: impl Into<String>) -> Self {
        self.compacts = Some(Some(model.into()));
        self
    }

    /// Like [`Self::compact`], but your own code writes the summary.
    #[must_use]
    pub fn compactor(mut self, compactor: Arc<dyn Compactor>) -> Self {
        (self.compacts, self.compactions.compactor) = (Some(None), Some(compactor));
        self
    }

    /// Summarizes before a history overflows: once it exceeds this share of the model's context window (0 to 1; see
    /// [`Self::context_window`]). The size is estimated from the last token counts and the text added since.
    #[must_use]
    pub fn compact_ahead(mut self, share: f64) -> Self {
        self.compactions.ahead = Some(share);
        self
    }

    /// Sets the context window of a model, in tokens.
    #[must_use]
    pub fn context_window(mut self, model: impl Into<String>, tokens: u64) -> Self {
        self.catalog.context_window(model, tokens);
        self
    }

    /// Sets the deadline of a review, including all attempts. Default: 90 s.
    #[must_use]
    pub fn review_timeout(mut self, within: Duration) -> Self {
        self.permissions.review.within = within;
        self
    }

    /// Denies calls whose review fails. Default: a person is asked.
    #[must_use]
    pub fn deny_without_review(mut self) -> Self {
        self.permissions.review.falls_back_to_person = false;
        self
    }

    /// Sets what turns do about failures by default: a preset such as [`Exponential`](crate::Exponential), or
    /// [`RetryPolicy::own`] with a schedule of your own. Retry settings override it. Default: [`Patient`](crate::Patient).
    #[must_use]
    pub fn schedule(mut self, policy: impl Into<RetryPolicy>) -> Self {
        self.policy = policy.into();
        self
    }

    /// Sets what the tokens of the models cost whose id, `credential/model`, matches a pattern, in which `*` matches any number of
    /// characters. The most specific pattern counts. Only reports of usage have it.
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

    /// Sets the journal that stores conversations. Default: in memory.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = journal;
        self
    }

    /// Shares the journal with other nodes. The journal must be one that they all use; see [`Cluster`]. Default: this process
    /// is the only one that writes to the journal.
    #[must_use]
    pub fn cluster(mut self, cluster: Cluster) -> Self {
        self.cluster = Some(cluster);
        self
    }

    /// Adds an observer of every event and provider call in this process. Default: none.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Sets the store for retry settings and target health (which targets are limited, and which answered recently). Default:
    /// in memory. Read by [`Orchestrator::resume`].
    #[must_use]
    pub fn state(mut self, store: Arc<dyn StateStore>) -> Self {
        self.state = Some(store);
        self
    }

    /// Sets the clock. Default: the system clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
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

    /// Sets the limits on the memory that conversations take.
    #[must_use]
    pub fn memory_limits(mut self, limits: MemoryLimits) -> Self {
        self.memory = Arc::new(Memory::new(limits));
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

    /// Sets how long an ephemeral conversation is kept after its last turn before [`Orchestrator::drop_ephemeral`] removes it.
    /// Default: one hour.
    #[must_use]
    pub fn keep_ephemeral(mut self, keep: Duration) -> Self {
        self.keep_ephemeral = keep;
        self
    }

    /// Sets the directory for bodies of calls that begin to wait while the bodies of all calls take more than 128 MiB of memory:
    /// files without a name, up to 4 GiB in all. Default: bodies stay in memory. Calls beyond 256 MiB of it are refused,
    /// with a directory beyond 192 MiB; the rest is for bodies that are read back.
    #[must_use]
    pub fn spool(mut self, directory: impl Into<PathBuf>) -> Self {
        self.spool = Some(directory.into());
        self
    }

    /// Sets the size limit of a tool result, in bytes. Longer results keep their beginning and end, with a line in between
    /// that says how much was omitted. Default: 256 KiB.
    #[must_use]
    pub fn max_tool_result(mut self, bytes: usize) -> Self {
        self.max_tool_result = bytes;
        self
    }

    /// Sets the limit on a call's live output, in bytes. The rest is dropped, and subscribers are told so. Default: 1 MiB.
    #[must_use]
    pub fn max_live_output(mut self, bytes: usize) -> Self {
        self.max_live_output = bytes;
        self
    }
}
