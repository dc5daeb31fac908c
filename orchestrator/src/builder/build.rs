//! Builds an orchestrator from the builder's settings.

use std::sync::Arc;

use everturn_kernel::Compaction;

use super::Builder;
use crate::{
    Clock, Journal, MemoryState, Orchestrator, Patient,
    catalog::{Defaults, Offered},
    clock::Steady,
    cluster::Peers,
    journal::{Configured, Guarded},
    model_settings::ModelSettingsStore,
    observer::Observers,
    pacing::Pacing,
    permission::{GrantStore, Permissions},
    retry_settings::RetryScopes,
    schedule,
    session::Ports,
    status::StatusChanges,
    telemetry,
    toolbox::Toolbox,
    usage::UsageBook,
};

impl Builder {
    /// Builds the orchestrator. Turns run on the tokio runtime from which its methods are called.
    #[must_use]
    pub fn build(self) -> Orchestrator {
        telemetry::describe();
        let tools = Toolbox::new(self.tools, self.tool_sources);
        let mut settings = self.settings;
        if !self.unbounded_waits {
            let usual = u64::try_from(Patient::BUDGET.as_millis()).ok();
            settings.budget.max_wait_ms = settings.budget.max_wait_ms.or(usual);
        }
        let mut configured = Configured {
            max_output_tokens: self.max_output_tokens,
            system_prompt: self.system_prompt,
            tools: Some(tools.current().names().map(str::to_owned).collect()),
            schedule: None,
            auto_retry: None,
            temperature: None,
            usual_effort: None,
        };
        let (policy, sits_out_limits) = (self.policy, self.sits_out_limits);
        let defaults = |configured| Defaults { policy: policy.clone(), sits_out_limits, configured };
        let usual = defaults(Arc::default()).completed(policy.clone());
        configured.schedule = schedule::saved(&usual);
        let configured = Arc::new(configured);
        let models = Offered::new(defaults(configured.clone()), self.catalog);
        let journal: Arc<dyn Journal> = Arc::new(Guarded(self.journal));
        let clock: Arc<dyn Clock> = Arc::new(Steady::new(self.clock));
        settings.compaction = self.compacts.map(|model| Compaction {
            targets: model.map(|model| models.now().targets_of(&[model])).unwrap_or_default(),
        });
        let observers = Observers::new(self.observer);
        let store = self.state.clone().unwrap_or_else(|| Arc::new(MemoryState::new()));
        let (pacing, usage) = (Arc::<Pacing>::default(), UsageBook::new(store.clone(), self.prices));
        let retry = Arc::new(RetryScopes::new(store.clone(), self.retry));
        let model_settings = ModelSettingsStore::new(store.clone());
        let grants = GrantStore::new(store.clone());
        let permissions = Permissions { grants, ..self.permissions };
        let peers = self.cluster.map(|cluster| Arc::new(Peers::new(cluster)));
        Orchestrator::new(
            journal.clone(),
            clock.clone(),
            observers,
            retry.clone(),
            peers.clone(),
            self.memory.clone(),
            |timers, shutdown| {
                pacing.wake_by(&timers, clock.clone());
                Ports {
                    models,
                    health: Arc::default(),
                    pacing,
                    usage: Arc::new(usage),
                    state: self.state,
                    documents: store,
                    tools,
                    permissions,
                    reviewer: self.reviewer.map(Arc::new),
                    reports: self.reports,
                    usual_max_steps: self.usual_max_steps,
                    compactions: self.compactions,
                    policy: usual,
                    journal,
                    clock,
                    settings,
                    configured,
                    keep_ephemeral: self.keep_ephemeral,
                    spool: self.spool,
                    max_tool_result: self.max_tool_result,
                    max_live_output: self.max_live_output,
                    retry,
                    model_settings,
                    memory: self.memory,
                    timers,
                    shutdown,
                    status: StatusChanges::default(),
                    peers,
                }
            },
        )
    }
}
