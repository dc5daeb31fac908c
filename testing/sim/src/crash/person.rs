//! The people of a world: they send messages one after the other, and act according to the plan.

use std::{collections::HashSet, time::Duration};

use everturn_orchestrator::{
    Clock as _, Error, Frame, Journal as _, MemoryJournal, Orchestrator, StartTurn, Window,
};
use everturn_wire::{
    ApprovalAnswer, ApprovalRequest, Approvals, Chunk, ConversationId, ConversationStatus, Role, Verdict,
};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{
    book::Book,
    phase,
    plan::{Deed, What},
};
use crate::WallClock;

/// Maximum duration of a stop.
const STOPPED_WITHIN: Duration = Duration::from_millis(100);

/// The people using the orchestrator of one process.
pub(super) struct Person<'w> {
    pub(super) orchestrator: &'w Orchestrator,
    pub(super) kept: &'w MemoryJournal,
    pub(super) book: &'w Book,
    pub(super) clock: &'w WallClock,
}

impl Person<'_> {
    /// Sends the messages that were not sent yet, each after the previous turn. Afterwards, no turn runs in the
    /// conversation.
    pub(super) async fn say(&self, id: &ConversationId, prompts: &[String]) {
        loop {
            let events = self.orchestrator.subscribe(id, None, false).await;
            let state = self.orchestrator.status(id).await;
            let is_active = state.as_ref().is_ok_and(|state| state.is_active);
            if let (true, Ok(mut events)) = (is_active, events) {
                while !self.ends(events.next().await).await {}
                continue;
            }
            // Without an answer, first check whether the message was received.
            let said = said(self.kept, id).await;
            let Some(text) = prompts.iter().find(|prompt| !said.contains(*prompt)) else {
                // Between two turns it is still active.
                if state.is_ok_and(|state| state.status == ConversationStatus::Active) {
                    sleep(Duration::from_millis(10)).await;
                    continue;
                }
                return;
            };
            let text = text.clone();
            match self.orchestrator.start(StartTurn::new(&text).conversation(id.clone())).await {
                Ok(_) => self.book.pages().accepted.push(text),
                Err(Error::Busy { .. }) => sleep(Duration::from_millis(10)).await,
                Err(error) => {
                    if !self.book.excuses(&error) {
                        self.book.wrong(format!("{id}: {text} cannot be said: {error}"));
                    }
                    sleep(Duration::from_secs(30)).await;
                }
            }
        }
    }

    /// Whether the turn is over for this process.
    async fn ends(&self, event: Result<Frame, Error>) -> bool {
        match event {
            Ok(frame) => frame.ends_turn(),
            Err(_) => {
                // It may be another turn or process by then.
                sleep(Duration::from_secs(1)).await;
                true
            }
        }
    }

    /// Performs all actions at their times.
    pub(super) async fn act(&self, deeds: &[Deed]) {
        let began = Instant::now();
        for deed in deeds {
            sleep_until(began + Duration::from_millis(deed.at_ms)).await;
            let id = ConversationId::from(format!("c{}", deed.conversation));
            self.book.note(|| format!("{id}: {:?}", deed.what));
            self.book.pages().tally.meets(deed.what.name(), phase::of(self.kept, &id));
            match self.act_once(&id, &deed.what).await {
                // It had not begun yet.
                Ok(()) | Err(Error::UnknownConversation { .. }) => {}
                Err(error) if self.book.excuses(&error) => {}
                Err(error) => self.book.wrong(format!("{id}: {:?}: {error}", deed.what)),
            }
        }
    }

    async fn act_once(&self, id: &ConversationId, what: &What) -> Result<(), Error> {
        // Whoever ends a wait does not have to wait, and a wait caused by another conversation has no position in the
        // script.
        let ends_wait = matches!(what, What::Stop | What::Close | What::RetryNow | What::AbortRetry);
        if ends_wait && self.orchestrator.status(id).await?.retry.is_some() {
            self.book.pages().waits.skipped(id);
        }
        let done = match what {
            What::Stop => self.stop(id).await?,
            What::Close => {
                // Queued messages are dropped with it.
                self.book.pages().accepted.retain(|text| !text.starts_with(&format!("{id}.q")));
                self.orchestrator.close(id).await?
            }
            What::RetryNow => self.orchestrator.retry_now(id).await?,
            What::AbortRetry => self.orchestrator.abort_retry(id).await?,
            What::Queue(text) => {
                self.orchestrator.enqueue(id, text.clone(), Some(text.clone())).await?;
                self.book.pages().accepted.push(text.clone());
                true
            }
            What::Unqueue(text) => {
                // If the process ends before it answers, either outcome is right.
                let accepted = self.book.pages().accepted.extract_if(.., |accepted| accepted == text).count();
                let cancelled = self.orchestrator.cancel_queued(id, text).await?.cancelled;
                let mut pages = self.book.pages();
                if cancelled {
                    pages.taken_back.push(text.clone());
                } else if accepted > 0 {
                    pages.accepted.push(text.clone());
                }
                cancelled
            }
            What::SetBack(ms) => {
                self.clock.set(-i64::try_from(*ms).unwrap_or(0));
                self.book.pages().time.set_back += ms;
                true
            }
            What::Suspend(ms) => {
                self.clock.set(i64::try_from(*ms).unwrap_or(0));
                self.book.pages().time.suspend(*ms);
                true
            }
        };
        let mut pages = self.book.pages();
        if done {
            pages.tally.count(match what {
                What::Stop => "a turn is stopped",
                What::Close => "a running conversation is closed",
                What::RetryNow => "a wait is skipped",
                What::AbortRetry => "a wait is given up",
                What::Queue(_) => "a message is queued",
                What::Unqueue(_) => "a message is taken back",
                What::SetBack(_) => "the clock is set back while a process runs",
                What::Suspend(_) => "the machine is suspended",
            });
        }
        let now = self.clock.now().0;
        pages.note(|| format!("{id}: {what:?} was done: {done}, the clock shows {now}"));
        Ok(())
    }

    /// Stops the running turn, and checks that it ends in time.
    async fn stop(&self, id: &ConversationId) -> Result<bool, Error> {
        let mut events = self.orchestrator.subscribe(id, None, false).await?;
        let stopped = self.orchestrator.stop(id).await?;
        let end = async { while events.next().await.is_ok_and(|frame| !frame.ends_turn()) {} };
        if stopped && timeout(STOPPED_WITHIN, end).await.is_err() {
            self.book.wrong(format!("{id}: a stop took longer than {STOPPED_WITHIN:?}"));
        }
        Ok(stopped)
    }
}

/// Answers requests for approval in a conversation, as often as this.
pub(super) async fn answer(orchestrator: Orchestrator, id: ConversationId, answer_ms: u64, book: Book) {
    loop {
        sleep(Duration::from_millis(answer_ms)).await;
        match answer_once(&orchestrator, &id, &book).await {
            Ok(()) => {}
            Err(error) if book.excuses(&error) => {}
            Err(error) => book.wrong(format!("{id}: an answer is refused: {error}")),
        }
    }
}

/// Answers the pending requests for approval in a conversation: allows three of four calls, the same ones in each
/// process.
pub(super) async fn answer_once(
    orchestrator: &Orchestrator,
    id: &ConversationId,
    book: &Book,
) -> Result<(), Error> {
    // It had not begun yet, or cannot be read now.
    let Ok(Approvals { pending, .. }) = orchestrator.approvals(id).await else { return Ok(()) };
    for request in pending {
        let allows = request.input.to_string().bytes().map(u32::from).sum::<u32>() % 4 != 0;
        let ApprovalRequest { turn_id, step_id, tool_call_id, .. } = request;
        let verdict = if allows { Verdict::Allowed } else { Verdict::Denied };
        let step = step_id.step_of(&turn_id).unwrap_or_default();
        if allows {
            book.pages().allowed.insert((turn_id.to_string(), step, tool_call_id.clone()));
        }
        let (scope, reason, name, via) = (None, None, None, None);
        let answer = ApprovalAnswer { turn_id, step_id, tool_call_id, verdict, scope, reason, name, via };
        // False: the turn was stopped meanwhile.
        if orchestrator.answer_approval(id, answer).await? {
            book.pages().tally.count(if allows { "a call is allowed" } else { "a call is denied" });
        }
    }
    Ok(())
}

/// Returns the user messages of a conversation in the journal.
pub(super) async fn said(kept: &MemoryJournal, id: &ConversationId) -> HashSet<String> {
    let chunks = kept.chunks(id, Window::default()).await.unwrap_or_default();
    let by_user = chunks.iter().filter(|stored| stored.role == Role::User);
    by_user
        .filter_map(|stored| match &*stored.chunk {
            Chunk::Text { text } => Some(text.clone()),
            _ => None,
        })
        .collect()
}
