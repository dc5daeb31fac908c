//! What a line does that a person types while a turn runs.

use anyhow::Result;
use everturn_wire::Command;
use uuid::Uuid;

use super::{NOTHING_QUEUED, QUEUED, Turn};
use crate::{
    chat::{
        model,
        moving::Destination,
        order::{self, Order},
        story::{Ending, Queued},
        view::Line,
    },
    wording,
};

impl Turn<'_> {
    /// Handles a line typed while the turn runs.
    pub(super) async fn order(&mut self, line: String) -> Result<Option<Ending>> {
        let line = match Order::of(&line) {
            Order::Skip => {
                self.step(None).await?;
                return Ok(None);
            }
            Order::Decline => {
                self.decline().await?;
                return Ok(None);
            }
            Order::Say(text) if self.story.questions.is_open() => {
                self.step(Some(&text)).await?;
                return Ok(None);
            }
            Order::Retry(model) if self.story.may_ask_now() => match model {
                Some(model) => self.choose(&model).await?,
                None => {
                    self.ask_now(None).await?;
                    return Ok(None);
                }
            },
            Order::Model(Some(model)) => self.choose(&model).await?,
            Order::Model(None) => {
                self.models().await.map_or_else(|error| Line::Error(error.to_string()), Line::Note)
            }
            Order::Answer(choice) => {
                self.answer(choice).await?;
                return Ok(None);
            }
            Order::Retry(_) | Order::Edit(_) | Order::File(..) | Order::Compact => {
                Line::Note("Not now: wait for the end of the answer, or stop it with /stop.".to_owned())
            }
            Order::Stop => {
                self.stop(self.conversation_id.clone()).await?;
                return Ok(None);
            }
            Order::Exit => return Ok(Some(Ending::Left)),
            Order::New | Order::Conversations(Some(_)) if !self.story.queued.is_empty() => {
                Line::Note("Not now: a message is queued. /cancel takes it back.".to_owned())
            }
            Order::New => return Ok(self.move_to(Destination::New)),
            Order::Conversations(Some(asked)) => {
                match self.server.named(&asked, self.conversation_id).await {
                    Ok(id) => return Ok(self.move_to(Destination::Of(id))),
                    Err(line) => line,
                }
            }
            Order::Conversations(None) => self.server.conversations(self.conversation_id).await,
            Order::Cancel => match self.cancel().await? {
                Some(line) => line,
                None => return Ok(None),
            },
            Order::Help => Line::Note(order::help()),
            Order::Ask(question) => self.server.tell(question, self.conversation_id).await,
            Order::Wrong(why) => Line::Error(why),
            Order::Say(text) => self.queue(text).await?,
        };
        self.view.line(&line)?;
        Ok(None)
    }

    /// Leaves the turn, which goes on, for another conversation.
    fn move_to(&mut self, destination: Destination) -> Option<Ending> {
        self.moves = Some(destination);
        Some(Ending::Left)
    }

    async fn queue(&mut self, text: String) -> Result<Line> {
        let (conversation_id, id) = (self.conversation_id.clone(), Uuid::new_v4().to_string());
        let message_id = Some(id.clone());
        self.link.send(Command::ChatQueue { conversation_id, text: text.clone(), message_id }).await?;
        let line =
            Line::Note(format!("Queued: {} (/cancel takes it back)", wording::one_line(&text, QUEUED)));
        self.story.queued.push_back(Queued {
            id,
            text,
            is_there: false,
            may_be_lost: false,
            is_unwanted: false,
        });
        Ok(line)
    }

    /// Forgets a message that the server refused to queue. Otherwise, its turn would be waited for.
    pub(super) fn not_queued(&mut self, id: &str, why: String) -> Result<()> {
        let Some(at) = self.story.queued.iter().position(|queued| queued.id == id) else { return Ok(()) };
        if let Some(Queued { text, .. }) = self.story.queued.remove(at) {
            self.view.line(&Line::Note(format!("Not sent: {}", wording::one_line(&text, QUEUED))))?;
        }
        Ok(self.view.line(&Line::Error(why))?)
    }

    /// Withdraws the newest queued message, once the server has it: it was sent over another connection than the request that
    /// withdraws it.
    async fn cancel(&mut self) -> Result<Option<Line>> {
        let queued = &mut self.story.queued;
        let wanted = queued.iter().rposition(|queued| !queued.is_unwanted);
        let Some(newest) = wanted.or(queued.len().checked_sub(1)).map(|at| &mut queued[at]) else {
            return Ok(Some(Line::Note(NOTHING_QUEUED.to_owned())));
        };
        if !newest.is_there && !std::mem::replace(&mut newest.is_unwanted, true) {
            return Ok(None);
        }
        let newest = newest.clone();
        self.withdraw(newest).await.map(Some)
    }

    /// Withdraws a queued message that the server has.
    pub(super) async fn withdraw(&mut self, message: Queued) -> Result<Line> {
        Ok(match self.server.take_back(self.conversation_id, &message.id).await {
            Ok(true) => {
                self.story.queued.retain(|queued| queued.id != message.id);
                Line::Note(format!("Not sent: {}", wording::one_line(&message.text, QUEUED)))
            }
            Ok(false) => message.too_late(),
            Err(error) => Line::Error(error.to_string()),
        })
    }

    async fn models(&self) -> Result<String> {
        let models = self.server.models().await?;
        let current = match &self.chosen {
            Some(chosen) => Some(chosen.clone()),
            None => self.server.model_of(self.conversation_id).await?,
        };
        Ok(model::list(&models, current.as_deref()))
    }

    /// Chooses a model or route: for this turn if it waits, else for the next ones.
    async fn choose(&mut self, asked: &str) -> Result<Line> {
        let models = match self.server.models().await {
            Ok(models) => models,
            Err(error) => return Ok(Line::Error(error.to_string())),
        };
        let model = match model::meant(&models, asked) {
            Ok(model) => model.to_owned(),
            Err(why) => return Ok(Line::Error(why)),
        };
        self.chosen = Some(model.clone());
        if !self.story.may_ask_now() {
            return Ok(Line::Note(format!("{model} answers what you send after this answer.")));
        }
        self.ask_now(Some(model.clone())).await?;
        Ok(Line::Note(format!("Asking {model}.")))
    }
}
