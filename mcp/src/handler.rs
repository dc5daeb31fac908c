//! What a server says on its own: progress, logs, that its list changed.
#![expect(deprecated, reason = "newer versions of the protocol have no logs, but servers of older ones send them")]

use std::{fmt::Write as _, sync::Arc};

use everturn_wire::{OutputStream, Value};
use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, Implementation, LoggingMessageNotificationParam,
        ProgressNotificationParam,
    },
    service::NotificationContext,
};
use tokio::sync::Notify;

use crate::{
    call::{Calls, Piece},
    link::Link,
};

/// The most that is shown of one message, in bytes.
const LONGEST: usize = 4 << 10;

/// Takes in what a server says on its own.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) link: Arc<Link>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) list_changed: Arc<Notify>,
}

impl Handler {
    fn piece(&self, stream: OutputStream, text: String) -> Piece {
        // Before it is cut: half a secret is one, too.
        let mut text = self.link.veil.over(text).into_owned();
        if text.len() > LONGEST {
            text.truncate(text.floor_char_boundary(LONGEST));
            text.push_str("...");
        }
        text.push('\n');
        Piece { stream, text }
    }
}

impl ClientHandler for Handler {
    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = match params.total {
            Some(total) => write!(text, "{}/{total}", params.progress),
            None => write!(text, "{}", params.progress),
        };
        if let Some(message) = &params.message {
            let _ = write!(text, " {message}");
        }
        self.calls.progress(params.progress_token, self.piece(OutputStream::Stdout, text));
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let text = match params.data {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let level = serde_json::to_value(params.level).ok();
        let level = level.as_ref().and_then(Value::as_str).unwrap_or("log");
        let logger = params.logger.map(|logger| format!(" {logger}")).unwrap_or_default();
        let piece = self.piece(OutputStream::Stderr, format!("[{level}{logger}] {text}"));
        if !self.calls.log(&piece) {
            tracing::debug!(server = self.link.name(), "{}", piece.text.trim_end());
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.list_changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("everturn", env!("CARGO_PKG_VERSION")),
        )
    }
}
