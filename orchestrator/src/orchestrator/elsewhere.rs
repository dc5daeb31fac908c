//! Carries out commands where their conversation is driven: here, or at another node.

use std::{pin::pin, sync::Arc, time::Duration};

use everturn_wire::{ConversationId, Question, RetryState};
use futures_core::future::BoxFuture;

use super::{Orchestrator, lost_reply::Sent};
use crate::{
    Cursor, Error, JournalError, NodeId, Version,
    cluster::{Addressed, Command, Relayed, Reply, Request, addressed},
    conversation::Conversation,
    registry::{Adopted, Registry},
    session::{self, Ports},
};

/// How often a conversation may change hands while a command is carried out.
const HANDOVERS: usize = 5;

/// How long the judgement that a node is gone is valid. If the journal takes longer, this node may have been cut off itself.
const JUDGED_FOR: Duration = Duration::from_secs(1);

/// How long a node may take to learn that what another one has seen of it was stored.
const KNOWN_WITHIN: Duration = Duration::from_secs(20);

/// How long a node may take to list open questions.
const LISTED_WITHIN: Duration = Duration::from_secs(1);

/// When to judge again after that.
const JUDGE_AGAIN: Duration = Duration::from_millis(10);

/// The outcome of sending a command to the node that drives the conversation.
enum Outcome {
    Reply(Reply),
    /// That node is gone: this one has taken over.
    Adopted {
        conversation: Arc<Conversation>,
        /// That node, if it may have carried the command out.
        unanswered: Option<NodeId>,
    },
    /// Another node drives it now, or none.
    Changed,
}

/// Takes over the turn of a node that is gone, if this one can continue it. If calls of it may be starting, that takes a while.
pub(super) async fn adopt(
    registry: &Registry,
    ports: &Ports,
    id: &ConversationId,
    from: &NodeId,
) -> Result<Arc<Conversation>, Error> {
    match try_adopt(registry, ports, id, from).await? {
        Adopted::Now(conversation) => return Ok(conversation),
        Adopted::After(left) => ports.clock.sleep(left).await,
    }
    let is_back = match &ports.peers {
        Some(peers) => peers.answers(from).await,
        None => false,
    };
    if !is_back && let Adopted::Now(conversation) = try_adopt(registry, ports, id, from).await? {
        return Ok(conversation);
    }
    // Its node was not gone.
    registry.get(id).await
}

/// Takes over the turn of a node that is gone, if this one can continue it and no call of it may be starting.
pub(super) async fn try_adopt(
    registry: &Registry,
    ports: &Ports,
    id: &ConversationId,
    from: &NodeId,
) -> Result<Adopted, Error> {
    let judged_at = ports.clock.now();
    let may_continue = |adopted: &Conversation| {
        let left = session::may_continue(ports, adopted)?;
        let is_outdated = Duration::from_millis(ports.clock.now().since(judged_at)) > JUDGED_FOR;
        Ok(if is_outdated { left.max(JUDGE_AGAIN) } else { left })
    };
    registry.adopt(id, from, may_continue).await
}

impl Orchestrator {
    /// Carries out a command where the conversation is driven. If that node is gone, this one takes the turn over.
    ///
    /// Boxed here, so that the code of all commands is compiled once and not into each caller.
    pub(super) fn command<'a>(
        &'a self,
        id: &'a ConversationId,
        command: Command,
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        Box::pin(self.carry_out(id, command))
    }

    async fn carry_out(&self, id: &ConversationId, command: Command) -> Result<Reply, Error> {
        let (mut adopted, mut meant) = (None, None);
        // Once another node got the command: it may have carried it out, whatever it replied to a copy.
        let (mut sent, mut unanswered) = (None, None);
        let mut meant_retry = None;
        for _ in 0..HANDOVERS {
            let conversation = match adopted.take() {
                Some(adopted) => adopted,
                None => self.registry.get(id).await?,
            };
            let (turn, retry) = {
                let state = conversation.state();
                let running = state.live.running.as_ref();
                (running.map(|turn| turn.from), running.and_then(|turn| turn.retry.clone()))
            };
            if *meant.get_or_insert(turn) != turn && command.is_for_a_turn() {
                // The turn that it was meant for has ended while it changed hands.
                return known(id, &command, unanswered, Reply::Done(false));
            }
            let is_elsewhere = self.ports.peers.is_some() && conversation.elsewhere().is_some();
            let meant_retry = meant_retry.get_or_insert_with(|| retry.clone());
            let ends = |retry: &Option<RetryState>| retry.as_ref().and_then(|retry| retry.next_at);
            // The wait that it was meant for has ended while it changed hands.
            let is_over = ends(meant_retry).is_some() && ends(meant_retry) != ends(&retry);
            // It may have ended one wait already, and must not end another.
            let may_be_over = unanswered.is_some() && (*meant_retry != retry || is_elsewhere);
            if (is_over || may_be_over) && matches!(command, Command::RetryNow { .. }) {
                return known(id, &command, unanswered, Reply::Done(false));
            }
            if let Some(sent) = &sent
                && let Some(reply) = self.reply_from_events(&conversation, sent, &command).await?
            {
                return Ok(reply);
            }
            if is_elsewhere {
                sent.get_or_insert_with(|| Sent::now(&conversation));
                match self.relay(&conversation, command.clone()).await? {
                    Outcome::Reply(reply) => return known(id, &command, unanswered, reply),
                    Outcome::Adopted { conversation, unanswered: node } => {
                        unanswered = unanswered.or(node);
                        adopted = Some(conversation);
                    }
                    Outcome::Changed => {}
                }
                continue;
            }
            session::go_on_if_due(&self.ports, &conversation)?;
            match self.perform(&conversation, command.clone()).await {
                // Another node was faster: that one gets the command.
                Err(Error::Elsewhere { .. } | Error::Journal(JournalError::Stale { .. })) => {}
                done => return done.and_then(|reply| known(id, &command, unanswered, reply)),
            }
        }
        Err(Error::Elsewhere { id: id.clone() })
    }

    /// Sends a command to the node that drives the conversation.
    async fn relay(&self, conversation: &Conversation, command: Command) -> Result<Outcome, Error> {
        let (Some(peers), Some((owner, turn))) = (&self.ports.peers, conversation.elsewhere()) else {
            return Ok(Outcome::Changed);
        };
        let (id, version) = (&conversation.id, conversation.state().record.version);
        let wait = match command {
            Command::RetryNow { .. } => conversation.wait_ends_at(),
            _ => None,
        };
        match peers.relay(&owner, id, (turn, wait, version), command).await {
            Relayed::Reply(Reply::NotHere) => {
                conversation.catch_up(&*self.ports.journal).await?;
                Ok(Outcome::Changed)
            }
            Relayed::Reply(Reply::Failed { fault, message }) => Err(Error::Remote { fault, message }),
            Relayed::Reply(reply) => Ok(Outcome::Reply(reply)),
            Relayed::NoOwner { may_have_acted } => {
                tracing::info!(conversation = %id, %owner, "taking over a turn: its server does not answer");
                let conversation = adopt(&self.registry, &self.ports, id, &owner).await?;
                Ok(Outcome::Adopted { conversation, unanswered: may_have_acted.then_some(owner) })
            }
            Relayed::Unanswered => Err(Error::NoReply { id: id.clone(), node: owner }),
        }
    }

    /// Returns the open questions of a conversation's tools, wherever they run. None if their node does not answer in time.
    pub(super) async fn open_questions(&self, conversation: &Conversation) -> Vec<Question> {
        let (Some(peers), Some((owner, _))) = (&self.ports.peers, conversation.elsewhere()) else {
            return conversation.questions.list();
        };
        match peers.ask(&owner, &Request::Questions { id: conversation.id.clone() }, LISTED_WITHIN).await {
            Ok(Reply::Questions(questions)) => questions,
            _ => Vec::new(),
        }
    }

    /// If another node drives the conversation, checks that it is alive, and otherwise takes its turn over. Returns the
    /// instance that is current then.
    pub(super) async fn rouse(&self, conversation: Arc<Conversation>) -> Result<Arc<Conversation>, Error> {
        let (Some(peers), Some((owner, _))) = (&self.ports.peers, conversation.elsewhere()) else {
            return Ok(conversation);
        };
        if peers.answers(&owner).await {
            return Ok(conversation);
        }
        adopt(&self.registry, &self.ports, &conversation.id, &owner).await
    }

    /// Whether this request has arrived before.
    pub(super) fn is_repeated(&self, request: &Request) -> bool {
        self.ports.peers.as_ref().is_some_and(|peers| peers.arrived.is_repeated(request))
    }

    /// Carries out a request of another node.
    pub(super) async fn answer_node(&self, request: Request) -> Reply {
        match request {
            _ if self.ports.shutdown.is_down() => Reply::Left,
            Request::Ping => Reply::Done(true),
            Request::TakeOver => {
                if let Some(peers) = &self.ports.peers {
                    let mut looked = pin!(peers.has_looked.notified());
                    looked.as_mut().enable();
                    peers.look_now.notify_one();
                    // The node that leaves waits for this: as long as it is there, it tells everybody that it has left.
                    tokio::select! {
                        () = looked => {}
                        () = self.ports.shutdown.down() => {}
                    }
                }
                Reply::Done(true)
            }
            Request::Continue { id } => Reply::Done(self.continue_orphan(&id).await.unwrap_or_else(|error| {
                tracing::info!(conversation = %id, %error, "a turn without a server is not continued here");
                false
            })),
            Request::Tail { id, after } => match self.registry.held(&id) {
                Some(held) if held.elsewhere().is_none() => {
                    Reply::Tail(held.tail(Cursor::from_value(after)).into())
                }
                _ => Reply::NotHere,
            },
            Request::Questions { id } => match self.registry.held(&id) {
                Some(held) if held.elsewhere().is_none() => Reply::Questions(held.questions.list()),
                _ => Reply::NotHere,
            },
            Request::Command { id, turn, wait, version, command, .. } => {
                let performed = self.perform_for_node(&id, (turn, wait, Version(version)), command);
                performed.await.into()
            }
        }
    }

    /// Continues a turn whose node is gone. Returns whether it has a node now.
    async fn continue_orphan(&self, id: &ConversationId) -> Result<bool, Error> {
        let conversation = self.registry.get(id).await?;
        let conversation = match (conversation.elsewhere(), &self.ports.peers) {
            (Some((owner, _)), Some(peers)) if peers.is_gone(&owner).await => {
                adopt(&self.registry, &self.ports, id, &owner).await?
            }
            _ => conversation,
        };
        session::go_on_if_due(&self.ports, &conversation)?;
        Ok(true)
    }

    async fn perform_for_node(
        &self,
        id: &ConversationId,
        (turn, wait, version): (Option<u64>, Option<u64>, Version),
        command: Command,
    ) -> Result<Reply, Error> {
        let conversation = tokio::select! {
            known = self.knows(id, version) => known?,
            () = self.ports.clock.sleep(KNOWN_WITHIN) => return Ok(Reply::NotHere),
        };
        if conversation.elsewhere().is_some() {
            return Ok(Reply::NotHere);
        }
        let running = conversation.state().live.running.as_ref().map(|turn| turn.from.value());
        match addressed(&turn, &running, command.is_for_a_turn()) {
            Addressed::Here => {}
            Addressed::Over => return Ok(Reply::Done(false)),
            Addressed::Again => return Ok(Reply::NotHere),
        }
        if wait.is_some() && conversation.wait_ends_at() != wait {
            return Ok(Reply::Done(false));
        }
        // The same message may have come before: this request is late, or a repetition. One at a time, so that the events tell.
        let _alone;
        if let (Command::Enqueue { .. }, Some(turn)) = (&command, turn) {
            _alone = self.registry.alone_with_queue(id).await;
            let sent = Sent::since(Cursor::from_value(turn));
            if let Some(reply) = self.reply_from_events(&conversation, &sent, &command).await? {
                return Ok(reply);
            }
        }
        session::go_on_if_due(&self.ports, &conversation)?;
        self.perform(&conversation, command).await
    }

    /// Waits until this node knows what the sender of a command saw. That may have been stored by this node, which has not
    /// learned that yet.
    async fn knows(&self, id: &ConversationId, version: Version) -> Result<Arc<Conversation>, Error> {
        loop {
            let conversation = self.registry.get(id).await?;
            {
                let mut grew = pin!(conversation.grew.notified());
                // Register before checking, so that no notification is missed.
                grew.as_mut().enable();
                if conversation.elsewhere().is_none() && conversation.state().record.version < version {
                    grew.await;
                    continue;
                }
            }
            return Ok(conversation);
        }
    }

    /// Carries out a command here.
    async fn perform(&self, conversation: &Arc<Conversation>, command: Command) -> Result<Reply, Error> {
        Ok(match command {
            Command::Stop => Reply::Done(self.stop_here(conversation, None).await?),
            Command::StopTurn { turn_id } => Reply::Done(self.stop_here(conversation, Some(turn_id)).await?),
            Command::AbortRetry => Reply::Done(self.abort_retry_here(conversation).await?),
            Command::RetryNow { model } => Reply::Done(self.retry_now_here(conversation, model).await?),
            Command::Close => Reply::Done(self.close_here(conversation).await?),
            Command::Delete => Reply::Done(self.delete_here(conversation).await?),
            Command::Enqueue { text, message_id } => {
                Reply::Queued(self.enqueue_here(conversation, text, message_id).await?)
            }
            Command::CancelQueued { message_id } => {
                Reply::Cancelled(self.cancel_queued_here(conversation, message_id).await?)
            }
            Command::Answer(answer) => Reply::Done(self.answer_here(conversation, *answer).await?),
            Command::Question(answer) => Reply::Done(self.answer_question_here(conversation, *answer)?),
            Command::RevokeTool { tool } => Reply::Done(self.revoke_tool_here(conversation, &tool).await?),
            Command::ChangeRetry(patch) => {
                Reply::RetrySettings(Box::new(self.change_retry_of(conversation, &patch).await?))
            }
        })
    }
}

/// Returns the reply, unless it says that a command had no effect which a node may have carried out that did not answer.
fn known(
    id: &ConversationId,
    command: &Command,
    unanswered: Option<NodeId>,
    reply: Reply,
) -> Result<Reply, Error> {
    match (reply, unanswered, command) {
        // A stop was for a turn that is over now.
        (Reply::Done(false), Some(_), Command::Stop | Command::StopTurn { .. }) => Ok(Reply::Done(true)),
        (
            Reply::Done(false),
            Some(node),
            Command::RetryNow { .. } | Command::AbortRetry | Command::Answer(_) | Command::Question(_),
        ) => Err(Error::NoReply { id: id.clone(), node }),
        (reply, ..) => Ok(reply),
    }
}
