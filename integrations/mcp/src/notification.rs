//! Notifications of a server: progress, logs, changes of its list.
#![expect(
    deprecated,
    reason = "newer versions of the protocol have fewer logs, but servers of older ones send them"
)]

use std::{fmt::Write as _, sync::Arc};

use everturn_wire::{OutputStream, Value};
use rmcp::{
    RoleClient,
    model::{JsonRpcMessage, LoggingMessageNotificationParam, ProgressNotificationParam, ServerNotification},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::Notify;

use crate::{
    call::{Calls, Piece},
    link::Link,
};

/// Maximum size of a message that is shown, in bytes.
const LONGEST: usize = 4 << 10;

/// Handles a server's notifications.
#[derive(Clone)]
pub(crate) struct Notifications {
    pub(crate) link: Arc<Link>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) list_changed: Arc<Notify>,
}

impl Notifications {
    fn handle(&self, message: &RxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Notification(message) = message else { return };
        match &message.notification {
            ServerNotification::ProgressNotification(progress) => self.progress(&progress.params),
            ServerNotification::LoggingMessageNotification(log) => self.log(&log.params),
            ServerNotification::ToolListChangedNotification(_) => self.list_changed.notify_one(),
            _ => {}
        }
    }

    fn progress(&self, params: &ProgressNotificationParam) {
        let mut text = params.progress.to_string();
        // Writing to a string cannot fail.
        if let Some(total) = params.total {
            let _ = write!(text, "/{total}");
        }
        if let Some(message) = &params.message {
            let _ = write!(text, " {message}");
        }
        self.calls.progress(params.progress_token.clone(), self.piece(OutputStream::Stdout, text));
    }

    fn log(&self, params: &LoggingMessageNotificationParam) {
        let text = params.data.as_str().map_or_else(|| params.data.to_string(), str::to_owned);
        let level = serde_json::to_value(params.level).ok();
        let level = level.as_ref().and_then(Value::as_str).unwrap_or("log");
        let logger = params.logger.as_ref().map(|logger| format!(" {logger}")).unwrap_or_default();
        let piece = self.piece(OutputStream::Stderr, format!("[{level}{logger}] {text}"));
        if !self.calls.log(&piece) {
            tracing::debug!(server = self.link.name(), "{}", piece.text.trim_end());
        }
    }

    fn piece(&self, stream: OutputStream, text: String) -> Piece {
        // Redact before truncation, because half a secret is not recognized.
        let mut text = self.link.redactor.redact(text).into_owned();
        if text.len() > LONGEST {
            text.truncate(text.floor_char_boundary(LONGEST));
            text.push_str("...");
        }
        text.push('\n');
        Piece { stream, text }
    }
}

/// A transport that handles notifications as they arrive. The SDK would spawn a task for each, so that the last
/// progress of a call could come after its answer.
pub(crate) struct InOrder<T> {
    pub(crate) transport: T,
    pub(crate) notifications: Notifications,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for InOrder<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.transport.receive().await?;
        self.notifications.handle(&message);
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}
