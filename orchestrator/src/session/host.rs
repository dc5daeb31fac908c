//! The kernel driver's host for one turn.

mod ask;
mod attempts;
mod check;
mod compact;
mod pace;
mod review;
mod tools;
mod usage;

use std::{
    mem,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use everturn_kernel::{
    Checked, Effect, Effects, Host, Input, Millis, Op, ReviewAnswer, ReviewAttempt, StreamEvent, Target,
    ToolAnswer, ToolCall, Turn, Wait, Want,
};
use everturn_wire::{ConversationStatus, EventBody, TurnId};
use futures_core::{future::BoxFuture, stream::BoxStream};
use futures_util::FutureExt as _;

use self::tools::Channel;
use super::{
    Ports, TurnSettings, TurnTask,
    go_to::{self, Way},
    turn_task::{Opening, PendingReplies},
};
use crate::{
    JournalError,
    cluster::Proof,
    conversation::{Batch, Called, Control, Conversation, Inbox, LeftoverMessages},
    model::{Choice, Model},
    observer::TurnEnd,
    panic::guarded,
    shutdown::Stage,
};

/// Minimum length of a wait for parking the turn, in milliseconds.
const PARK_FROM_MS: u64 = 5_000;

pub(super) struct TurnHost<'s> {
    shared: &'s Arc<Ports>,
    conversation: &'s Arc<Conversation>,
    /// Commands from outside.
    control: &'s mut Inbox,
    /// Output and answers of running tools. Created for the first tool, so that a waiting turn has no channel.
    output: Option<Channel>,
    /// The most recent provider call.
    asked: Option<Op>,
    /// The model of that call.
    model: Option<Arc<Model>>,
    /// That call, as recorded if it fails; `None` before the first call and for a call that was held.
    called: Option<Called>,
    turn_id: TurnId,
    /// The targets of the turn.
    targets: Vec<Target>,
    settings: TurnSettings,
    /// The model of the successor, if the command just received makes this turn give way to one.
    successor: Option<Choice>,
    /// Replies owed for the turn's beginning and, later, for the command just received.
    owed: PendingReplies,
    /// Empty after the first commit.
    opening: Opening,
    /// The next turn, begun in the commit that seals this one.
    next: Option<Box<TurnTask>>,
    /// Without it no tool starts; `None` = the journal is not shared.
    proof: Option<Arc<Proof>>,
}

/// What follows a sealed turn.
enum Follows {
    /// The conversation has this status.
    Nothing(ConversationStatus),
    Turn(Box<TurnTask>),
}

impl<'s> TurnHost<'s> {
    pub(super) fn new(
        shared: &'s Arc<Ports>,
        conversation: &'s Arc<Conversation>,
        control: &'s mut Inbox,
        turn: &Turn,
        settings: TurnSettings,
        owed: PendingReplies,
        opening: Opening,
    ) -> Self {
        let (turn_id, targets) = (turn.id().clone(), turn.settings().targets.clone());
        Self {
            shared,
            conversation,
            control,
            output: None,
            asked: None,
            model: None,
            called: None,
            turn_id,
            targets,
            settings,
            successor: None,
            owed,
            opening,
            next: None,
            proof: shared.peers.is_some().then(Arc::default),
        }
    }

    /// Returns the replies not sent yet.
    pub(super) fn into_owed(self) -> PendingReplies {
        self.owed
    }

    /// Builds the batch of this commit. The first and the last commit of a turn also set the status.
    fn batch(&mut self, turn: &Turn, effects: &mut Effects, now: Millis) -> Batch {
        let mut batch = Batch::new(&self.conversation.id, &self.conversation.state())
            .of_call(self.asked.is_some(), self.called.clone());
        batch.approvals = self.settings.definition.approvals;
        batch.scope.clone_from(&self.settings.definition.request);
        let closing = self.conversation.is_closing();
        batch.head.model = Some(self.settings.model.id().to_owned());
        // A turn that waits for people is shown as `queued`, also if a tool that asked them is running.
        let is_asked = matches!(turn.want(), Want::Tools { .. }) && !self.conversation.questions.is_empty();
        let waits_for_people = is_asked || matches!(turn.wait(), Wait::Person { .. });
        batch.status(if waits_for_people { ConversationStatus::Queued } else { ConversationStatus::Active });
        batch.supersede(self.settings.definition.supersedes);
        // Before the effects are taken: if this breaks, they are still there.
        let follows = turn.outcome().map(|_| self.follow(turn, closing));
        if matches!(follows, Some(Follows::Nothing(_))) && !turn.queue().is_empty() {
            // Publish the dropped messages before the end.
            let dropped = EventBody::QueueChanged { queue: Vec::new() };
            batch.effect(Effect::Tell(dropped), turn, now);
        }
        fill(&mut batch, turn, effects, &mut self.opening, now);
        if turn.outcome().is_some() && self.conversation.id.is_ephemeral() {
            // The retention period starts here.
            batch.head.last_activity_at = now;
        } else if turn.outcome().is_some() {
            // For a turn that repeats this one; requests without a conversation are repeated by their callers.
            batch.request = self.settings.inherited(self.shared).kept();
        }
        match follows {
            Some(Follows::Nothing(status)) => batch.status(status),
            Some(Follows::Turn(mut task)) => {
                let TurnTask { turn, effects, settings, opening, .. } = &mut *task;
                batch.begin_next();
                batch.supersede(settings.definition.supersedes);
                batch.scope.clone_from(&settings.definition.request);
                fill(&mut batch, turn, effects, opening, now);
                self.next = Some(task);
            }
            None => {}
        }
        let ended = turn.outcome().filter(|_| self.next.is_none());
        batch.head.end_reason = ended.map(|outcome| outcome.reason.clone());
        batch
    }

    /// Decides what follows a sealed turn: if messages are queued, the next turn, in the same commit as the seal, as a
    /// crash in between would lose them.
    fn follow(&mut self, turn: &Turn, closing: bool) -> Follows {
        let mut left = LeftoverMessages { messages: turn.queue().to_vec(), ..LeftoverMessages::default() };
        if left.take_in(self.control) || closing {
            return Follows::Nothing(ConversationStatus::Closed);
        }
        let mut taken = mem::take(&mut left.taken);
        let (successor, shared, settings) = (self.successor.take(), self.shared, &self.settings);
        let begun = || match successor {
            Some(choice) => {
                Some(go_to::successor(shared, self.conversation, turn, settings, choice, &left.messages))
            }
            None => TurnTask::queued(shared, self.conversation, left, settings.clone()),
        };
        // It calls the schedule and the tools. Broken ones must not keep this turn from ending.
        let begun = guarded("what begins the next turn", begun);
        if begun.is_some() {
            self.owed.taken.append(&mut taken);
        }
        match begun.flatten() {
            Some(task) => Follows::Turn(Box::new(task)),
            None => Follows::Nothing(ConversationStatus::Idle),
        }
    }

    /// Whether a model supports all parameters that the turn's request sets.
    fn accepts(&self, choice: &Choice) -> bool {
        let scope = self.settings.definition.request.as_ref();
        scope.is_none_or(|scope| self.shared.models.now().check_parameters(choice, &scope.parameters).is_ok())
    }

    /// Sends the pending replies: what they are for is durable.
    fn answer(&mut self) {
        for taken in self.owed.taken.drain(..) {
            let _ = taken.send(());
        }
    }

    /// Takes the turn that was begun in the commit that sealed this one.
    pub(super) fn take_next(&mut self) -> Option<Box<TurnTask>> {
        self.next.take()
    }
}

/// Moves what opens a turn, and its effects, into the batch.
fn fill(batch: &mut Batch, turn: &Turn, effects: &mut Effects, opening: &mut Opening, now: Millis) {
    let Opening { accepted, tells_queue } = mem::take(opening);
    batch.accepted(accepted);
    for effect in effects.drain() {
        batch.effect(effect, turn, now);
    }
    if tells_queue {
        let queue = turn.queue().to_vec();
        batch.effect(Effect::Tell(EventBody::QueueChanged { queue }), turn, now);
    }
}

#[async_trait]
impl Host for TurnHost<'_> {
    type Error = JournalError;

    fn now(&self) -> Millis {
        self.shared.clock.now()
    }

    async fn commit(&mut self, turn: &Turn, effects: &mut Effects) -> Result<(), JournalError> {
        let now = self.now();
        let mut batch = self.batch(turn, effects, now);
        if turn.outcome().is_some() {
            self.note_failed_attempts(turn, &mut batch).await;
        }
        let next = self.next.as_ref().map(|next| &next.turn);
        // The settings of the turn that remains after this commit.
        let settings = self.next.as_ref().map_or(&self.settings, |next| &next.settings);
        let commit = batch.commit(turn, next, &settings.definition);
        let (id, expected) = (&self.conversation.id, self.conversation.state().record.version);
        let was = self.conversation.state().record.head.status;
        let sent_at = self.now();
        let version = self.shared.append(id, expected, commit).await?;
        if let Some(proof) = &self.proof {
            proof.renew(sent_at);
        }
        self.grant(&batch).await;
        if turn.outcome().is_some() {
            self.conversation.questions.close_all();
        }
        let (status, from) = (batch.head.status, batch.from);
        let (lines, calls) = (mem::take(&mut batch.lines), batch.provider_calls(turn));
        let used = batch.used;
        let stale = self.conversation.publish(batch, version, turn, next);
        for (turn_id, line) in &lines {
            line.write(id, turn_id, turn, self.settings.model.id(), calls);
        }
        self.count_usage(turn, used, now);
        self.leave_line(turn);
        if self.next.is_some() {
            self.control.drop_stale(stale);
        }
        if turn.outcome().is_some() {
            self.answer();
            self.conversation.observers().ended(&TurnEnd {
                conversation_id: id,
                turn,
                model: self.settings.model.id(),
                trace: self.settings.definition.trace.as_deref(),
                at: now,
            });
        }
        if status != was {
            self.shared.status.tell(id, status);
        }
        if let Some(started) = self.owed.started.take() {
            let _ = started.send(Ok(from));
        }
        Ok(())
    }

    fn tell(&mut self, _: &Turn, effects: &mut Effects) {
        let bodies = effects.drain().filter_map(|effect| match effect {
            Effect::Tell(body) => Some(body),
            Effect::Keep(..) => None,
        });
        self.conversation.tell(&self.turn_id, bodies);
    }

    fn stream(&mut self, turn: &Turn, op: Op) -> BoxStream<'static, StreamEvent> {
        self.ask(turn, op)
    }

    fn run_tool(&mut self, turn: &Turn, step: u32, call: &ToolCall) -> BoxFuture<'static, ToolAnswer> {
        self.start_tool(turn, step, call)
    }

    fn check(&mut self, call: &ToolCall) -> Checked {
        self.check_call(call)
    }

    fn review(
        &mut self,
        turn: &Turn,
        call: &ToolCall,
        attempt: ReviewAttempt,
    ) -> BoxFuture<'static, ReviewAnswer> {
        self.review_call(turn, call, attempt)
    }

    fn sleep(&self, left: Duration) -> BoxFuture<'static, ()> {
        let clock = self.shared.clock.clone();
        async move { clock.sleep(left).await }.boxed()
    }

    /// Whether the turn is left for now: in a long wait; during a shutdown in any wait, before a call not made yet
    /// while draining, and anywhere at `Stage::Leaving`. Pending commands are handled first.
    fn leaves(&mut self, want: Want) -> bool {
        let stage = self.shared.shutdown.stage();
        let leaves = match want {
            Want::Wake(_, until) => stage != Stage::Open || until.since(self.now()) >= PARK_FROM_MS,
            Want::Stream(op) if stage == Stage::Draining => self.asked != Some(op),
            // Published text is saved first; a checkpoint is under way.
            Want::Stream(_) | Want::Tools { .. } => stage == Stage::Leaving && self.conversation.is_saved(),
            Want::Person { until, .. } => until.is_none_or(|until| until > self.now()),
            Want::Nothing => false,
        };
        let leaves = leaves && self.control.is_empty();
        if leaves {
            // Everything is committed, and the next command goes to another host.
            self.answer();
        }
        leaves
    }

    fn poll_inbox(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        // The driver asks for the next input only after the last one was handled and committed.
        self.answer();
        while let Poll::Ready(Some(control)) = self.control.poll(cx) {
            let Control { mut input, taken, model, by_switch, turn, .. } = *control;
            if turn.is_some_and(|turn| turn != self.turn_id) {
                continue;
            }
            // The turn's own message demands retries, which overrides the switch.
            if by_switch && self.settings.definition.configured.auto_retry == Some(true) {
                continue;
            }
            self.successor = None;
            if let Some(model) = model {
                match Way::find(self.shared, &self.settings.model, &self.targets, &model) {
                    Some(Way::Same(same)) => input = *same,
                    // The model lacks a parameter that the request sets.
                    Some(Way::Other(choice)) if !self.accepts(&choice) => continue,
                    Some(Way::Other(choice)) => (input, self.successor) = (Input::MoveAway, Some(choice)),
                    None => continue,
                }
            }
            // A message that was already used cannot be withdrawn: no reply.
            if matches!(&input, Input::Unsteer { message_id } if !self.conversation.waits(message_id)) {
                continue;
            }
            // Only the first answer to a call counts and gets a reply.
            if matches!(&input, Input::Answer(answer) if !self.conversation.is_asked(&self.turn_id, answer)) {
                continue;
            }
            self.owed.taken.extend(taken);
            return Poll::Ready(input);
        }
        let Some((_, output)) = &mut self.output else { return Poll::Pending };
        match output.poll_recv(cx) {
            Poll::Ready(Some(input)) => Poll::Ready(*input),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}
