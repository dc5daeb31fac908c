//! Tool calls that wait for the person's approval; asked about one at a time.

mod details;

use std::{collections::VecDeque, io};

use everturn_wire::{ApprovalScope, StepId, Value, Verdict};
use tokio::time::Instant;

use super::view::{Asked, Line, Status, View};
use crate::{remote::Clock, wording};

/// Maximum length of a displayed tool name, and of a reason, in characters.
const NAME: usize = 60;
const REASON: usize = 300;

/// Maximum length of a reason that is sent, in characters: at most four bytes each, and the server accepts 4,096.
const LONGEST: usize = 1000;

/// A person's decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The call runs.
    Once,
    /// The call runs, and so does every later call of its tool in the conversation.
    Always,
    /// The call does not run; the model is told the reason, if any.
    Deny(Option<String>),
}

impl Choice {
    pub(super) fn verdict(&self) -> Verdict {
        if matches!(self, Self::Deny(_)) { Verdict::Denied } else { Verdict::Allowed }
    }

    pub(super) fn scope(&self) -> Option<ApprovalScope> {
        (*self == Self::Always).then_some(ApprovalScope::Conversation)
    }

    pub(super) fn reason(self) -> Option<String> {
        match self {
            Self::Deny(reason) => reason.map(|reason| reason.chars().take(LONGEST).collect()),
            Self::Once | Self::Always => None,
        }
    }
}

/// A call that waits for an answer.
pub(super) struct Request {
    pub(super) step_id: StepId,
    pub(super) tool_call_id: String,
    tool: String,
    title: String,
    details: Vec<String>,
    until: Option<Instant>,
    /// When it was shown.
    asked: Option<Instant>,
    /// The answer given here.
    answered: Option<Choice>,
}

impl Request {
    pub(super) fn new(
        (step_id, tool_call_id): (StepId, String),
        tool: &str,
        input: &Value,
        reason: Option<&str>,
        until: Option<u64>,
        clock: &Clock,
    ) -> Self {
        let tool = wording::one_line(tool, NAME);
        let why = reason.map(|reason| format!(": {}", wording::one_line(reason, REASON)));
        let title = format!("{tool} needs your approval{}", why.unwrap_or_default());
        let until = until.and_then(|until| Instant::now().checked_add(clock.until(until)));
        let details = details::of(input);
        Self { step_id, tool_call_id, tool, title, details, until, asked: None, answered: None }
    }
}

/// The calls that wait for an answer, in order.
#[derive(Default)]
pub(super) struct Approvals {
    pending: VecDeque<Request>,
    /// How else approvals can be answered, if not here; shown once.
    pub(super) elsewhere: Option<String>,
}

impl Approvals {
    pub(super) fn ask(&mut self, request: Request) {
        let is_it =
            |known: &Request| known.step_id == request.step_id && known.tool_call_id == request.tool_call_id;
        if !self.pending.iter().any(is_it) {
            self.pending.push_back(request);
        }
    }

    /// Shows the first unanswered call, if it is not shown yet, and that it waits for an answer.
    pub(super) fn show(&mut self, view: &mut dyn View) -> io::Result<()> {
        let open = || |request: &&Request| request.answered.is_none();
        let more = self.pending.iter().filter(open()).count().saturating_sub(1);
        let Some(first) = self.pending.iter_mut().find(|request| open()(&&**request)) else { return Ok(()) };
        let asked = match first.asked {
            Some(asked) => asked,
            None => {
                let (title, details) = (first.title.clone(), first.details.clone());
                view.line(&Line::Approval { title, details })?;
                if let Some(elsewhere) = self.elsewhere.take() {
                    view.line(&Line::Note(elsewhere))?;
                }
                *first.asked.insert(Instant::now())
            }
        };
        view.status(Status::Approval(Asked { since: asked, until: first.until, more }))
    }

    /// Whether single keys answer: the request has been shown long enough to be read.
    pub(super) fn may_answer(&self) -> bool {
        let first = self.pending.iter().find(|request| request.answered.is_none());
        first.and_then(|first| first.asked).is_some_and(|asked| Asked::is_settled(asked, Instant::now()))
    }

    /// Whether an unanswered call is shown.
    pub(super) fn is_shown(&self) -> bool {
        self.pending.iter().any(|request| request.answered.is_none() && request.asked.is_some())
    }

    /// Records the answer to the call that is shown.
    pub(super) fn answer(&mut self, choice: Choice) -> Option<&Request> {
        let shown = |request: &&mut Request| request.answered.is_none() && request.asked.is_some();
        let request = self.pending.iter_mut().find(shown)?;
        request.answered = Some(choice);
        Some(request)
    }

    /// Ends the wait of a call; returns its tool and what to say about it.
    pub(super) fn resolve(
        &mut self,
        (step_id, tool_call_id): (&StepId, &str),
        verdict: Verdict,
        who: &str,
        reason: Option<&str>,
    ) -> Option<(String, String)> {
        let is_it = |known: &Request| known.step_id == *step_id && known.tool_call_id == tool_call_id;
        let request = self.pending.remove(self.pending.iter().position(is_it)?)?;
        let tool = request.tool;
        let why =
            reason.map_or_else(String::new, |reason| format!(": {}", wording::one_line(reason, REASON)));
        // A person who answered here knows that.
        let who = if request.answered.is_none() { who } else { "" };
        let is_always = request.answered == Some(Choice::Always);
        let told = match verdict {
            Verdict::Allowed if is_always => {
                format!("{tool} allowed in this conversation; /revoke {tool} takes that back")
            }
            Verdict::Allowed => format!("{tool} allowed{who}{why}"),
            Verdict::Denied => format!("{tool} denied{who}{why}"),
            Verdict::TimedOut => format!("{tool} denied: not answered in time"),
            _ => format!("{tool} was not answered"),
        };
        Some((tool, told))
    }

    /// Forgets a call that has its result.
    pub(super) fn forget(&mut self, tool_call_id: &str) {
        self.pending.retain(|request| request.tool_call_id != tool_call_id);
    }

    /// After the connection was lost: answers without an effect so far may not have arrived.
    pub(super) fn reopen(&mut self) {
        for request in &mut self.pending {
            request.answered = None;
        }
    }
}
