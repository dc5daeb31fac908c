//! A message of the stream.

use async_nats::{HeaderMap, jetstream::message::StreamMessage};
use bytes::Bytes;
use everturn_ports::JournalError;
use everturn_wire::ConversationId;

use crate::{
    error::{damaged, newer},
    label::{self, Label, Last},
    record,
};

/// A message of the stream.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its sequence in the stream.
    pub(crate) sequence: u64,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

impl Entry {
    /// The append that it is.
    pub(crate) fn append_id(&self) -> &str {
        label::id(&self.headers)
    }

    /// Reads its headers as those of an append to this conversation.
    pub(crate) fn label(&self, id: &ConversationId) -> Result<Label, JournalError> {
        Label::read(&self.headers).map_err(|error| self.unreadable(id, &error))
    }

    pub(crate) fn last(&self, id: &ConversationId) -> Result<Last, JournalError> {
        Ok(Last { version: self.sequence, label: self.label(id)? })
    }

    /// Returns the error when it cannot be read.
    pub(crate) fn unreadable(
        &self,
        id: &ConversationId,
        error: &(dyn std::error::Error + 'static),
    ) -> JournalError {
        let what = format!("append {}: {error}", self.sequence);
        let is_newer = matches!(error.downcast_ref(), Some(label::Unreadable::Newer(_)))
            || matches!(error.downcast_ref(), Some(record::Unreadable::Newer));
        if is_newer { newer(id, &what) } else { damaged(id, &what) }
    }
}

impl From<StreamMessage> for Entry {
    fn from(message: StreamMessage) -> Self {
        Self { sequence: message.sequence, headers: message.headers, payload: message.payload }
    }
}
