//! The words of the commands.

mod conversations;
mod running;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub use conversations::Conversations;
pub use running::Running;

/// The words of `everturn chat`.
#[derive(Args, Debug)]
pub struct Chat {
    /// What to say; - reads it from standard input. In `chat`, what is piped in is added to it, or is the message where there is
    /// none
    #[arg(trailing_var_arg = true)]
    message: Vec<String>,
    /// Talk through a running server, e.g. http://127.0.0.1:4777, instead of a private one
    #[arg(long, value_name = "URL", conflicts_with_all = ["data", "ephemeral"])]
    pub server: Option<String>,
    /// The server's access token; prefer EVERTURN_TOKEN
    #[arg(long)]
    pub token: Option<String>,
    /// The model, as PROVIDER/MODEL, or a route, as route/NAME [default: the server's first]
    #[arg(long)]
    pub model: Option<String>,
    /// Continue this conversation; a unique prefix of its id is enough. A turn that was left goes on first
    #[arg(long, value_name = "ID", conflicts_with = "ephemeral")]
    pub(crate) conversation: Option<String>,
    /// Continue the conversation that was used last
    #[arg(long = "continue", conflicts_with_all = ["conversation", "new_conversation", "ephemeral"])]
    pub(crate) continues: bool,
    /// Begin a conversation of this name
    #[arg(long, value_name = "NAME", conflicts_with = "conversation")]
    pub(crate) new_conversation: Option<String>,
    /// The file that the conversation is kept in [default: that of serve, as EVERTURN_DATA or the configuration says]
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
    /// Keep nothing: the conversation ends with the program
    #[arg(long, visible_alias = "no-save", conflicts_with = "data")]
    pub ephemeral: bool,
    /// Print the events of the turn as they are on the wire, one JSON object per line, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Show answers as they are written, without rendering Markdown
    #[arg(long)]
    pub(crate) raw: bool,
    /// Show what the model thinks
    #[arg(long)]
    pub(crate) show_reasoning: bool,
    /// What becomes of tool calls that need approval [default: ask in a terminal, deny in a pipe]
    #[arg(long, value_enum)]
    pub(crate) approvals: Option<Approvals>,
}

/// What becomes of tool calls that need a person's approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Approvals {
    /// A person is asked.
    Ask,
    /// They are denied.
    Deny,
}

impl Chat {
    /// What to say, where it is said here.
    pub fn message(&self) -> Option<String> {
        (!self.message.is_empty() && self.message != ["-"]).then(|| self.message.join(" "))
    }

    /// Whether a conversation of before is asked for.
    pub fn goes_on(&self) -> bool {
        self.continues || self.conversation.is_some()
    }

    /// Whether the message must come from standard input, whatever that is.
    pub fn is_piped(&self) -> bool {
        self.message == ["-"]
    }
}
