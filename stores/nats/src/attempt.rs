//! Storing one message at an expected version: sent again until it is known whether it was stored.

use std::sync::atomic::{AtomicU64, Ordering};

use async_nats::HeaderMap;
use bytes::Bytes;
use everturn_ports::{JournalError, Version};
use everturn_wire::ConversationId;

use crate::{
    error::{OUTDATED, failed},
    label::{self, Label, MAX_HEADERS},
    leader::{Answer, Leader, Patience},
    parts::{LARGE, PART, Parts},
};

/// What is to be stored: the same each time it is sent, but for the sequence that it must follow.
pub(crate) struct Attempt<'j> {
    leader: &'j Leader,
    lost: &'j AtomicU64,
    id: &'j ConversationId,
    subject: String,
    expected: u64,
    pub(crate) label: Label,
    content: Bytes,
    extra: Vec<(&'static str, String)>,
}

/// What is known about the subject after an attempt whose outcome is not.
enum Found {
    /// The attempt was stored, with this sequence.
    Mine(u64),
    /// Something else was, so it never will be. The current version.
    Other(u64),
    /// The conversation was removed, with the attempt if it had been stored. The current version.
    Removed(u64),
    /// Nothing was. It can be stored after this sequence.
    Nothing(u64),
}

impl<'j> Attempt<'j> {
    pub(crate) fn new(
        leader: &'j Leader,
        lost: &'j AtomicU64,
        id: &'j ConversationId,
        subject: String,
        expected: u64,
        label: Label,
    ) -> Self {
        Self { leader, lost, id, subject, expected, label, content: Bytes::new(), extra: Vec::new() }
    }

    pub(crate) fn header(mut self, name: &'static str, value: String) -> Self {
        self.extra.push((name, value));
        self
    }

    /// Sets the content, which is stored in parts first if it is large. They are not read until an append names them.
    /// `after`: the header of parts in which garbage collection finds what the append must follow.
    pub(crate) async fn set_content(
        &mut self,
        content: Bytes,
        after: &'static str,
    ) -> Result<(), JournalError> {
        let room = self.leader.client.max_payload().saturating_sub(MAX_HEADERS);
        if content.len() <= LARGE.min(room) {
            self.content = content;
            return Ok(());
        }
        self.store_parts(&content, PART.min(room), after).await
    }

    async fn store_parts(
        &mut self,
        content: &Bytes,
        size: usize,
        after: &'static str,
    ) -> Result<(), JournalError> {
        let leader = self.leader;
        for (part, start) in (0..content.len()).step_by(size).enumerate() {
            let subject = leader.names().part(self.id, &self.label.id, part);
            let mut headers = HeaderMap::new();
            headers.insert(after, self.expected.to_string());
            let payload = content.slice(start..content.len().min(start + size));
            let stored = leader.store_anyhow(&subject, headers, payload).await;
            // Whatever happened to the part, the append was not written.
            stored.map_err(|error| match error {
                JournalError::Unknown(what) => JournalError::Storage(what),
                other => other,
            })?;
        }
        self.label.parts = Some(Parts::of(content, size));
        Ok(())
    }

    /// Sends it until it is known whether it was stored. `known`: a server that has less was replaced.
    pub(crate) async fn settle(&self, known: u64) -> Result<Version, JournalError> {
        let leader = self.leader;
        let (mut patience, mut after, mut lost, mut unsure) =
            (leader.patience(), self.expected, false, false);
        loop {
            let what = match leader.store(&self.subject, self.headers(after)?, self.content.clone()).await {
                Answer::Stored(sequence) => return Ok(Version(sequence)),
                Answer::Conflict => {
                    // Of an append in progress, or said by a leader that was replaced while the new one stores this.
                    unsure = true;
                    "other appends are in progress".to_owned()
                }
                Answer::Full(what) if !unsure => return Err(failed(&leader.place, &what)),
                Answer::Later(what) | Answer::Full(what) => what,
                Answer::Lost(what) => {
                    if !lost {
                        self.lost.fetch_add(1, Ordering::Relaxed);
                    }
                    (lost, unsure) = (true, true);
                    what
                }
                Answer::TooLarge => {
                    let limit = leader.client.max_payload() as u64;
                    return Err(JournalError::TooLarge { bytes: self.content.len() as u64, limit });
                }
            };
            let found = match self.expected {
                0 => self.look_for_first(known, &mut patience).await,
                _ => self.look_for_next(&mut patience).await,
            };
            let what = match found {
                Ok(Found::Mine(sequence)) => return Ok(Version(sequence)),
                Ok(Found::Removed(_)) if lost => {
                    return Err(leader.place.unknown("the conversation was removed meanwhile"));
                }
                Ok(Found::Other(version) | Found::Removed(version)) => {
                    return Err(stale(self.id, self.expected, version));
                }
                Ok(Found::Nothing(now)) => {
                    after = now;
                    what
                }
                Err(error) => {
                    unsure = true;
                    if patience.pause().await {
                        continue;
                    }
                    // It says where, and what to check.
                    return Err(JournalError::Unknown(match error {
                        JournalError::Storage(what) => what,
                        other => other.to_string(),
                    }));
                }
            };
            if !patience.pause().await {
                return Err(if unsure { leader.place.unknown(&what) } else { failed(&leader.place, &what) });
            }
        }
    }

    fn headers(&self, after: u64) -> Result<HeaderMap, JournalError> {
        let refused = |what: String| JournalError::Refused(format!("conversation {}: {what}", self.id));
        let mut headers = self.label.write(after).map_err(|error| refused(error.to_string()))?;
        for (name, value) in &self.extra {
            headers.insert(*name, value.as_str());
        }
        let length: usize =
            headers.iter().flat_map(|(_, values)| values).map(|value| value.as_str().len()).sum();
        if length > MAX_HEADERS / 2 {
            return Err(refused(format!(
                "its title and model are too long ({length} bytes): shorten the title"
            )));
        }
        Ok(headers)
    }

    async fn look_for_next(&self, patience: &mut Patience) -> Result<Found, JournalError> {
        let leader = self.leader;
        loop {
            let next = leader.next_within(&self.subject, self.expected + 1, patience).await?;
            if let Some(next) = &next
                && next.append_id() == self.label.id
            {
                return Ok(Found::Mine(next.sequence));
            }
            let last = leader.last_within(&self.subject, patience).await?;
            if let (Some(_), Some(last)) = (&next, &last)
                && label::is_newer(&last.headers)
            {
                // A newer version continues it. Whatever it says, something else was stored.
                return Ok(Found::Other(last.sequence));
            }
            let last = last.map(|last| last.last(self.id)).transpose()?;
            match last {
                Some(last) if last.version == self.expected => return Ok(Found::Nothing(self.expected)),
                // Something was stored between the two requests.
                Some(last) if last.version > self.expected && next.is_none() => {}
                Some(last) if last.version > self.expected && last.label.removes() => {
                    return Ok(Found::Removed(0));
                }
                Some(last) if last.version > self.expected => {
                    let is_same = last.label.born == self.label.born;
                    return Ok(if is_same { Found::Other } else { Found::Removed }(last.version));
                }
                // Even the expected one is missing: this server was the leader until it was frozen or cut off, and does not know
                // yet that it is not any more. A mark of a removal would have been kept for longer than an append takes.
                Some(_) => {}
                None if self.subject == leader.names().appends(self.id) => {}
                None => return Ok(Found::Removed(0)),
            }
            if !patience.pause().await {
                return Err(failed(&leader.place, OUTDATED));
            }
        }
    }

    async fn look_for_first(&self, known: u64, patience: &mut Patience) -> Result<Found, JournalError> {
        let Some(last) = self.leader.last_within(&self.subject, patience).await? else {
            return Ok(Found::Nothing(0));
        };
        if last.sequence < known {
            // It still has what was removed.
            return Err(failed(&self.leader.place, OUTDATED));
        }
        let last = last.last(self.id)?;
        let is_mine = last.label.born == self.label.id;
        match last.label.removes() {
            false if last.label.id == self.label.id => Ok(Found::Mine(last.version)),
            // Others followed.
            false if is_mine => self.first(patience).await,
            false => Ok(Found::Other(last.version)),
            // It was stored and removed: storing it again would bring the conversation back.
            true if is_mine => Ok(Found::Removed(0)),
            true => Ok(Found::Nothing(last.version)),
        }
    }

    /// Finds the sequence of a first append that others followed.
    async fn first(&self, patience: &mut Patience) -> Result<Found, JournalError> {
        let mut from = 1;
        while let Some(entry) = self.leader.next_within(&self.subject, from, patience).await? {
            if entry.append_id() == self.label.id {
                return Ok(Found::Mine(entry.sequence));
            }
            from = entry.sequence + 1;
        }
        Ok(Found::Other(0))
    }
}

pub(crate) fn stale(id: &ConversationId, expected: u64, found: u64) -> JournalError {
    JournalError::Stale { id: id.clone(), expected: Version(expected), found: Version(found) }
}
