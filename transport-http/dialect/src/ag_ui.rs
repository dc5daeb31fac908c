//! The AG-UI protocol for agents, as used by `HttpAgent` and CopilotKit. Supports versions 0.0.x and 1.x.
//!
//! [`RunRequest::read`] parses a `RunAgentInput`. The events of its turn are pushed into [`Run`]. [`history`] is shown
//! first to a client that connects. [`Envelope::read`] parses a request to CopilotKit's single endpoint.

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
