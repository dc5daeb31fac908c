//! Answers of the person at this terminal to questions of tools.

use anyhow::Result;
use everturn_wire::QuestionAnswer;

use super::{super::question::Step, Line, NO_QUESTION, Turn};

impl Turn<'_> {
    /// Declines the question that is shown.
    pub(super) async fn decline(&mut self) -> Result<()> {
        match self.story.questions.decline() {
            Some(answer) => self.settle(answer).await,
            None => Ok(self.view.line(&Line::Error(NO_QUESTION.to_owned()))?),
        }
    }

    /// Takes a line as the answer to the next part of a question.
    pub(super) async fn step(&mut self, text: Option<&str>) -> Result<()> {
        match self.story.questions.line(text) {
            Some(Step::Told(line)) => Ok(self.view.line(&line)?),
            Some(Step::Send(answer)) => self.settle(answer).await,
            None => Ok(self.view.line(&Line::Error(NO_QUESTION.to_owned()))?),
        }
    }

    /// Sends the answer to a question. If it does not fit, it is asked again.
    async fn settle(&mut self, answer: QuestionAnswer) -> Result<()> {
        match self.server.answer_question(self.conversation_id, &answer).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                Ok(self.view.line(&Line::Note("Too late: the tool does not wait any more.".to_owned()))?)
            }
            Err(error) => Ok(self.story.questions.refuse(error.to_string(), self.view)?),
        }
    }
}
