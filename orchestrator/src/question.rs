//! The open questions of a conversation's running tools. Only in memory: a call that is interrupted asks again, or not at all.

mod fit;

use std::sync::{Mutex, MutexGuard, PoisonError};

use everturn_wire::{Question, QuestionAction, QuestionAnswer, Value};
use tokio::sync::oneshot;

/// The open questions, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Questions(Mutex<Vec<Open>>);

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
    /// Opens a question. Its answer is received once; it ends with [`close`](Self::close).
    pub(crate) fn open(&self, question: Question) -> oneshot::Receiver<Answer> {
        let (answer, given) = oneshot::channel();
        self.all().push(Open { question, answer });
        given
    }

    pub(crate) fn close(&self, id: &str) {
        self.all().retain(|open| open.question.question_id != id);
    }

    /// Closes all of them: their turn is over.
    pub(crate) fn close_all(&self) {
        self.all().clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    pub(crate) fn list(&self) -> Vec<Question> {
        self.all().iter().map(|open| open.question.clone()).collect()
    }

    /// Gives an answer to its question. Returns whether the question was open.
    ///
    /// # Errors
    /// Returns why it does not fit, for people. The question stays open.
    pub(crate) fn answer(&self, answer: QuestionAnswer) -> Result<bool, String> {
        let mut all = self.all();
        let is_it = |open: &Open| open.question.question_id == answer.question_id;
        let Some(at) = all.iter().position(is_it) else { return Ok(false) };
        let content = match answer.action {
            QuestionAction::Accept => fit::content(&all[at].question, answer.content)?,
            QuestionAction::Decline | QuestionAction::Cancel => None,
            _ => return Err("the action must be \"accept\", \"decline\" or \"cancel\"".to_owned()),
        };
        let open = all.remove(at);
        drop(all);
        // Fails if the tool has just ended.
        let QuestionAnswer { action, name, via, .. } = answer;
        Ok(open.answer.send(Answer { action, content, name, via }).is_ok())
    }

    fn all(&self) -> MutexGuard<'_, Vec<Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
