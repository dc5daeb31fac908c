//! AG-UI, as an agent speaks it to `HttpAgent` and CopilotKit: the lines 0.0.x and 1.x.
//!
//! [`RunRequest::read`] understands a `RunAgentInput`. The events of its turn go into [`Run`]. [`history`] is what a client that
//! connects anew is shown first. [`Envelope::read`] understands what CopilotKit sends where all calls have one address.

mod envelope;
mod head;
mod history;
mod kept;
mod request;
mod run;

pub use envelope::{Envelope, Method};
pub use head::{Head, queued};
pub use history::history;
pub use kept::Kept;
pub use request::{Resume, RunRequest};
pub use run::Run;
