//! Facts: what happened in a world.

use everturn_kernel::{Input, Millis, Op, ReviewAnswer};
use everturn_wire::{Chunk, EventBody, Failure, Role};
use serde_json::Value;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fact {
    /// The turn was saved, together with the following kept chunks and published events.
    Saved,
    /// The following events are published without a save.
    Unsaved,
    /// An event was published.
    Told(EventBody),
    /// A chunk was added to the history.
    Kept(Role, Chunk),
    /// A provider call started, of the target with this name.
    Called(Op, Option<String>),
    /// A provider call failed.
    Failed(Op, Failure),
    /// A sleep of this many milliseconds began.
    Slept(u64),
    /// A tool started.
    Ran {
        /// The step that made the call.
        step: u32,
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// An attempt of a review started.
    Reviewed {
        /// The id of the call.
        id: String,
        /// The number of the attempt, from 0.
        attempt: u32,
        /// When the review times out.
        deadline: Millis,
    },
    /// An attempt of a review ended with this answer.
    Assessed {
        /// The id of the call.
        id: String,
        /// The answer.
        answer: ReviewAnswer,
    },
    /// A running tool ended: it answered, or was dropped.
    Stopped,
    /// An input from outside arrived.
    Heard(Input),
    /// A new process resumed the turn.
    Restarted,
}

impl Fact {
    /// Formats the fact on one line: events as on the wire, history after `|`, actions after `>`. Returns `None` for
    /// facts that would repeat other lines.
    ///
    /// ```
    /// use everturn_testkit::Fact;
    /// use everturn_wire::{Chunk, EventBody, Role};
    ///
    /// let told = Fact::Told(EventBody::TextDelta { delta: "Hi".into() });
    /// assert_eq!(told.line().as_deref(), Some(r#"text-delta delta="Hi""#));
    /// let kept = Fact::Kept(Role::Assistant, Chunk::Text { text: "Hi".into() });
    /// assert_eq!(kept.line().as_deref(), Some(r#"| Assistant text text="Hi""#));
    /// assert_eq!(Fact::Slept(5_000).line().as_deref(), Some("> sleep 5000"));
    /// assert_eq!(Fact::Saved.line(), None);
    /// ```
    pub fn line(&self) -> Option<String> {
        Some(match self {
            Self::Saved | Self::Unsaved | Self::Stopped | Self::Failed(..) | Self::Assessed { .. } => {
                return None;
            }
            Self::Told(event) => fields(&serde_json::to_value(event).expect("an event is JSON")),
            Self::Kept(role, chunk) => {
                format!("| {role:?} {}", fields(&serde_json::to_value(chunk).expect("a chunk is JSON")))
            }
            Self::Called(op, _) => format!("> call {op}"),
            Self::Slept(ms) => format!("> sleep {ms}"),
            Self::Ran { step, id, name } => format!("> run {name} {step}/{id}"),
            Self::Reviewed { id, attempt, .. } => format!("> review {id}.{attempt}"),
            Self::Heard(input) => format!("> {}", name(input)),
            Self::Restarted => "> restart".into(),
        })
    }
}

/// Formats `{"type":"a","x":1,"y":"b"}` as `a x=1 y="b"`, sorted. Omits times and step ids. Of a series of retries,
/// only the phase and number are kept; the rest was published before.
fn fields(json: &Value) -> String {
    let mut json = json.clone();
    json.sort_all_objects();
    let Value::Object(fields) = &json else { return json.to_string() };
    let mut words: Vec<_> = fields
        .iter()
        .filter(|(name, _)| !["type", "nextAt", "stepId", "until"].contains(&name.as_str()))
        .map(|(name, value)| match value {
            Value::Object(retry) if name == "retry" => {
                format!(" retry={}/{}", retry["phase"].as_str().unwrap_or_default(), retry["attempt"])
            }
            value => format!(" {name}={value}"),
        })
        .collect();
    words.sort();
    format!("{}{}", fields["type"].as_str().unwrap_or_default(), words.concat())
}

fn name(input: &Input) -> &'static str {
    match input {
        Input::Provider(..) => "a provider speaks",
        Input::ToolOutput { .. } => "a tool prints",
        Input::ToolAsks { .. } => "a tool asks",
        Input::ToolDone { .. } => "a tool is done",
        Input::Tick(_) => "tick",
        Input::Abort => "abort",
        Input::AbortRetry => "abort retry",
        Input::RetryNow => "retry now",
        Input::GoTo(_) => "go to a target",
        Input::Release => "release",
        Input::MoveAway => "move away",
        Input::Steer(_) => "steer",
        Input::Unsteer { .. } => "unsteer",
        Input::Fault(_) => "fault",
        Input::Unsaved(_) => "unsaved",
        Input::Checkpoint => "checkpoint",
        Input::Recover => "recover",
        Input::Answer(answer) if answer.allows => "allow",
        Input::Answer(_) => "deny",
        _ => "another input",
    }
}
