//! Tries a provider before it is added: its list, and a real call.

use std::time::Duration;

use everturn_kernel::{Op, Request, StreamEvent};
use everturn_wire::{Category, Chunk, Failure, Message, Role};
use futures_util::StreamExt as _;
use serde::Serialize;
use tokio::time::timeout;

use super::made::{Listed, Made, models};

/// What the model is asked. The call ends with the first word of the answer.
const QUESTION: &str = "Reply with the word OK.";

/// Maximum time until the answer begins.
const TIME: Duration = Duration::from_secs(45);

/// How many models are asked: the first may be one that this account or this API does not have.
const MOST_ASKED: usize = 3;

/// What was found out about a provider that can be added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tried {
    /// The model that answered.
    pub(crate) answered: Option<String>,
    /// What does not work now, but does not keep it from being used.
    pub(crate) note: Option<Problem>,
}

/// Why a provider does not work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Problem {
    /// What happened, in one sentence.
    pub(crate) error: String,
    /// What to do about it, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) advice: Option<String>,
    /// The category of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) category: Option<Category>,
    /// The provider's own message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

impl Problem {
    pub(crate) fn plain(error: impl Into<String>) -> Self {
        Self { error: error.into(), advice: None, category: None, message: None }
    }

    /// Returns what a failure of this provider means here.
    fn of(failure: Failure, name: &str) -> Self {
        let error = match failure.category {
            Category::Auth => format!("{name} rejected the key."),
            Category::Permission => format!("{name} knows the key, but does not allow this."),
            Category::QuotaExhausted => {
                format!("{name} accepted the key, but its account has no credit left.")
            }
            Category::Network => format!("{name} could not be reached."),
            Category::Timeout => format!("{name} did not answer in time."),
            Category::RateLimited | Category::Overloaded | Category::ServerError => {
                format!("{name} is busy or limits requests now; turns will wait for it.")
            }
            Category::NotFound => format!("{name} has no such model or address."),
            Category::InvalidResponse => {
                format!("{name} answered with something that its API does not have.")
            }
            _ => format!("{name} refused a test message."),
        };
        let advice = match failure.category {
            Category::Auth => {
                "Check that the whole key was pasted, and that it belongs to this vendor.".to_owned()
            }
            _ => failure.advice.unwrap_or_default(),
        };
        Self {
            error,
            advice: Some(advice).filter(|advice| !advice.is_empty()),
            category: Some(failure.category),
            message: Some(failure.message).filter(|message| !message.is_empty()),
        }
    }
}

/// Reads the provider's list and makes a call.
///
/// # Errors
/// When it cannot be used as it is.
pub(crate) async fn attempt(made: &Made) -> Result<Tried, Problem> {
    let name = &made.provider.name;
    let listed = if made.is_listed() { look(made).await? } else { Listed::default() };
    made.set_listed(listed.clone());
    let candidates = models(&made.provider, listed.models.as_deref().unwrap_or_default());
    if candidates.is_empty() {
        return Err(match listed.failure {
            Some(failure) => Problem {
                error: format!("The list of models of {name} could not be read."),
                advice: Some("Check the base URL, or name its models.".to_owned()),
                ..Problem::of(failure, name)
            },
            None => Problem {
                advice: Some("Name its models, or change the pattern.".to_owned()),
                ..Problem::plain(format!("No conversation model of {name} matches."))
            },
        });
    }
    let note = listed.failure.map(|failure| Problem {
        error: format!("The list of models of {name} could not be read; it will be tried again."),
        ..Problem::of(failure, name)
    });
    let mut last = None;
    for candidate in candidates.iter().take(MOST_ASKED) {
        let Err(failure) = ask(made, &candidate.name).await else {
            return Ok(Tried { answered: Some(candidate.name.clone()), note });
        };
        match failure.category {
            Category::RateLimited | Category::Overloaded | Category::ServerError => {
                return Ok(Tried { answered: None, note: Some(Problem::of(failure, name)) });
            }
            // Another model may do.
            Category::NotFound
            | Category::InvalidRequest
            | Category::Permission
            | Category::ContentPolicy => {
                last.get_or_insert(failure);
            }
            _ => return Err(Problem::of(failure, name)),
        }
    }
    let failure = last.unwrap_or_else(|| Failure::new(Category::Internal, false, "no model was asked"));
    Err(Problem::of(failure, name))
}

/// Reads the list. A provider without one can still be used, with models that are named.
async fn look(made: &Made) -> Result<Listed, Problem> {
    match made.lister().fetch().await {
        Ok(models) => Ok(Listed { models: Some(models.into()), ..Listed::default() }),
        Err(failure) => match failure.category {
            Category::Auth | Category::Network | Category::Timeout | Category::QuotaExhausted => {
                Err(Problem::of(failure, &made.provider.name))
            }
            _ => Ok(Listed { failure: Some(failure), ..Listed::default() }),
        },
    }
}

/// Calls a model until its answer begins.
async fn ask(made: &Made, model: &str) -> Result<(), Failure> {
    let question = Message::new(Role::User, [Chunk::Text { text: QUESTION.to_owned() }]);
    let mut events = made.api().stream(Request::new(Op::default(), model, vec![question]));
    let answer = async {
        while let Some(event) = events.next().await {
            match event {
                StreamEvent::Failed(failure) => return Err(failure),
                StreamEvent::Text(_)
                | StreamEvent::Reasoning(_)
                | StreamEvent::Echo(_)
                | StreamEvent::ToolCall(_)
                | StreamEvent::Collected(_)
                | StreamEvent::Finished(_) => return Ok(()),
                _ => {}
            }
        }
        Err(Failure::new(Category::InvalidResponse, false, "the answer ended before it began"))
    };
    timeout(TIME, answer).await.unwrap_or_else(|_| {
        let late = format!("no answer began within {TIME:?}");
        Err(Failure {
            advice: Some("Try again, or choose a faster model.".to_owned()),
            ..Failure::new(Category::Timeout, true, late)
        })
    })
}
