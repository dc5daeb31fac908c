//! A failure assembled from the command line and the input.

use anyhow::{Context as _, Result, bail};
use everturn_diagnosis::{Evidence, Explanation, Stage, Transport, explain};
use everturn_provider::{AnswerLimits, Dialect, Ending, SseDecoder, replay};
use everturn_wire::{Category, Failure};

use crate::wording;

use super::args;
use super::paste::{Paste, client};

/// Everything known about a failed call.
#[derive(Debug)]
pub(super) struct Case {
    stage: Stage,
    status: Option<u16>,
    headers: Vec<(String, String)>,
    body: String,
    transport: Option<Transport>,
    /// Whether it comes from a client's error message, not from a response.
    is_told: bool,
    /// Whether the form of the input was guessed.
    is_guessed: bool,
    /// Whether the input is a stream with a complete answer.
    is_success: bool,
}

impl Case {
    /// Parses the input. Infers what the command line does not specify.
    pub(super) fn new(args: &args::Explain, input: &str) -> Result<Self> {
        let Paste { status, mut headers, mut body } = Paste::parse(input)?;
        if status.is_some() && (args.status.is_some() || args.transport.is_some()) {
            bail!("the input already has a status line: remove --status and --transport");
        }
        let mut status = args.status.or(status);
        for header in &args.headers {
            let (name, value) = header.split_once(':').with_context(|| {
                format!("--header {header:?} has no colon: write e.g. --header 'retry-after: 8'")
            })?;
            headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        let transport = args.transport.map(Transport::from);
        let is_open = args.stage.is_none() && transport.is_none();
        let mut is_told = false;
        if is_open && is_bare(status, &headers, &body) && !is_stream(&body) {
            body = client::without_remarks(&body).trim().to_owned();
            let cause = client::cause(&body, names_cause).map(|cause| (cause.status, cause.said.to_owned()));
            is_told = cause.is_some();
            (status, body) = cause.unwrap_or((None, body));
        }
        let stage = match (args.stage, transport) {
            (Some(stage), _) => stage.into(),
            (None, Some(_)) => Stage::Transport,
            (None, None) if is_told => Stage::Http,
            (None, None) => guess(status, &headers, &body),
        };
        let is_success = stage == Stage::InStream && is_answer(&body);
        if stage == Stage::InStream {
            body = failed_event(&body).unwrap_or(body);
        }
        if stage == Stage::Transport && status.is_some() {
            bail!(
                "the input has a response with status {}, but --stage transport is for calls without one",
                status.unwrap_or(0)
            );
        }
        if status.is_none() && transport.is_none() && body.is_empty() {
            bail!(
                "there is nothing to explain: pipe a response in, as curl -i prints it; or its body alone, with --status; \
                 or name how the connection failed with --transport"
            );
        }
        let is_guessed = is_open && status.is_none();
        Ok(Self { stage, status, headers, body, transport, is_told, is_guessed, is_success })
    }

    /// Explains the failure, with the given time in epoch milliseconds.
    pub(super) fn explain(&self, now: u64) -> Explanation {
        let headers: Vec<_> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        explain(&Evidence {
            stage: self.stage,
            status: self.status,
            headers: &headers,
            body: &self.body,
            transport: self.transport,
            now,
        })
    }

    /// Whether only the input suggests that it is a failure at all.
    pub(super) fn is_guessed(&self) -> bool {
        self.is_guessed
    }

    /// Whether it is a complete answer, and not a failure.
    pub(super) fn is_success(&self) -> bool {
        self.is_success
    }

    /// Describes how the input was interpreted.
    pub(super) fn described(&self) -> String {
        let of = match self.stage {
            Stage::Transport => "a failed connection".to_owned(),
            stage => {
                let what = match stage {
                    _ if self.is_success => "a stream",
                    Stage::InStream => "an event inside a stream",
                    _ => "a response",
                };
                match self.status {
                    Some(status) if self.is_told => {
                        format!("a client's error message about {what} with status {status}")
                    }
                    None if self.is_told => "a client's error message".to_owned(),
                    Some(status) => format!("{what} with status {status}"),
                    None => format!("{what} without a status"),
                }
            }
        };
        let headers = match self.headers.len() as u64 {
            0 => String::new(),
            count => format!(", {}", wording::count(count, "header")),
        };
        let body = match self.body.len() as u64 {
            0 => String::new(),
            count => format!(", {} of text", wording::count(count, "byte")),
        };
        format!("{of}{headers}{body}")
    }
}

/// Whether the input is only text without structure, such as a client's error message.
fn is_bare(status: Option<u16>, headers: &[(String, String)], body: &str) -> bool {
    status.is_none() && headers.is_empty() && !body.starts_with(['{', '[', '<', '"'])
}

/// Whether the input is the text of an event stream.
fn is_stream(body: &str) -> bool {
    ["data:", "event:"].iter().any(|field| body.starts_with(field))
}

/// Guesses the stage of a call from its output.
fn guess(status: Option<u16>, headers: &[(String, String)], body: &str) -> Stage {
    let is_success = status.is_none_or(|status| (200..=299).contains(&status));
    // A client whose connection failed has no body to quote.
    let is_quoting = ["{\"", "{'"].iter().any(|begin| body.contains(begin));
    match () {
        () if is_success && is_stream(body) => Stage::InStream,
        () if !is_bare(status, headers, body) || is_quoting => Stage::Http,
        // A message that is neither of a connection nor of a provider is no failure of either.
        () if said(Stage::Transport, body).is_recognised => Stage::Transport,
        () if said(Stage::Http, body).is_recognised => Stage::Http,
        () => Stage::Transport,
    }
}

/// Explains a text of which nothing else is known.
fn said(stage: Stage, body: &str) -> Explanation {
    explain(&Evidence { stage, status: None, headers: &[], body, transport: None, now: 0 })
}

/// Whether a client's text names the cause of a failure: what a provider refuses, and not that a connection failed.
fn names_cause(text: &str) -> bool {
    use Category::{
        Auth, ContentPolicy, ContextOverflow, InvalidRequest, NotFound, Overloaded, Permission,
        QuotaExhausted, RateLimited,
    };
    let of_provider = said(Stage::Http, text);
    let is_cause = of_provider.is_recognised
        && matches!(
            of_provider.failure.category,
            Auth | ContentPolicy
                | ContextOverflow
                | InvalidRequest
                | NotFound
                | Overloaded
                | Permission
                | QuotaExhausted
                | RateLimited
        );
    // Of certificates it is said that they are not valid or not permitted, too.
    let is_untrusted = |of_peer: Failure| of_peer.category == Category::Network && !of_peer.retryable;
    is_cause && !is_untrusted(said(Stage::Transport, text).failure)
}

/// Whether a stream is a complete answer of some API.
fn is_answer(stream: &str) -> bool {
    let stream = format!("{stream}\n\n");
    let read = |dialect: &Dialect| replay(*dialect, AnswerLimits::default(), false, [stream.as_bytes()]);
    Dialect::ALL.iter().any(|dialect| matches!(read(dialect), (_, Ending::Complete)))
}

/// Returns the event that makes a turn fail: the last error, else the last event with content.
fn failed_event(stream: &str) -> Option<String> {
    let stream = format!("{stream}\n\n");
    let mut decoder = SseDecoder::new(SseDecoder::DEFAULT_LIMIT);
    let mut input = stream.as_bytes();
    let (mut error, mut last) = (None, None);
    while let Ok(Some(event)) = decoder.next(&mut input) {
        let is_error = event.name == "error" || event.data.contains("\"error\"");
        if is_error {
            error = Some(event.data.into_owned());
        } else if event.data != "[DONE]" {
            last = Some(event.data.into_owned());
        }
    }
    error.or(last)
}
