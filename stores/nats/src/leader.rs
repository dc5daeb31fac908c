//! Requests to the stream's leader, whose answers contain everything that was acknowledged.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use async_nats::{
    Client, HeaderMap, Request, RequestErrorKind,
    datetime::parse_rfc3339,
    jetstream::{
        self,
        message::StreamMessage,
        stream::{RawMessageBuilder, RawMessageErrorKind, Stream, WithHeaders},
    },
};
use bytes::Bytes;
use everturn_ports::JournalError;
use serde::Deserialize;
use serde_json::json;
use tokio::{
    sync::watch,
    time::{self, Instant},
};

use crate::{
    entry::Entry,
    error::{Place, failed},
    names::Names,
};

/// First and longest pause before a failed request is sent again. An election takes several seconds.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// JetStream's code for "no message found".
const NO_MESSAGE: u64 = 10037;

/// The connection to the servers.
#[derive(Clone, Debug)]
pub(crate) struct Leader {
    pub(crate) client: Client,
    pub(crate) context: jetstream::Context,
    pub(crate) stream: Stream<()>,
    names: Names,
    pub(crate) place: Place,
    /// Changes with each connection that is established.
    pub(crate) connects: watch::Receiver<()>,
    /// How long an answer may take.
    pub(crate) answer_within: Duration,
    /// How long a failing operation is repeated.
    pub(crate) give_up_after: Duration,
}

/// The answer to a message that was sent to be stored.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It is stored, with this sequence.
    Stored(u64),
    /// The expected version may be wrong. Also happens while another append to the subject is in progress.
    Conflict,
    /// It was not stored and may be later.
    Later(String),
    /// It may or may not be stored.
    Lost(String),
    /// It was not stored, because the storage is full or failed.
    Full(String),
    /// It is larger than the stream accepts.
    TooLarge,
}

/// The newest message of the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newest {
    /// Its sequence; 0 = there was none yet.
    pub(crate) sequence: u64,
    /// When the stream was created, which tells streams of one name apart.
    pub(crate) created: SystemTime,
}

#[derive(Deserialize)]
struct Reply {
    error: Option<ReplyError>,
    seq: Option<u64>,
    #[serde(default)]
    ts: String,
}

#[derive(Debug, Deserialize)]
struct ReplyError {
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

impl Leader {
    pub(crate) fn new(
        context: jetstream::Context,
        stream: Stream<()>,
        names: Names,
        place: Place,
        connects: watch::Receiver<()>,
        [answer_within, give_up_after]: [Duration; 2],
    ) -> Self {
        Self {
            client: context.client(),
            context,
            stream,
            names,
            place,
            connects,
            answer_within,
            give_up_after,
        }
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Returns the patience of an operation that begins now.
    pub(crate) fn patience(&self) -> Patience {
        Patience { until: Instant::now() + self.give_up_after, pause: FIRST_PAUSE }
    }

    /// Repeats what fails, as a new bucket has no leader yet, and an old one may be electing another.
    pub(crate) async fn repeat<T, E: fmt::Display, F: Future<Output = Result<T, E>>>(
        &self,
        what: &str,
        attempt: impl Fn() -> F,
    ) -> Result<T, JournalError> {
        let mut patience = self.patience();
        loop {
            match attempt().await {
                Ok(done) => return Ok(done),
                Err(error) if !patience.pause().await => {
                    return Err(failed(&self.place, &format!("{what}: {error}")));
                }
                Err(_) => {}
            }
        }
    }

    /// Returns the patience to wait for an answer that may be outdated.
    pub(crate) fn short_patience(&self) -> Patience {
        Patience { until: Instant::now() + self.answer_within, pause: FIRST_PAUSE }
    }

    /// Sends a message to be stored, once.
    pub(crate) async fn store(&self, subject: &str, headers: HeaderMap, payload: Bytes) -> Answer {
        let request = Request::new().headers(headers).payload(payload).timeout(Some(self.answer_within));
        match self.client.send_request(subject.to_owned(), request).await {
            Ok(message) => answer(&message.payload),
            Err(error) => match error.kind() {
                RequestErrorKind::NoResponders => Answer::Later("the stream has no leader".to_owned()),
                RequestErrorKind::MaxPayloadExceeded => Answer::TooLarge,
                RequestErrorKind::InvalidSubject => Answer::Full(error.to_string()),
                // The message may be in a buffer, and be sent after a reconnection.
                RequestErrorKind::TimedOut => {
                    Answer::Lost(format!("no answer within {:?}", self.answer_within))
                }
                RequestErrorKind::Other => Answer::Lost("the connection was lost".to_owned()),
            },
        }
    }

    /// Stores a message that may be stored twice.
    pub(crate) async fn store_anyhow(
        &self,
        subject: &str,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<u64, JournalError> {
        let (mut patience, mut lost) = (self.patience(), false);
        loop {
            let what = match self.store(subject, headers.clone(), payload.clone()).await {
                Answer::Stored(sequence) => return Ok(sequence),
                Answer::Full(what) => return Err(failed(&self.place, &what)),
                Answer::TooLarge => {
                    let limit = self.client.max_payload() as u64;
                    return Err(JournalError::TooLarge { bytes: payload.len() as u64, limit });
                }
                Answer::Later(what) => what,
                Answer::Lost(what) => {
                    lost = true;
                    what
                }
                Answer::Conflict => "another message was stored at the same time".to_owned(),
            };
            if !patience.pause().await {
                return Err(if lost { self.place.unknown(&what) } else { failed(&self.place, &what) });
            }
        }
    }

    /// Returns the last message of a subject, which may have wildcards.
    pub(crate) async fn last(&self, subject: &str) -> Result<Option<Entry>, JournalError> {
        self.last_within(subject, &mut self.patience()).await
    }

    pub(crate) async fn last_within(
        &self,
        subject: &str,
        patience: &mut Patience,
    ) -> Result<Option<Entry>, JournalError> {
        self.get(|messages| messages.last_by_subject(subject), patience).await
    }

    /// Returns the first message of a subject from this sequence.
    pub(crate) async fn next(&self, subject: &str, from: u64) -> Result<Option<Entry>, JournalError> {
        self.next_within(subject, from, &mut self.patience()).await
    }

    pub(crate) async fn next_within(
        &self,
        subject: &str,
        from: u64,
        patience: &mut Patience,
    ) -> Result<Option<Entry>, JournalError> {
        self.get(|messages| messages.sequence(from).next_by_subject(subject), patience).await
    }

    /// Returns the message with this sequence.
    pub(crate) async fn at(&self, sequence: u64) -> Result<Option<Entry>, JournalError> {
        self.get(|messages| messages.sequence(sequence), &mut self.patience()).await
    }

    /// Returns what the newest message of the stream is, also if it is deleted.
    pub(crate) async fn newest(&self) -> Result<Newest, JournalError> {
        let mut patience = self.patience();
        loop {
            let error = match self.stream.get_info().await {
                Ok(info) => {
                    return Ok(Newest { sequence: info.state.last_sequence, created: info.created.into() });
                }
                Err(error) => error,
            };
            if !patience.pause().await {
                return Err(failed(&self.place, &source(&error)));
            }
        }
    }

    /// Returns when the message with this sequence was stored, by the clock of the server.
    pub(crate) async fn stored_at(&self, sequence: u64) -> Result<Option<SystemTime>, JournalError> {
        let stored: Option<StoredAt> =
            self.get(|messages| messages.sequence(sequence), &mut self.patience()).await?;
        Ok(stored.map(|stored| stored.0))
    }

    /// Returns the time by the clock of the server, which stamps messages. This process may have another one.
    pub(crate) async fn time(&self) -> Result<SystemTime, JournalError> {
        let api = format!("STREAM.INFO.{}", self.names.stream());
        let mut patience = self.patience();
        loop {
            let what = match self.context.request::<_, _, Reply>(api.clone(), &json!({})).await {
                Ok(Reply { error: Some(error), .. }) => error.description,
                Ok(Reply { ts, .. }) => match parse_rfc3339(&ts) {
                    Ok(time) => return Ok(time.into()),
                    Err(error) => format!("it does not say its time: {error}"),
                },
                Err(error) => error.to_string(),
            };
            if !patience.pause().await {
                return Err(failed(&self.place, &what));
            }
        }
    }

    /// Deletes a message, if that succeeds at once.
    pub(crate) async fn delete(&self, sequence: u64) {
        let _ = self.stream.delete_message(sequence).await;
    }

    async fn get<T: From<StreamMessage>>(
        &self,
        ask: impl Fn(RawMessages) -> RawMessages,
        patience: &mut Patience,
    ) -> Result<Option<T>, JournalError> {
        loop {
            let what = match ask(self.stream.raw_message_builder()).send().await {
                Ok(message) => return Ok(Some(message.into())),
                Err(error) => match error.kind() {
                    RawMessageErrorKind::NoMessageFound => return Ok(None),
                    RawMessageErrorKind::JetStream(error) if error.error_code().0 == NO_MESSAGE => {
                        return Ok(None);
                    }
                    _ => source(&error),
                },
            };
            if !patience.pause().await {
                return Err(failed(&self.place, &what));
            }
        }
    }

    /// Deletes the messages of a subject, which may have wildcards, before this sequence; all of them if `None`.
    pub(crate) async fn purge(&self, subject: &str, before: Option<u64>) -> Result<(), JournalError> {
        let api = format!("STREAM.PURGE.{}", self.names.stream());
        let ask = match before {
            None => json!({"filter": subject}),
            Some(before) => json!({"filter": subject, "seq": before}),
        };
        let mut patience = self.patience();
        loop {
            let what = match self.context.request::<_, _, Reply>(api.clone(), &ask).await {
                Ok(Reply { error: None, .. }) => return Ok(()),
                Ok(Reply { error: Some(error), .. }) => error.description,
                Err(error) => error.to_string(),
            };
            if !patience.pause().await {
                return Err(failed(&self.place, &what));
            }
        }
    }
}

/// Whether this much time has passed since a message was stored, at `now` by the clock of the server. It has not if the clock
/// was set back.
pub(crate) fn has_passed(age: Duration, stored: SystemTime, now: SystemTime) -> bool {
    now.duration_since(stored).is_ok_and(|passed| passed >= age)
}

/// How long a failing operation is repeated, with longer and longer pauses.
#[derive(Debug)]
pub(crate) struct Patience {
    until: Instant,
    pause: Duration,
}

impl Patience {
    /// Waits before a request is repeated. Returns false if it is not to be repeated.
    pub(crate) async fn pause(&mut self) -> bool {
        let is_left = Instant::now() + self.pause < self.until;
        if is_left {
            time::sleep(self.pause).await;
            self.pause = LONGEST_PAUSE.min(self.pause * 2);
        }
        is_left
    }
}

/// When a message was stored.
struct StoredAt(SystemTime);

impl From<StreamMessage> for StoredAt {
    fn from(message: StreamMessage) -> Self {
        Self(message.time.into())
    }
}

type RawMessages = RawMessageBuilder<WithHeaders>;

fn source(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

fn answer(reply: &[u8]) -> Answer {
    match serde_json::from_slice(reply) {
        Ok(Reply { error: None, seq: Some(sequence), .. }) => Answer::Stored(sequence),
        Ok(Reply { error: Some(error), .. }) => error_answer(&error),
        _ => Answer::Lost("the answer is not JetStream's".to_owned()),
    }
}

fn error_answer(error: &ReplyError) -> Answer {
    let what = format!("{} (JetStream error {})", error.description, error.err_code);
    match error.err_code {
        10071 | 10164 => Answer::Conflict,
        10054 | 10097 => Answer::TooLarge,
        // No leader, limits of the account or the server, not ready: refused before it was proposed. Nothing says that of
        // "temporarily unavailable" (10008), so its outcome counts as unknown.
        10002 | 10009 | 10023 | 10028 | 10039 | 10076 | 10163 => Answer::Later(what),
        // The store failed. If it is only full, nothing was stored on any server.
        10077 if error.description.contains("maximum") => Answer::Full(what),
        _ => Answer::Lost(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let error = |code: u64, text: &str| {
            answer(
                json!({"error": {"code": 400, "err_code": code, "description": text}}).to_string().as_bytes(),
            )
        };
        assert!(matches!(answer(br#"{"stream":"EV","seq":7}"#), Answer::Stored(7)));
        assert!(matches!(error(10071, "wrong last sequence: 3"), Answer::Conflict));
        assert!(matches!(error(10164, "wrong last sequence"), Answer::Conflict));
        assert!(matches!(error(10023, "insufficient resources"), Answer::Later(_)));
        assert!(matches!(error(10008, "temporarily unavailable"), Answer::Lost(_)));
        assert!(matches!(error(10077, "maximum bytes exceeded"), Answer::Full(_)));
        assert!(matches!(error(10077, "input/output error"), Answer::Lost(_)));
        assert!(matches!(error(1, "of a newer server"), Answer::Lost(_)));
        assert!(matches!(answer(b"?"), Answer::Lost(_)));
    }
}
