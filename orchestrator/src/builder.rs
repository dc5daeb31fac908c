//! The orchestrator's builder.

mod build;
mod models;
mod tools;

use std::{path::PathBuf, sync::Arc, time::Duration};

use everturn_kernel::Settings;
use everturn_pacing::RetryPolicy;
use everturn_wire::RetrySettings;

use crate::{
    Clock, Cluster, Compactor, Journal, MemoryJournal, Observer, Orchestrator, StateStore, SystemClock, Tool,
    ToolSource,
    catalog::Catalog,
    compaction::Compactions,
    memory::{Memory, MemoryLimits},
    permission::Permissions,
    report::RequiredReports,
    session::Reviews,
    state::GuardedState,
    usage::Prices,
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
    reviewer: Option<Reviews>,
    reports: RequiredReports,
    usual_max_steps: Option<u32>,
    compactions: Compactions,
    /// Whether long histories are summarized, and by which model or route; `None` = the turn's own.
    compacts: Option<Option<String>>,
    memory: Arc<Memory>,
    prices: Prices,
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
            reports: RequiredReports::default(),
            usual_max_steps: None,
            compactions: Compactions::default(),
            compacts: None,
            memory: Arc::default(),
            prices: Prices::default(),
            cluster: None,
        }
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

    /// Sets the journal that stores conversations. Default: in memory. Two orchestrators over one journal take each other's turns:
    /// to share conversations, use [`Self::cluster`].
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

    /// Adds an observer of every event and provider call of this process, except reviews by a model and
    /// [`ask`](Orchestrator::ask). Default: none.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Sets the store for what is not in the journal: retry settings, model settings such as system prompts, and allowed tools, of
    /// each conversation; global retry settings; usage; target health (which targets are limited, and which answered recently) and
    /// what the pacer learned. Read by [`Orchestrator::resume`], what belongs to a conversation when it is needed. If it panics, that
    /// is an error of the store.
    ///
    /// Default: in memory, so that a restart forgets all of it, for at most 10,000 documents. A journal in SQLite or Postgres is also
    /// such a store: pass the same `Arc` to [`Self::journal`] and here.
    #[must_use]
    pub fn state(mut self, store: Arc<dyn StateStore>) -> Self {
        self.state = Some(Arc::new(GuardedState(store)));
        self
    }

    /// Sets the clock. Default: the system clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the limits on the memory that conversations take.
    #[must_use]
    pub fn memory_limits(mut self, limits: MemoryLimits) -> Self {
        self.memory = Arc::new(Memory::new(limits));
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
}
