//! The words of the commands.

mod conversations;
mod running;

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
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// The server's access token; prefer EVERTURN_TOKEN
    #[arg(long)]
    pub token: Option<String>,
    /// The model, as PROVIDER/MODEL, or a route, as route/NAME [default: the server's first]
    #[arg(long)]
    pub model: Option<String>,
    /// Continue this conversation of the server; a unique prefix of its id is enough
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,
    /// Begin a conversation of this name on the server
    #[arg(long, value_name = "NAME", conflicts_with = "conversation")]
    pub(crate) new_conversation: Option<String>,
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

    /// Whether the message must come from standard input, whatever that is.
    pub fn is_piped(&self) -> bool {
        self.message == ["-"]
    }
}
