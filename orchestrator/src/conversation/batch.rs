//! What one commit adds to a conversation: first to the journal, then to the live event stream.

use std::sync::Arc;

use everturn_kernel::{Effect, Millis, Outcome, Target, Turn, Want};
use everturn_wire::{
    ApprovalMode, ApprovalScope, CallerCall, Category, Chunk, CompactionCause, ConversationId,
    ConversationStatus, ErrorReport, EventBody, FailedAttempt, QueuedMessage, RetryPhase, Role, StepId,
    StoredChunk, TurnId, TurnMetrics, Value,
};

use super::{Record, State};
use crate::{
    Commit, Cursor, Definition, Frame, Head, RequestScope, TurnRecord, attempt::brief, telemetry::Count,
    turn_log::LogLine, usage::Figures,
};

/// Maximum length of a title, in characters.
const TITLE_CHARS: usize = 80;

/// What one commit adds to a conversation.
pub(crate) struct Batch {
    pub(crate) head: Head,
    pub(crate) chunks: Vec<Arc<StoredChunk>>,
    pub(crate) frames: Vec<Frame>,
    /// The start of the turn's first event.
    pub(crate) from: Cursor,
    /// The `seq` of the turn's first chunk.
    pub(crate) first_seq: u64,
    /// What the request of the turn sets that runs afterwards.
    pub(crate) scope: Option<Arc<RequestScope>>,
    /// Metrics to record once the batch is durable.
    pub(super) counts: Vec<Count>,
    /// What the turn's calls used, to be counted once the batch is durable.
    pub(crate) used: Figures,
    /// Lines to log once the batch is durable, each with its turn.
    pub(crate) lines: Vec<(TurnId, LogLine)>,
    /// Whether the turn waited for a retry when it was last saved.
    was_waiting: bool,
    /// The first and last `seq` of the turn that this commit belongs to.
    sealed_seqs: (u64, u64),
    /// The first `seq` that the next chunk supersedes.
    supersedes: Option<u64>,
    /// The first `seq` that the turn which begins in this commit supersedes.
    mark: Option<u64>,
    /// The duration of the turn, as reported by its end event.
    duration_ms: Option<u64>,
    /// The calls that the turn handed to its caller.
    calls: Vec<CallerCall>,
    /// Whether additions belong to the next turn.
    is_next: bool,
    /// Streamed text that was published since the last commit; this commit makes it durable.
    told: Vec<Frame>,
    id: ConversationId,
    /// The most recent provider call.
    called: Option<Called>,
    /// Whether what was asked last was known without a call.
    needs_no_call: bool,
    /// Whether it ends a summary, with or without success.
    pub(crate) ends_summary: bool,
    /// The failed attempt that ended the turn.
    pub(crate) ended_by: Option<FailedAttempt>,
    /// All failed attempts of the sealed turn.
    pub(crate) failed_attempts: Vec<FailedAttempt>,
    /// What happens to calls of the turn that need a person's approval.
    pub(crate) approvals: ApprovalMode,
    /// What the sealed turn's request set, if anything.
    pub(crate) request: Option<Box<Value>>,
    /// The calls of tools that have a result now.
    pub(super) ended_calls: Vec<String>,
    /// The call by which a person allowed a tool for the whole conversation.
    pub(crate) grants: Option<(StepId, String)>,
}

/// A provider call.
#[derive(Clone)]
pub(crate) struct Called {
    /// The target, as `credential/model`.
    pub(crate) target: String,
    /// The model, whatever the credential.
    pub(crate) model: String,
    pub(crate) at: Millis,
}

impl Called {
    pub(crate) fn new(target: &Target, at: Millis) -> Self {
        Self { target: target.name.clone(), model: target.model.clone(), at }
    }
}

impl Batch {
    pub(crate) fn new(id: &ConversationId, state: &State) -> Self {
        let State { record: Record { head, .. }, live } = state;
        let running = live.running.as_ref();
        let first_seq = running.map_or(head.last_seq + 1, |turn| turn.first_seq);
        Self {
            head: Head { end: live.log.end(), ..head.clone() },
            chunks: Vec::new(),
            frames: Vec::new(),
            from: running.map_or(live.log.end(), |turn| turn.from),
            first_seq,
            scope: None,
            counts: Vec::new(),
            used: Figures::default(),
            lines: Vec::new(),
            was_waiting: running
                .and_then(|turn| turn.retry.as_ref())
                .is_some_and(|retry| retry.phase == RetryPhase::Waiting && retry.shared.is_none()),
            sealed_seqs: (first_seq, head.last_seq),
            supersedes: None,
            mark: None,
            duration_ms: None,
            calls: Vec::new(),
            is_next: false,
            told: live.log.merged_after(live.journaled),
            id: id.clone(),
            called: None,
            needs_no_call: false,
            ends_summary: false,
            ended_by: None,
            failed_attempts: Vec::new(),
            approvals: ApprovalMode::Ask,
            request: None,
            ended_calls: Vec::new(),
            grants: None,
        }
    }

    /// Attributes failures in this batch to `called`. `has_asked`: whether this process has asked for an answer; without a call, it
    /// was known without one.
    pub(crate) fn of_call(mut self, has_asked: bool, called: Option<Called>) -> Self {
        self.needs_no_call = has_asked && called.is_none();
        self.called = called;
        self
    }

    pub(crate) fn effect(&mut self, effect: Effect, turn: &Turn, now: Millis) {
        let turn_id = turn.id();
        match effect {
            Effect::Tell(mut body) => {
                match &mut body {
                    EventBody::Done { duration_ms, calls, model, .. } => {
                        (self.duration_ms, self.calls) = (*duration_ms, calls.clone());
                        *model = self.model(turn);
                    }
                    EventBody::TurnStart { message_seq, supersedes, .. } => {
                        // A history that came with the turn may end with tool results.
                        let of_user = self.chunks.last().is_some_and(|last| last.role == Role::User);
                        let has_message = self.head.last_seq >= self.first_seq && of_user;
                        *message_seq = has_message.then_some(self.head.last_seq);
                        *supersedes = self.mark;
                    }
                    EventBody::ProviderRetry { shared: None, failed_target, latency_ms, .. } => {
                        *failed_target = self.called.as_ref().map(|call| call.target.clone());
                        *latency_ms = self.called.as_ref().map(|call| now.since(call.at));
                        self.used.refusals += u64::from(self.called.is_some());
                    }
                    EventBody::CompactionStarted {
                        cause: CompactionCause::Overflow,
                        failed_target,
                        failed_at,
                        latency_ms,
                        ..
                    } => {
                        *failed_target = self.called.as_ref().map(|call| call.target.clone());
                        *failed_at = self.called.as_ref().map(|_| now.0);
                        *latency_ms = self.called.as_ref().map(|call| now.since(call.at));
                        self.used.refusals += u64::from(self.called.is_some());
                    }
                    EventBody::CompactionCompleted { .. } => self.ends_summary = true,
                    EventBody::Usage { usage, .. } => {
                        let target = self.called.as_ref().map(|call| call.target.clone());
                        self.counts.extend(target.map(|target| Count::Tokens(target, *usage)));
                        self.used.add(&Figures::from(&*usage));
                    }
                    EventBody::ApprovalResolved {
                        step_id,
                        tool_call_id,
                        scope: Some(ApprovalScope::Conversation),
                        ..
                    } => self.grants = Some((step_id.clone(), tool_call_id.clone())),
                    EventBody::ToolResult { tool_call_id, .. } => self.ended_calls.push(tool_call_id.clone()),
                    EventBody::Error(report) => {
                        self.attribute(report);
                        self.ended_by = self.failed(report, turn_id, now);
                        // One that was waiting had its last refusal counted before.
                        self.used.refusals += u64::from(self.ended_by.is_some() && !self.was_waiting);
                    }
                    _ => {}
                }
                self.counts.extend(Count::of(&body));
                self.lines.extend(LogLine::of(&body).map(|line| (turn_id.clone(), line)));
                self.event(Some(turn_id), body);
            }
            Effect::Keep(role, mut chunk) => {
                if let Chunk::Error(report) = &mut chunk {
                    self.attribute(report);
                }
                self.chunk(role, chunk, now);
            }
        }
    }

    /// Names the model that rejected an image.
    fn attribute(&self, report: &mut ErrorReport) {
        if let (Some(rejected), Some(called)) = (&mut report.rejected_image, &self.called) {
            rejected.model = Some(called.model.clone());
        }
    }

    /// Returns the failed attempt behind the error that ends a turn. An internal error is one only after retries: then the
    /// provider panicked. The step is filled in later.
    fn failed(&self, report: &ErrorReport, turn_id: &TurnId, now: Millis) -> Option<FailedAttempt> {
        let is_attempt = report.category != Some(Category::Internal) || report.retries.is_some();
        let called = self.called.as_ref().filter(|_| is_attempt)?;
        Some(FailedAttempt {
            turn_id: turn_id.clone(),
            step: 0,
            attempt: report.retries.unwrap_or(0),
            target: Some(called.target.clone()),
            category: report.category,
            code: report.code.clone(),
            message: brief(report.message.clone()),
            failed_at: now.0,
            latency_ms: Some(now.since(called.at)),
            wait_ms: None,
            because: None,
        })
    }

    /// Makes the turn's first chunk, unless it was already saved, supersede the history from this `seq` on.
    pub(crate) fn supersede(&mut self, from: Option<u64>) {
        if self.head.last_seq + 1 == self.first_seq {
            (self.supersedes, self.mark) = (from, from);
        }
    }

    /// Assigns all further additions to the next turn.
    pub(crate) fn begin_next(&mut self) {
        (self.from, self.first_seq) = (self.head.end, self.head.last_seq + 1);
        (self.is_next, self.supersedes, self.mark) = (true, None, None);
    }

    /// Changes the conversation's status if it differs. Before the turn's first event, the turn's start moves along.
    pub(crate) fn status(&mut self, status: ConversationStatus) {
        if self.head.status == status {
            return;
        }
        self.head.status = status;
        self.event_of_no_turn(EventBody::Status { status, retry: None });
    }

    /// Publishes messages that were accepted while no turn could queue them, before one of them begins a turn.
    pub(crate) fn accepted(&mut self, queue: Vec<QueuedMessage>) {
        if !queue.is_empty() {
            self.event_of_no_turn(EventBody::QueueChanged { queue });
        }
    }

    fn event_of_no_turn(&mut self, body: EventBody) {
        let begins_here = self.from == self.head.end;
        self.event(None, body);
        if begins_here {
            self.from = self.head.end;
        }
    }

    fn event(&mut self, turn_id: Option<&TurnId>, body: EventBody) {
        let frame = Frame::new(self.head.end, &self.id, turn_id, body);
        self.head.end = frame.end();
        self.frames.push(frame);
    }

    fn chunk(&mut self, role: Role, chunk: Chunk, now: Millis) {
        if let (true, Role::User, Chunk::Text { text }) = (self.head.title.is_empty(), role, &chunk) {
            self.head.title = title(text);
        }
        self.head.last_seq += 1;
        self.head.last_activity_at = now;
        if !self.is_next {
            self.sealed_seqs.1 = self.head.last_seq;
        }
        // When a turn is retried, its first chunk supersedes the output of the previous try.
        let supersedes = self.supersedes.take();
        self.chunks.push(Arc::new(StoredChunk {
            seq: self.head.last_seq,
            role,
            chunk: Arc::new(chunk),
            supersedes,
        }));
    }

    /// Returns the batch as one append. `next`: the turn that follows this one, which is sealed.
    pub(crate) fn commit(&self, turn: &Turn, next: Option<&Turn>, definition: &Definition) -> Commit {
        // Frames of the next turn are kept apart, as they expire with their own turn.
        let is_next = |frame: &Frame| next.is_some() && frame.start() >= self.from;
        let (next_events, events): (Vec<_>, Vec<_>) =
            self.told.iter().chain(&self.frames).partition(|frame| is_next(frame));
        let stored = |frames: Vec<&Frame>| frames.into_iter().map(Frame::to_stored).collect();
        let running = if turn.outcome().is_some() { next } else { Some(turn) };
        Commit {
            head: self.head.clone(),
            turn: running.map(|turn| {
                Box::new(TurnRecord {
                    snapshot: turn.snapshot(),
                    wait: turn.wait(),
                    from: self.from,
                    first_seq: self.first_seq,
                    definition: definition.clone(),
                })
            }),
            chunks: self.chunks.clone(),
            events: stored(events),
            sealed: turn.outcome().map(|outcome| Box::new(self.metrics(turn, outcome))),
            next_events: stored(next_events),
        }
    }

    /// Returns the model that answered last. With a route, it is the target.
    fn model(&self, turn: &Turn) -> Option<String> {
        turn.target().map(|target| target.name.clone()).or_else(|| self.head.model.clone())
    }

    /// Returns the number of calls that the turn has made to answer, without those that a restart repeated.
    pub(crate) fn provider_calls(&self, turn: &Turn) -> u32 {
        let is_one_more = matches!(turn.want(), Want::Stream(_)) && !turn.is_summarizing();
        let has_failed = turn.outcome().is_some_and(|outcome| outcome.failure.is_some());
        let is_one_less = has_failed && self.needs_no_call && !self.was_waiting && !self.ends_summary;
        turn.answer_calls().saturating_add(is_one_more.into()).saturating_sub(is_one_less.into())
    }

    fn metrics(&self, turn: &Turn, outcome: &Outcome) -> TurnMetrics {
        TurnMetrics {
            turn_id: turn.id().clone(),
            usage: turn.usage().unwrap_or_default(),
            duration_ms: self.duration_ms,
            steps: turn.steps(),
            context_size: turn.context_size(),
            reason: Some(outcome.reason.clone()),
            category: outcome.failure.as_ref().map(|failure| failure.category),
            model: self.model(turn),
            first_seq: Some(self.sealed_seqs.0),
            last_seq: Some(self.sealed_seqs.1),
            first_token_ms: turn.first_token_at().map(|at| at.since(turn.started_at())),
            retries: Some(turn.retries()).filter(|retries| *retries > 0),
            waited_ms: Some(turn.waited_ms()).filter(|waited| *waited > 0),
            provider_calls: Some(self.provider_calls(turn)),
            retry_of: turn.retry_of().cloned(),
            final_report: outcome.report.clone(),
            calls: self.calls.clone(),
            failed_attempts: Some(self.failed_attempts.clone()).filter(|attempts| !attempts.is_empty()),
            approvals: Some(self.approvals).filter(|mode| *mode != ApprovalMode::Ask),
            request: self.request.clone(),
        }
    }
}

/// Returns a title: the first line that is not blank.
fn title(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(TITLE_CHARS) {
        Some((at, _)) => format!("{}…", line[..at].trim_end()),
        None => line.to_owned(),
    }
}
