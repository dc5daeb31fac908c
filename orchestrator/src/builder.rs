//! Putting an orchestrator together.

mod build;

use std::{sync::Arc, time::Duration};

use everturn_kernel::{Provider, Schedule, Settings};
use everturn_wire::RequiredReport;

use crate::{
    Clock, Compactor, Journal, MemoryJournal, Observer, Orchestrator, Patient, Policy, Reviewer, StateStore,
    SystemClock, Tool, ToolSource,
    compaction::Compactions,
    health::SharedHealth,
    model::{Model, Models},
    permission::Permissions,
    report::RequiredReports,
    route::PREFIX,
};

/// How long ephemeral conversations are kept unless told otherwise.
const KEEP_EPHEMERAL: Duration = Duration::from_secs(60 * 60);

type SharedSchedule = Arc<dyn Schedule + Send + Sync>;

/// Puts an [`Orchestrator`] together. Everything has a default but the models.
pub struct Builder {
    models: Models,
    /// The ids of routes, their targets by id, and their schedules; `None` = that of all turns.
    routes: Vec<(String, Vec<String>, Option<SharedSchedule>)>,
    tools: Vec<Arc<dyn Tool>>,
    tool_sources: Vec<Arc<dyn ToolSource>>,
    schedule: Arc<dyn Schedule + Send + Sync>,
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
    max_tool_result: usize,
    max_live_output: usize,
    permissions: Permissions,
    reviewer: Option<Arc<dyn Reviewer>>,
    /// The model or route that reviews, by its id.
    review_model: Option<String>,
    reports: RequiredReports,
    usual_max_steps: Option<u32>,
    compactions: Compactions,
    /// Whether histories that are too long are summarized, and by which model or route; `None` = by that of the turn.
    compacts: Option<Option<String>>,
    /// Shared with the orchestrator of the reviewers.
    health: Arc<SharedHealth>,
}

/// What is kept of a tool's result, in bytes: about 64,000 tokens, far more than helps.
const MAX_TOOL_RESULT: usize = 256 << 10;

/// What watchers are shown of a call's live output, in bytes: some 10,000 lines.
const MAX_LIVE_OUTPUT: usize = 1 << 20;

impl Orchestrator {
    /// Starts putting one together.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Builder {
    fn new() -> Self {
        Self {
            models: Models::default(),
            routes: Vec::new(),
            tools: Vec::new(),
            tool_sources: Vec::new(),
            schedule: Arc::new(Patient),
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
        }
    }

    /// Adds a model. Clients name it `credential/name`; the provider is asked for `name`. The first one added is the
    /// default.
    #[must_use]
    pub fn model(mut self, credential: &str, name: &str, provider: Arc<dyn Provider>) -> Self {
        self.models.models.push(Arc::new(Model::new(credential, name, provider, None)));
        self
    }

    /// Adds another credential for a model that was added: a turn on that model goes on with it when the first one is used
    /// up or refused. `of` is the id of the model, as `credential/name`; one that was not added makes a model of its own.
    #[must_use]
    pub fn credential(mut self, of: &str, credential: &str, provider: Arc<dyn Provider>) -> Self {
        let name = of.split_once('/').map_or(of, |(_, name)| name);
        let is_known = self.models.models.iter().any(|model| model.id == of);
        let sibling_of = is_known.then(|| of.to_owned());
        self.models.models.push(Arc::new(Model::new(credential, name, provider, sibling_of)));
        self
    }

    /// Offers several models as one, which clients name `route/name`: a turn asks the first, and moves as the schedule says.
    /// A schedule that does not choose between targets is wrapped in a [`Handover`](everturn_kernel::Handover).
    ///
    /// The targets are ids of models, as `credential/name`, each taken once, with all its credentials. One that is not there
    /// counts as one that failed for good. A route without targets is not offered.
    #[must_use]
    pub fn route<T: Into<String>>(
        mut self,
        name: &str,
        targets: impl IntoIterator<Item = T>,
        schedule: impl Schedule + Send + Sync + 'static,
    ) -> Self {
        let targets = targets.into_iter().map(Into::into).collect();
        self.routes.push((format!("{PREFIX}{name}"), targets, Some(Arc::new(schedule))));
        self
    }

    /// The same, with the schedule of all turns ([`Self::schedule`]): other than a schedule of its own, global retry settings
    /// change it.
    #[must_use]
    pub fn plain_route<T: Into<String>>(mut self, name: &str, targets: impl IntoIterator<Item = T>) -> Self {
        let targets = targets.into_iter().map(Into::into).collect();
        self.routes.push((format!("{PREFIX}{name}"), targets, None));
        self
    }

    /// The model or route that turns use where nobody asks for one. Default: the first model.
    #[must_use]
    pub fn default_model(mut self, id: impl Into<String>) -> Self {
        self.models.default = Some(id.into());
        self
    }

    /// Adds a tool; one of the same name is replaced.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds tools that come and go while the orchestrator runs. A turn is offered what there is when it begins. Of several
    /// tools of one name, [`Self::tool`]'s is offered, else that of the source that was added first.
    #[must_use]
    pub fn tool_source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.tool_sources.push(source);
        self
    }

    /// What may be done with the calls of the tools that a pattern names, in which `*` stands for any number of characters.
    /// The most specific pattern holds: the tool's own name, else the one with the most characters, else the stricter of
    /// two. Default: what the tool itself says ([`Tool::policy`]).
    #[must_use]
    pub fn tool_policy(mut self, pattern: impl Into<String>, policy: Policy) -> Self {
        self.permissions.rules.add(pattern.into(), policy);
        self
    }

    /// How long a call waits for a person's approval before it is denied. Default: without limit.
    #[must_use]
    pub fn approval_timeout(mut self, wait: Duration) -> Self {
        self.permissions.approval_timeout = Some(wait);
        self
    }

    /// Who reviews the calls of tools with [`Policy::Review`]. Default: nobody, so that each review fails.
    #[must_use]
    pub fn reviewer(mut self, reviewer: Arc<dyn Reviewer>) -> Self {
        self.reviewer = Some(reviewer);
        self
    }

    /// Has a model or route review the calls of tools with [`Policy::Review`], by its id: in conversations of its own, which
    /// people do not see ([`Orchestrator::hidden`]), without tools and without retries. It is told what the user said and
    /// the call in full.
    #[must_use]
    pub fn review_with(mut self, model: impl Into<String>) -> Self {
        self.review_model = Some(model.into());
        self
    }

    /// Requires every turn to end with a report of the model that fits a schema, given by a call of the tool `final_report`: see
    /// [`StartTurn::final_report`](crate::StartTurn::final_report). Routes and messages may require another one. A schema that
    /// cannot be used lets every report pass, with a warning in the log.
    #[must_use]
    pub fn final_report(mut self, report: RequiredReport) -> Self {
        self.reports.rest = Some(Arc::new(report));
        self
    }

    /// Requires turns on a route to end with a report, by the name of the route.
    #[must_use]
    pub fn route_report(mut self, route: &str, report: RequiredReport) -> Self {
        self.reports.routes.insert(format!("{PREFIX}{route}"), Arc::new(report));
        self
    }

    /// The maximum number of steps of turns that need not report, where [`Settings`] name none. Turns that must report have 10
    /// then.
    #[must_use]
    pub fn usual_max_steps(mut self, steps: u32) -> Self {
        self.usual_max_steps = Some(steps);
        self
    }

    /// Has a history that is too long for its model summarized: its older part, by the model of the turn. What the log has stays,
    /// and people see all of it. Default: such a turn fails with [`Category::ContextOverflow`].
    ///
    /// [`Category::ContextOverflow`]: everturn_wire::Category::ContextOverflow
    #[must_use]
    pub fn compact(mut self) -> Self {
        self.compacts = Some(None);
        self
    }

    /// As [`Self::compact`], but this model or route summarizes, by its id.
    #[must_use]
    pub fn compact_with(mut self, model: impl Into<String>) -> Self {
        self.compacts = Some(Some(model.into()));
        self
    }

    /// As [`Self::compact`], but this code summarizes.
    #[must_use]
    pub fn compactor(mut self, compactor: Arc<dyn Compactor>) -> Self {
        (self.compacts, self.compactions.compactor) = (Some(None), Some(compactor));
        self
    }

    /// Summarizes before a history overflows: from this share of the model's context window on (0 to 1; see
    /// [`Self::context_window`]). What it will be is taken from the last token counts and the size of what was added since.
    #[must_use]
    pub fn compact_ahead(mut self, share: f64) -> Self {
        self.compactions.ahead = Some(share);
        self
    }

    /// The context window of a model, by its id, in tokens.
    #[must_use]
    pub fn context_window(mut self, model: impl Into<String>, tokens: u64) -> Self {
        self.compactions.windows.insert(model.into(), tokens);
        self
    }

    /// How long a review may take with all its attempts. Default: 90 s.
    #[must_use]
    pub fn review_timeout(mut self, within: Duration) -> Self {
        self.permissions.review.within = within;
        self
    }

    /// Denies a call whose review comes to no decision. Default: a person is asked.
    #[must_use]
    pub fn deny_without_review(mut self) -> Self {
        self.permissions.review.falls_back_to_person = false;
        self
    }

    /// How long to wait before each retry, unless retry settings say otherwise. Default: [`Patient`].
    #[must_use]
    pub fn schedule(mut self, schedule: impl Schedule + Send + Sync + 'static) -> Self {
        self.schedule = Arc::new(schedule);
        self
    }

    /// Where conversations are kept. Default: in memory.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = journal;
        self
    }

    /// Who observes all conversations in this process: every event, and every provider call. Default: nobody.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Where retry settings are kept, and what is known about targets: which are limited, and which answered lately.
    /// Default: in memory. Read by [`Orchestrator::resume`].
    #[must_use]
    pub fn state(mut self, store: Arc<dyn StateStore>) -> Self {
        self.state = Some(store);
        self
    }

    /// Where the time comes from. Default: the machine's clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// What every turn begins with. Default: [`Settings::default`]. Waits of a step without a bound of their own are bounded
    /// by [`Patient::BUDGET`], 8 h: see [`Self::unbounded_waits`]. The names of idempotent tools are filled in.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Lets the waits of a step add up to whatever the schedule says, where [`Settings`] set no bound.
    #[must_use]
    pub fn unbounded_waits(mut self) -> Self {
        self.unbounded_waits = true;
        self
    }

    /// Has turns sit out usage limits, whatever their schedule: see [`Walls`]. Default: such a failure ends the turn, unless the
    /// schedule waits for it.
    #[must_use]
    pub fn sit_out_usage_limits(mut self) -> Self {
        self.sits_out_limits = true;
        self
    }

    /// Instructions that come first in every request.
    #[must_use]
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.system_prompt = Some(text.into());
        self
    }

    /// The most tokens that an answer may have.
    #[must_use]
    pub fn max_output_tokens(mut self, tokens: u32) -> Self {
        self.max_output_tokens = Some(tokens);
        self
    }

    /// How long an ephemeral conversation is kept after its last turn; [`Orchestrator::drop_ephemeral`] removes it then.
    /// Default: an hour.
    #[must_use]
    pub fn keep_ephemeral(mut self, keep: Duration) -> Self {
        self.keep_ephemeral = keep;
        self
    }

    /// How much is kept of a tool's result, in bytes: of a longer one the beginning and the end, with a line between them
    /// that says how much was left out. Default: 256 KiB.
    #[must_use]
    pub fn max_tool_result(mut self, bytes: usize) -> Self {
        self.max_tool_result = bytes;
        self
    }

    /// How much watchers are shown of a call's live output, in bytes; the rest is dropped, and they are told so. Default:
    /// 1 MiB.
    #[must_use]
    pub fn max_live_output(mut self, bytes: usize) -> Self {
        self.max_live_output = bytes;
        self
    }
}
