//! The interactive loop between turns.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use crate::{Interrupt, wording};
use anyhow::Result;

use super::{
    Chat, INTERRUPTED, Kept,
    directory::Exchange,
    key, model,
    moving::Destination,
    order::{self, Order},
    prompt::{Answer, Prompt},
    story::Ending,
    turn::{NO_QUESTION, NOT_ASKED, NOTHING_QUEUED},
    view::Line,
};

/// Maximum length of the displayed last message, and of its answer, in characters.
const QUESTION: usize = 300;
const ANSWER: usize = 2000;

impl Chat {
    /// Reads and sends messages until the input ends.
    pub(super) async fn converse(
        &mut self,
        is_active: bool,
        is_new: bool,
        interrupt: &mut Interrupt,
    ) -> Result<ExitCode> {
        let name = match (is_new, &self.model, &self.host.kept) {
            (false, None, Kept::Here(_)) => self.host.server.model_of(&self.conversation_id).await?,
            _ => None,
        };
        self.note(&format!(
            "everturn {} \u{b7} {}\nEnter sends, Ctrl-C stops an answer, Ctrl-D leaves, /help lists commands.",
            env!("CARGO_PKG_VERSION"),
            name.as_ref().unwrap_or(&self.host.name)
        ))?;
        if is_active {
            writeln!(io::stdout())?;
            let ending = self.watch(false, interrupt).await?;
            if self.follow(ending, interrupt).await? {
                return self.leave();
            }
        } else if !is_new {
            self.recall().await?;
        }
        // Used only for completion, so a failure does not matter.
        let models = self.host.server.models().await.unwrap_or_default();
        let prompt = Prompt::start(models)?;
        loop {
            writeln!(io::stdout())?;
            let line = match self.ask(&prompt, interrupt).await? {
                Answer::Interrupted => {
                    self.leave()?;
                    return Ok(INTERRUPTED.into());
                }
                Answer::End => return self.leave(),
                Answer::Message(text) => text,
            };
            if line.trim().is_empty() {
                continue;
            }
            let told = match Order::of(line.trim_end()) {
                Order::Exit => return self.leave(),
                Order::Help => Line::Note(order::help()),
                Order::Ask(question) => self.host.server.tell(question, &self.conversation_id).await,
                Order::Model(asked) => self.choose(asked).await,
                Order::New => {
                    self.moves = Some(Destination::New);
                    self.follow(Ending::Answered, interrupt).await?;
                    continue;
                }
                Order::Compact => match self.host.server.compact(&self.conversation_id).await {
                    Ok(cursor) => {
                        let ending = self.show_compaction(cursor, interrupt).await?;
                        if self.follow(ending, interrupt).await? {
                            return self.leave();
                        }
                        continue;
                    }
                    Err(error) => Line::Error(error.to_string()),
                },
                Order::Conversations(None) => self.host.server.conversations(&self.conversation_id).await,
                Order::Conversations(Some(asked)) => {
                    match self.host.server.named(&asked, &self.conversation_id).await {
                        Ok(id) => {
                            self.moves = Some(Destination::Of(id));
                            if self.follow(Ending::Answered, interrupt).await? {
                                return self.leave();
                            }
                            continue;
                        }
                        Err(line) => line,
                    }
                }
                Order::Stop => Line::Note("Nothing runs.".to_owned()),
                Order::Cancel => Line::Note(NOTHING_QUEUED.to_owned()),
                Order::Answer(_) => Line::Error(NOT_ASKED.to_owned()),
                Order::Skip | Order::Decline => Line::Error(NO_QUESTION.to_owned()),
                Order::Wrong(why) => Line::Error(why),
                order @ (Order::Say(_) | Order::File(..) | Order::Retry(_) | Order::Edit(_)) => {
                    let ending = self.begin(order, false, interrupt).await?;
                    if self.follow(ending, interrupt).await? {
                        return self.leave();
                    }
                    if self.last.failed.is_none() || ending != Ending::Failed {
                        continue;
                    }
                    Line::Note("/retry asks again, /retry MODEL asks another model.".to_owned())
                }
            };
            self.view.line(&told)?;
        }
    }

    /// On leaving, lists messages that were not sent and says how to continue.
    fn leave(&mut self) -> Result<ExitCode> {
        self.say_what_was_not_sent()?;
        if self.is_begun {
            self.say_how_to_go_on()?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Shows the last exchange of a continued conversation.
    pub(super) async fn recall(&mut self) -> Result<()> {
        let Some(Exchange { message, answer }) =
            self.host.server.last_exchange(&self.conversation_id).await?
        else {
            return Ok(());
        };
        self.note(&format!("\n> {}", wording::one_line(&message, QUESTION)))?;
        let start = answer.char_indices().rev().nth(ANSWER).map_or(0, |(start, _)| start);
        let start =
            if start == 0 { 0 } else { answer[start..].find('\n').map_or(start, |line| start + line + 1) };
        self.view.begin()?;
        if start > 0 {
            self.note("...")?;
        }
        if !answer.is_empty() {
            self.view.text(&answer[start..])?;
        }
        Ok(self.view.end()?)
    }

    /// Chooses the model or route of the next turns, or lists them.
    async fn choose(&mut self, asked: Option<String>) -> Line {
        let chosen = async {
            let models = self.host.server.models().await?;
            if let Some(asked) = asked {
                return Ok(model::meant(&models, &asked).map(|model| {
                    self.model = Some(model.to_owned());
                    format!("{model} answers your next message.")
                }));
            }
            let current = match &self.model {
                Some(model) => Some(model.clone()),
                None => self.host.server.model_of(&self.conversation_id).await?,
            };
            Ok(Ok(model::list(&models, current.as_deref())))
        };
        match chosen.await {
            Ok(Ok(told)) => Line::Note(told),
            Ok(Err(why)) => Line::Error(why),
            Err(error) => Line::Error(anyhow::Error::to_string(&error)),
        }
    }

    /// Reads the next message. The connection is serviced meanwhile, as a server disconnects clients that do not
    /// answer.
    async fn ask(&mut self, prompt: &Prompt, interrupt: &mut Interrupt) -> Result<Answer> {
        let answer = prompt.next(std::mem::take(&mut self.draft));
        tokio::pin!(answer);
        loop {
            let news = tokio::select! {
                answer = &mut answer => return answer,
                () = interrupt.next() => {
                    key::restore();
                    writeln!(io::stdout())?;
                    return Ok(Answer::Interrupted);
                }
                news = self.link.next() => news,
            };
            // The prompt still controls the terminal.
            drop(news.inspect_err(|_| key::restore())?);
        }
    }
}
