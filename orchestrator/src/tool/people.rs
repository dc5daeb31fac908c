//! Questions of running tools to people.

use std::{future::pending, sync::Arc};

use everturn_kernel::Input;
use everturn_wire::{
    EventBody, Question, QuestionAction, QuestionField, QuestionKind, QuestionOutcome, SettledQuestion,
    StepId, Value,
};
use tokio::{
    runtime::Handle,
    sync::{
        Mutex,
        mpsc::{self, error::TrySendError},
    },
};

use crate::{
    new_id,
    question::{Answer, Questions},
};

/// The people who can answer questions of a call. A call has one open question at a time; others wait for it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct People(Arc<Call>);

#[derive(Debug)]
struct Call {
    questions: Arc<Questions>,
    step_id: StepId,
    call_id: String,
    tool: String,
    inbox: mpsc::Sender<Box<Input>>,
    /// Whether nobody is there to answer.
    is_alone: bool,
    alone: Mutex<()>,
}

/// What a tool asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The values of these fields.
    Form(Vec<QuestionField>),
    /// That the person opens this page.
    Url(String),
    /// A login at the tool's source.
    Login,
}

/// A person's answer, which fits what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The values of a form by name; an empty object for other questions.
    Accepted(Value),
    /// The person declined.
    Declined,
    /// The person dismissed the question, or nobody is there to answer, or the call no longer runs.
    Cancelled,
}

impl People {
    pub(crate) fn new(
        questions: Arc<Questions>,
        (step_id, call_id, tool): (StepId, String, String),
        inbox: mpsc::Sender<Box<Input>>,
        is_alone: bool,
    ) -> Self {
        questions.begin(&step_id, &call_id);
        Self(Arc::new(Call { questions, step_id, call_id, tool, inbox, is_alone, alone: Mutex::default() }))
    }

    /// Asks in the name of `asker`, and waits for the answer, however long it takes. Dropping the future withdraws the question.
    /// Nothing of it may be secret. A task that outlives the call gets [`Reply::Cancelled`].
    pub async fn ask(&self, asker: &str, message: &str, ask: Ask) -> Reply {
        // The other never comes.
        self.ask_until(asker, message, ask, pending()).await.unwrap_or(Reply::Cancelled)
    }

    /// Like [`ask`](Self::ask), but returns `None` when what is asked for has happened otherwise.
    pub async fn ask_until(
        &self,
        asker: &str,
        message: &str,
        ask: Ask,
        happened: impl Future<Output = ()> + Send,
    ) -> Option<Reply> {
        let call = &*self.0;
        if call.is_alone {
            return Some(Reply::Cancelled);
        }
        let _alone = call.alone.lock().await;
        let (kind, fields, url) = match ask {
            Ask::Form(fields) => (QuestionKind::Form, fields, None),
            Ask::Url(url) => (QuestionKind::Url, Vec::new(), Some(url)),
            Ask::Login => (QuestionKind::Login, Vec::new(), None),
        };
        let question = Question {
            question_id: new_id::question(),
            step_id: call.step_id.clone(),
            tool_call_id: call.call_id.clone(),
            tool_name: call.tool.clone(),
            asker: asker.to_owned(),
            kind,
            message: message.to_owned(),
            fields,
            url,
        };
        let settled = SettledQuestion {
            question_id: question.question_id.clone(),
            asker: question.asker.clone(),
            kind,
            outcome: QuestionOutcome::Withdrawn,
            name: None,
            via: None,
        };
        let mut open = Open { call, unsettled: Some(settled) };
        let Some(answer) = call.questions.open(question.clone()) else { return Some(Reply::Cancelled) };
        call.tell(EventBody::QuestionAsked(Box::new(question))).await;
        let given = tokio::select! {
            given = answer => Some(given.ok()),
            () = happened => None,
            // The turn is over, or left: what was told just before may have reached nobody.
            () = call.inbox.closed() => Some(None),
        };
        let (reply, outcome, who) = match given {
            Some(Some(Answer { action: QuestionAction::Accept, content, name, via })) => {
                let content = content.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
                (Some(Reply::Accepted(content)), QuestionOutcome::Accepted, (name, via))
            }
            Some(Some(Answer { action: QuestionAction::Decline, name, via, .. })) => {
                (Some(Reply::Declined), QuestionOutcome::Declined, (name, via))
            }
            Some(Some(Answer { name, via, .. })) => {
                (Some(Reply::Cancelled), QuestionOutcome::Cancelled, (name, via))
            }
            Some(None) => (Some(Reply::Cancelled), QuestionOutcome::Cancelled, (None, None)),
            None => (None, QuestionOutcome::Accepted, (None, None)),
        };
        if let Some(settled) = open.close() {
            let (name, via) = who;
            call.tell(call.settled(SettledQuestion { outcome, name, via, ..settled })).await;
        }
        reply
    }
}

impl Call {
    /// Fails when the turn is over; then nobody needs it.
    async fn tell(&self, event: EventBody) {
        let _ = self.inbox.send(self.input(event)).await;
    }

    fn settled(&self, question: SettledQuestion) -> EventBody {
        let SettledQuestion { question_id, asker, kind, outcome, name, via } = question;
        let (step_id, tool_call_id) = (self.step_id.clone(), self.call_id.clone());
        let (asker, kind) = (Some(asker), Some(kind));
        EventBody::QuestionSettled { question_id, step_id, tool_call_id, outcome, asker, kind, name, via }
    }

    fn input(&self, event: EventBody) -> Box<Input> {
        Box::new(Input::ToolAsks { call_id: self.call_id.clone(), event: Box::new(event) })
    }
}

/// A question until it is settled.
struct Open<'c> {
    call: &'c Call,
    /// What remains of it if nobody answers.
    unsettled: Option<SettledQuestion>,
}

impl Open<'_> {
    /// Closes the question, once.
    fn close(&mut self) -> Option<SettledQuestion> {
        let settled = self.unsettled.take()?;
        self.call.questions.close(&settled.question_id);
        Some(settled)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let Some(withdrawn) = self.close() else { return };
        let (inbox, event) = (self.call.inbox.clone(), self.call.input(self.call.settled(withdrawn)));
        // Behind the call's own output, which may fill the inbox now.
        if let Err(TrySendError::Full(event)) = inbox.try_send(event)
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move { inbox.send(event).await });
        }
    }
}
