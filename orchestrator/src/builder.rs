//! Putting an orchestrator together.

use std::{collections::BTreeSet, sync::Arc};

use everturn_kernel::{Provider, Schedule, Settings, Target, Walls};

use crate::{
    Clock, Journal, MemoryJournal, MemoryState, Observer, Orchestrator, Patient, StateStore, SystemClock,
    Tool, ToolSource,
    clock::Steady,
    journal::{Configured, Guarded},
    model::{Model, Models},
    observer::Observers,
    retry_settings::RetryScopes,
    route::{PREFIX, Route, on_route},
    session::Ports,
    status::StatusChanges,
    telemetry,
    toolbox::Toolbox,
};

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
    max_tool_result: usize,
    max_live_output: usize,
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
            max_tool_result: MAX_TOOL_RESULT,
            max_live_output: MAX_LIVE_OUTPUT,
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

    /// Where retry settings are kept, and what is known about the targets of routes. Default: in memory. Read by
    /// [`Orchestrator::resume`].
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

    /// The orchestrator. Turns run on the tokio runtime that calls it.
    #[must_use]
    pub fn build(self) -> Orchestrator {
        telemetry::describe();
        let tools = Toolbox::new(self.tools, self.tool_sources);
        let mut settings = self.settings;
        if !self.unbounded_waits {
            let usual = u64::try_from(Patient::BUDGET.as_millis()).ok();
            settings.budget.max_wait_ms = settings.budget.max_wait_ms.or(usual);
        }
        let sits_out = self.sits_out_limits;
        let walled = move |schedule: SharedSchedule| -> SharedSchedule {
            if sits_out { Arc::new(Walls(schedule)) } else { schedule }
        };
        let usual = walled(self.schedule.clone());
        let configured = Arc::new(Configured {
            max_output_tokens: self.max_output_tokens,
            system_prompt: self.system_prompt,
            tools: Some(tools.current().names().map(str::to_owned).collect()),
            schedule: usual.saved(),
            auto_retry: None,
        });
        let mut models = self.models;
        let several = models.models.iter().filter_map(|model| model.sibling_of.clone());
        let several = several.collect::<BTreeSet<_>>().into_iter().map(|id| (id.clone(), vec![id], None));
        for (id, targets, schedule) in self.routes.into_iter().chain(several) {
            let is_own = schedule.is_some();
            let schedule = walled(on_route(schedule.unwrap_or_else(|| self.schedule.clone())));
            let configured = Arc::new(Configured { schedule: schedule.saved(), ..(*configured).clone() });
            let targets = targets_of(&models, &targets);
            if !targets.is_empty() {
                models.routes.push(Arc::new(Route { id, targets, schedule, is_own, configured }));
            }
        }
        let journal: Arc<dyn Journal> = Arc::new(Guarded(self.journal));
        let clock: Arc<dyn Clock> = Arc::new(Steady::new(self.clock));
        let observers = Observers::new(self.observer);
        let store = self.state.clone().unwrap_or_else(|| Arc::new(MemoryState::new()));
        let retry = Arc::new(RetryScopes::new(store));
        Orchestrator::new(journal.clone(), clock.clone(), observers, retry.clone(), |timers, shutdown| {
            Ports {
                models,
                health: Arc::default(),
                gates: Arc::default(),
                state: self.state,
                tools,
                schedule: usual,
                journal,
                clock,
                settings,
                configured,
                max_tool_result: self.max_tool_result,
                max_live_output: self.max_live_output,
                retry,
                timers,
                shutdown,
                status: StatusChanges::default(),
            }
        })
    }
}

/// The targets behind these ids of models, each once. An id that is not there stays: who asks it is told so.
fn targets_of(models: &Models, ids: &[String]) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    for id in ids {
        let mut found = models.targets(id);
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
