//! Exports spans over OTLP/HTTP, configured by the standard environment variables.

use std::{
    env, fmt,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use tokio::runtime::Handle;

use crate::{Redact, Traces};

const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const PROTOCOLS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
/// The only supported protocol.
const PROTOCOL: &str = "http/protobuf";

const CAPTURE: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/// Timeout of a collector, as OpenTelemetry recommends.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of bytes read of a collector's answer. A partial success has its reason there.
const MAX_ANSWER: usize = 64 << 10;

/// Why spans cannot be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The environment selects an unsupported protocol.
    #[error("{name}={value} is not supported: set it to {PROTOCOL}, or leave it out")]
    Protocol {
        /// The variable.
        name: &'static str,
        /// The value.
        value: String,
    },
    /// The environment has an unknown value for the capture of message content.
    #[error(
        "{CAPTURE}={value} is not a known value: set it to SPAN_ONLY to export the content of messages, or to \
         NO_CONTENT"
    )]
    Capture {
        /// The value.
        value: String,
    },
    /// The exporter cannot be created, e.g. because of an invalid URL.
    #[error("cannot export traces: {0}; check the OTEL_EXPORTER_OTLP_* variables")]
    Exporter(String),
}

/// The export settings in the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The destination of spans, for display; without user information.
    pub endpoint: String,
    /// Whether the environment asks for the content of messages, by
    /// `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`; `None` = it is not set.
    pub message_content: Option<bool>,
}

impl Settings {
    /// Reads the environment of this process. Returns `None` if no endpoint is set or tracing is disabled.
    ///
    /// # Errors
    /// Returns an error if the protocol is not `http/protobuf`, or the capture of message content has an unknown value.
    pub fn from_environment() -> Result<Option<Self>, ExportError> {
        Self::read(|name| env::var(name).ok().filter(|value| !value.trim().is_empty()))
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, ExportError> {
        let is_off = variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            || variable("OTEL_TRACES_EXPORTER").is_some_and(|value| value.trim() == "none");
        let Some(endpoint) = ENDPOINTS.into_iter().find_map(&variable).filter(|_| !is_off) else {
            return Ok(None);
        };
        // The variable for traces takes precedence.
        let asked = PROTOCOLS.into_iter().find_map(|name| Some((name, variable(name)?)));
        if let Some((name, value)) = asked.filter(|(_, value)| value != PROTOCOL) {
            return Err(ExportError::Protocol { name, value });
        }
        let message_content = variable(CAPTURE).map(|value| captures(&value)).transpose()?;
        Ok(Some(Self { endpoint: shown(&endpoint), message_content }))
    }

    /// Creates the observer that exports to the endpoint, over `client`, on the current runtime. If `content` is given,
    /// it also exports the content of messages, from which `content` removes secrets.
    ///
    /// # Errors
    /// Returns an error if the URL or a header in the environment is invalid.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn traces(&self, client: reqwest::Client, content: Option<Redact>) -> Result<Traces, ExportError> {
        let client = Client { client, runtime: Handle::current(), is_failing: AtomicBool::new(false) };
        // The exporter reads URL, headers and timeout from the environment.
        let exporter = SpanExporter::builder().with_http().with_http_client(client).build();
        let exporter = exporter.map_err(|error| ExportError::Exporter(error.to_string()))?;
        Ok(match content {
            Some(redact) => Traces::with_content(exporter, redact),
            None => Traces::new(exporter),
        })
    }
}

/// Whether spans have content, by the values that OpenTelemetry's instrumentations share. Older ones use `true` and
/// `false`. This crate exports no events, so `EVENT_ONLY` means none.
fn captures(value: &str) -> Result<bool, ExportError> {
    match value.trim().to_ascii_uppercase().as_str() {
        "SPAN_ONLY" | "SPAN_AND_EVENT" | "TRUE" => Ok(true),
        "NO_CONTENT" | "EVENT_ONLY" | "FALSE" => Ok(false),
        _ => Err(ExportError::Capture { value: value.to_owned() }),
    }
}

fn shown(endpoint: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(endpoint) else { return endpoint.to_owned() };
    let _ = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url.into()
}

/// The exporter runs on a thread without a runtime, so requests are made on this one.
struct Client {
    client: reqwest::Client,
    runtime: Handle,
    /// Whether the last export failed, so that failures are logged once.
    is_failing: AtomicBool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    fn note(&self, outcome: Result<(), String>) {
        let was_failing = self.is_failing.swap(outcome.is_err(), Ordering::Relaxed);
        match outcome {
            Err(error) if !was_failing => {
                tracing::warn!(%error, "traces are not exported: is the collector running?");
            }
            Ok(()) if was_failing => tracing::info!("traces are being exported again"),
            _ => {}
        }
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (client, mut request) = (self.client.clone(), reqwest::Request::try_from(request)?);
        *request.timeout_mut() = Some(TIMEOUT);
        let sent = self.runtime.spawn(async move {
            let mut response = client.execute(request).await?;
            let (status, mut body) = (response.status(), Vec::new());
            while let Some(part) = response.chunk().await? {
                let room = MAX_ANSWER - body.len();
                body.extend_from_slice(&part[..part.len().min(room)]);
            }
            Ok::<_, reqwest::Error>((status, body))
        });
        // The request is dropped if the runtime ends.
        let outcome = sent.await.map_err(HttpError::from)?;
        self.note(match &outcome {
            Ok((status, _)) if status.is_success() => Ok(()),
            Ok((status, _)) => Err(format!("the collector answered {status}")),
            Err(error) => Err(error.without_url_text()),
        });
        let (status, body) = outcome?;
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = status;
        Ok(response)
    }
}

/// Formats an error without its URL, which may contain a credential.
trait WithoutUrl {
    fn without_url_text(&self) -> String;
}

impl WithoutUrl for reqwest::Error {
    fn without_url_text(&self) -> String {
        let mut text = match (self.is_connect(), self.is_timeout()) {
            (true, _) => "no connection".to_owned(),
            (_, true) => "no answer in time".to_owned(),
            _ => "the request failed".to_owned(),
        };
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            text = error.to_string();
            source = error.source();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, ExportError> {
        let value = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        };
        Settings::read(value)
    }

    const ON: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:secret@127.0.0.1:4318?key=secret");

    #[test]
    fn traces_are_exported_only_if_an_endpoint_is_set() {
        assert_eq!(read(&[]).unwrap(), None);
        assert_eq!(read(&[ON]).unwrap().unwrap().endpoint, "http://127.0.0.1:4318/");
        assert_eq!(read(&[ON, ("OTEL_SDK_DISABLED", "TRUE")]).unwrap(), None);
        assert_eq!(read(&[ON, ("OTEL_TRACES_EXPORTER", "none")]).unwrap(), None);
    }

    #[test]
    fn content_is_exported_only_if_the_environment_says_so() {
        let asked = |value| read(&[ON, (CAPTURE, value)]).map(|settings| settings.unwrap().message_content);
        assert_eq!(read(&[ON]).unwrap().unwrap().message_content, None);
        for value in ["SPAN_ONLY", "span_and_event", "true"] {
            assert_eq!(asked(value).unwrap(), Some(true), "{value}");
        }
        for value in ["NO_CONTENT", "EVENT_ONLY", "False"] {
            assert_eq!(asked(value).unwrap(), Some(false), "{value}");
        }
        let error = asked("spans").unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{CAPTURE}=spans is not a known value: set it to SPAN_ONLY")),
            "{error}"
        );
    }

    #[test]
    fn an_unsupported_protocol_is_rejected_by_name() {
        assert!(read(&[ON, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")]).unwrap().is_some());
        let error = read(&[ON, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap_err().to_string();
        assert!(error.starts_with("OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported"), "{error}");
    }
}
