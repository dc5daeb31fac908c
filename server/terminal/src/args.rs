//! Command-line arguments.

mod calls;
mod conversations;
mod running;
mod usage;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(crate) use calls::CallOrder;
pub use calls::Calls;
pub use conversations::Conversations;
pub use running::Running;
pub use usage::Usage;

/// Arguments of `everturn chat`.
#[derive(Args, Debug)]
pub struct Chat {
    /// The message; - reads it from standard input. Piped input is appended to it; in `chat`, it is the message if there is none
    message: Vec<String>,
    /// Talk through a running server, e.g. http://127.0.0.1:4777, instead of a private one
    #[arg(long, value_name = "URL", conflicts_with_all = ["data", "ephemeral"])]
    pub server: Option<String>,
    /// The server's access token; prefer EVERTURN_TOKEN
    #[arg(long)]
    pub token: Option<String>,
    /// The model, as PROVIDER/MODEL, or MODEL if only one provider has it; or a route, as route/NAME [default: the server's first]
    #[arg(long)]
    pub model: Option<String>,
    /// Continue this conversation; a unique prefix of its id is enough. An unfinished turn resumes first
    #[arg(long, value_name = "ID", conflicts_with = "ephemeral")]
    pub(crate) conversation: Option<String>,
    /// Continue the latest conversation
    #[arg(long = "continue", conflicts_with_all = ["conversation", "new_conversation", "ephemeral"])]
    pub(crate) continues: bool,
    /// Start a conversation with this name
    #[arg(long, value_name = "NAME", conflicts_with = "conversation")]
    pub(crate) new_conversation: Option<String>,
    /// Data file of the conversation [default: that of serve, from EVERTURN_DATA or the configuration]
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
    /// Store nothing: the conversation ends with the program
    #[arg(long, visible_alias = "no-save", conflicts_with = "data")]
    pub ephemeral: bool,
    /// Print the turn's events as sent on the wire, one JSON object per line, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Show answers as plain text, without rendering Markdown
    #[arg(long)]
    pub(crate) raw: bool,
    /// Show the model's reasoning
    #[arg(long)]
    pub(crate) show_reasoning: bool,
    /// How to treat tool calls that need approval [default: ask in a terminal, deny in a pipe]
    #[arg(long, value_enum)]
    pub(crate) approvals: Option<Approvals>,
}

/// How to treat tool calls that need a person's approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Approvals {
    /// A person is asked.
    Ask,
    /// They are denied.
    Deny,
}

impl Chat {
    /// The message, if it was given on the command line.
    pub fn message(&self) -> Option<String> {
        (!self.message.is_empty() && self.message != ["-"]).then(|| self.message.join(" "))
    }

    /// Whether an existing conversation was requested.
    pub fn goes_on(&self) -> bool {
        self.continues || self.conversation.is_some()
    }

    /// Whether the message must come from standard input.
    pub fn is_piped(&self) -> bool {
        self.message == ["-"]
    }
}
