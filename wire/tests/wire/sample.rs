//! Samples of each type: with every optional field, and with none.

use std::fmt::Debug;

use everturn_wire::{CallerLimits, Chunk, ErrorBody, Health, ServerMessage};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

mod approval;
mod caller;
mod chunk;
mod event;
pub(crate) mod frame;
mod http;
mod question;
mod retry_settings;
mod usage;

/// The samples of one type, as JSON.
pub(crate) struct Family {
    /// The type's name in the schema.
    pub(crate) name: &'static str,
    /// One JSON text per sample.
    pub(crate) lines: Vec<String>,
    /// Reads JSON as the type and writes it again.
    pub(crate) rewrite: fn(&str) -> String,
}

impl Family {
    /// Serializes the samples, and checks that they parse to the same values.
    fn new<T: Serialize + DeserializeOwned + PartialEq + Debug>(name: &'static str, samples: &[T]) -> Self {
        let write = |sample: &T| {
            let line = serde_json::to_string(sample).unwrap();
            assert_eq!(&serde_json::from_str::<T>(&line).unwrap(), sample, "{line}");
            line
        };
        let rewrite = |text: &str| serde_json::to_string(&serde_json::from_str::<T>(text).unwrap()).unwrap();
        Self { name, lines: samples.iter().map(write).collect(), rewrite }
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = Value> {
        self.lines.iter().map(|line| serde_json::from_str(line).unwrap())
    }
}

/// Returns samples of everything that crosses a process boundary.
pub(crate) fn families() -> Vec<Family> {
    let mut families = vec![
        Family::new("AgentEvent", &event::base()),
        Family::new("AgentEvent", &event::extension()),
        Family::new("AgentEvent", &event::unknown()),
        Family::new("Chunk", &chunk::chunks()),
        Family::new("Chunk", &[Chunk::Unknown]),
        Family::new("StoredChunk", &chunk::stored()),
        Family::new("ExportLine", &chunk::export()),
        Family::new("Message", &chunk::messages()),
        Family::new("Failure", &chunk::failures()),
        Family::new("Command", &frame::commands()),
        Family::new("ServerMessage", &frame::messages()),
        Family::new("ServerMessage", &[ServerMessage::Unknown]),
        Family::new("Models", &http::models()),
        Family::new("Targets", &http::targets()),
        Family::new("ClusterState", &http::cluster()),
        Family::new("Calls", &http::calls()),
        Family::new("CallOrdered", &http::call_ordered()),
        Family::new("Tools", &http::tools()),
        Family::new("UsageReport", &usage::reports()),
        Family::new("CallerList", &[caller::list()]),
        Family::new("NewCaller", &caller::new()),
        Family::new("CallerLimits", &[CallerLimits::default(), caller::limits()]),
        Family::new("NewToken", &caller::new_tokens()),
        Family::new("MadeToken", &[caller::made()]),
        Family::new("AuditLog", &[caller::log()]),
        Family::new("Health", &[Health { ok: true }]),
        Family::new("ErrorBody", &[ErrorBody { error: "message is empty".into() }]),
    ];
    families.extend(http::conversation());
    families.extend(approval::families());
    families.extend(question::families());
    families.extend(http::control());
    families.extend(retry_settings::families());
    families
}
