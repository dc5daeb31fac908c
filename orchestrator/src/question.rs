//! The open questions of a conversation's running tools. Only in memory: a call that is interrupted asks again, or not at all.

mod fit;

use std::sync::{Mutex, MutexGuard, PoisonError};

use everturn_wire::{Question, QuestionAction, QuestionAnswer, StepId, Value};
use tokio::sync::oneshot;

/// The open questions of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Questions(Mutex<All>);

#[derive(Debug, Default)]
struct All {
    /// The running calls, by step and id: only they can ask.
    calls: Vec<(StepId, String)>,
    /// The open questions, oldest first.
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    question: Question,
    answer: oneshot::Sender<Answer>,
}

/// A person's answer, checked.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) action: QuestionAction,
    /// Only if the question is accepted, and one that fits.
    pub(crate) content: Option<Value>,
    pub(crate) name: Option<String>,
    pub(crate) via: Option<String>,
}

impl Questions {
    /// Lets a call ask until it ends.
    pub(crate) fn begin(&self, step: &StepId, call: &str) {
        let mut all = self.all();
        // It may have been begun by a session that is gone.
        all.calls.retain(|(_, id)| id != call);
        all.calls.push((step.clone(), call.to_owned()));
    }

    /// Closes the questions of a call that has a result. Tasks that outlive it cannot ask for it.
    pub(crate) fn end(&self, call: &str) {
        let mut all = self.all();
        all.calls.retain(|(_, id)| id != call);
        all.open.retain(|open| open.question.tool_call_id != call);
    }

    /// Opens a question. Its answer is received once; it ends with [`close`](Self::close). `None` = its call no longer runs.
    pub(crate) fn open(&self, question: Question) -> Option<oneshot::Receiver<Answer>> {
        let mut all = self.all();
        let runs =
            all.calls.iter().any(|(step, id)| (step, id) == (&question.step_id, &question.tool_call_id));
        let (answer, given) = oneshot::channel();
        runs.then(|| {
            all.open.push(Open { question, answer });
            given
        })
    }

    pub(crate) fn close(&self, id: &str) {
        self.all().open.retain(|open| open.question.question_id != id);
    }

    /// Closes all of them: their turn is over.
    pub(crate) fn close_all(&self) {
        *self.all() = All::default();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all().open.is_empty()
    }

    pub(crate) fn list(&self) -> Vec<Question> {
        self.all().open.iter().map(|open| open.question.clone()).collect()
    }

    /// Gives an answer to its question. Returns whether the question was open.
    ///
    /// # Errors
    /// Returns why it does not fit, for people. The question stays open.
    pub(crate) fn answer(&self, answer: QuestionAnswer) -> Result<bool, String> {
        let mut all = self.all();
        let open = &mut all.open;
        let is_it = |open: &Open| open.question.question_id == answer.question_id;
        let Some(at) = open.iter().position(is_it) else { return Ok(false) };
        let content = match answer.action {
            QuestionAction::Accept => fit::content(&open[at].question, answer.content)?,
            QuestionAction::Decline | QuestionAction::Cancel => None,
            _ => return Err("the action must be \"accept\", \"decline\" or \"cancel\"".to_owned()),
        };
        let open = open.remove(at);
        drop(all);
        // Fails if the tool has just ended.
        let QuestionAnswer { action, name, via, .. } = answer;
        Ok(open.answer.send(Answer { action, content, name, via }).is_ok())
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
