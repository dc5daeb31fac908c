//! The people of a world of several nodes. They send each request to any node, and repeat what was not answered.

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::{Error, StartTurn};
use everturn_wire::ConversationId;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{
    super::{
        person::{answer_once, said},
        phase,
        plan::{Deed, What},
    },
    node::Node,
    world::{World, is_excused},
};
use crate::cluster::Carriage;

/// How long people wait for an answer before they turn to another node.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long an accepted command may take to have its effect.
const CARRIED_OUT_WITHIN: Duration = Duration::from_secs(1);

/// How long a command that was not answered, or a copy of one, may be on its way.
const ON_ITS_WAY: Duration = Duration::from_secs(60);

/// How long after the noise everything must be answered, in milliseconds.
const SETTLED_MS: u64 = 90_000;

impl World {
    /// Says the messages, each after the previous turn, until all are said.
    pub(super) async fn say(&self, id: &ConversationId, prompts: &[String]) {
        for text in prompts {
            while !said(self.log.journal(), id).await.contains(text) {
                if let Some(node) = self.any() {
                    let start = StartTurn::new(text).conversation(id.clone()).idempotency_key(text);
                    self.ledger.book.note(|| format!("{id}: {text} is said at {}", node.name));
                    let started = timeout(PATIENCE, node.orchestrator.start(start));
                    match node.life.while_it_lasts(started).await {
                        Some(Ok(Ok(started))) => {
                            let mut pages = self.ledger.book.pages();
                            let turn = pages.name(started.turn_id.as_str());
                            pages.note(|| format!("{id}: {text} is said: {turn}, new: {}", started.is_new));
                            pages.accepted.push(text.clone());
                        }
                        Some(Ok(Err(Error::Busy { .. }))) | Some(Err(_)) | None => {}
                        Some(Ok(Err(error))) => self.complain(id, text, &error),
                    }
                }
                sleep(Duration::from_millis(200 + self.ledger.book.below(2_000))).await;
            }
        }
    }

    /// Performs all deeds at their times.
    pub(super) async fn act(self: &Arc<Self>) {
        let began = Instant::now();
        let mut acts = Vec::new();
        for deed in &self.plan.deeds {
            sleep_until(began + Duration::from_millis(deed.at_ms)).await;
            if let Some(node) = self.any() {
                acts.push(tokio::spawn(self.clone().act_at(node, deed.clone())));
            }
        }
        for act in acts {
            let _ = act.await;
        }
    }

    /// Performs a deed, however long it takes.
    async fn act_at(self: Arc<Self>, node: Node, deed: Deed) {
        let (id, what) = (ConversationId::from(format!("c{}", deed.conversation)), deed.what);
        self.ledger.book.note(|| format!("{id}: {what:?} at {}", node.name));
        let phase = phase::of(self.log.journal(), &id);
        self.ledger.book.pages().tally.meets(what.name(), phase);
        let hurries = matches!(what, What::Stop | What::RetryNow | What::AbortRetry);
        if hurries {
            self.ledger.hurries(&id);
        }
        let done = node.life.while_it_lasts(self.act_once(&node, &id, &what)).await;
        self.ledger.book.note(|| format!("{id}: {what:?} at {}: {done:?}", node.name));
        if hurries {
            // It was accepted, but may still wait behind the call that continues the turn.
            let (ledger, conversation) = (self.ledger.clone(), id.clone());
            let is_over = matches!(done, Some(Ok(_))) && self.plan.noise.commands == Carriage::default();
            tokio::spawn(async move {
                sleep(if is_over { CARRIED_OUT_WITHIN } else { ON_ITS_WAY }).await;
                ledger.has_hurried(&conversation);
            });
        }
        match done {
            Some(Ok(true)) => self.ledger.book.pages().tally.count(match what {
                What::Stop => "a turn is stopped",
                What::RetryNow => "a wait is skipped",
                What::AbortRetry => "a wait is given up",
                What::Queue(_) => "a message is queued",
                What::Unqueue(_) => "a message is taken back",
                _ => "something else is done",
            }),
            // It had not begun yet, or the process ended.
            Some(Ok(false) | Err(Error::UnknownConversation { .. })) | None => {}
            Some(Err(error)) => self.complain(&id, &format!("{what:?}"), &error),
        }
    }

    async fn act_once(&self, node: &Node, id: &ConversationId, what: &What) -> Result<bool, Error> {
        let (orchestrator, book) = (&node.orchestrator, &self.ledger.book);
        match what {
            What::Stop => orchestrator.stop(id).await,
            What::RetryNow => orchestrator.retry_now(id).await,
            What::AbortRetry => orchestrator.abort_retry(id).await,
            What::Queue(text) => {
                orchestrator.enqueue(id, text.clone(), Some(text.clone())).await?;
                let mut pages = book.pages();
                // Whoever takes it back may be faster than the answer.
                if !self.is_doubtful(text) {
                    pages.accepted.push(text.clone());
                }
                Ok(true)
            }
            What::Unqueue(text) => {
                // If there is no answer, either outcome is right.
                let accepted = book.pages().accepted.extract_if(.., |accepted| accepted == text).count();
                self.doubt(text);
                let cancelled = orchestrator.cancel_queued(id, text).await?.cancelled;
                let mut pages = book.pages();
                if cancelled {
                    pages.taken_back.push(text.clone());
                } else if accepted > 0 {
                    pages.accepted.push(text.clone());
                }
                Ok(cancelled)
            }
            _ => Ok(false),
        }
    }

    /// Answers requests for approval in a conversation, at any node.
    pub(super) async fn answer(self: Arc<Self>, id: ConversationId) {
        loop {
            let about_ms = self.plan.answer_ms;
            sleep(Duration::from_millis(about_ms * 7 / 10 + self.ledger.book.below(2 * about_ms))).await;
            let Some(node) = self.any() else { continue };
            let answered = timeout(PATIENCE, answer_once(&node.orchestrator, &id, &self.ledger.book));
            if let Some(Ok(Err(error))) = node.life.while_it_lasts(answered).await {
                self.complain(&id, "an answer", &error);
            }
        }
    }

    /// Records an error that is not to be expected.
    fn complain(&self, id: &ConversationId, what: &str, error: &Error) {
        self.ledger.book.note(|| format!("{id}: {what}: {error:?}"));
        if self.ledger.is_calm_for(SETTLED_MS) || !is_excused(error) {
            self.ledger.book.wrong(format!("{id}: {what} is refused: {error:?}"));
        }
    }
}
