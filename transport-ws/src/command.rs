//! Executes a command.

use everturn_orchestrator::{Cursor, Error, RetryTurn, StartTurn, Started, Subscription, View};
use everturn_wire::{ApprovalAnswer, Command, ConversationId, QuestionAnswer};

use crate::protocol::Urgency;

/// What remains to be done for the socket after a command.
pub(crate) enum Outcome {
    Done,
    /// Nothing: there was no turn or wait that the command applied to.
    Nobody,
    /// Send these events, whether or not the conversation is already watched.
    Watch {
        id: ConversationId,
        subscription: Subscription,
        extensions: bool,
    },
    /// Send the events of a turn that has begun. If the conversation is already watched, its position is kept, so that
    /// no event is repeated or skipped.
    Follow {
        id: ConversationId,
        subscription: Subscription,
        /// `None` = unchanged.
        extensions: Option<bool>,
    },
    Unwatch(ConversationId),
}

/// Executes a command.
pub(crate) async fn carry_out(orchestrator: &View, command: Command) -> Result<Outcome, Error> {
    match command {
        Command::ChatSend {
            conversation_id,
            message,
            model,
            images,
            reasoning_effort,
            retry,
            approvals,
            final_report,
            model_settings,
            priority,
            extensions,
        } => {
            let mut start = StartTurn::new(message).images(images.unwrap_or_default());
            start.conversation_id = conversation_id;
            (start.model, start.reasoning_effort) = (model, reasoning_effort);
            start.retry = retry.map(|settings| *settings);
            start.approvals = approvals.unwrap_or_default();
            start.final_report = final_report.map(|report| *report);
            start.model_settings = model_settings.map(|settings| *settings);
            start.priority = priority.unwrap_or_default();
            return follow(orchestrator, orchestrator.start(start).await?, extensions).await;
        }
        Command::ChatRetry {
            conversation_id: id,
            turn_id,
            seq,
            message,
            model,
            retry,
            approvals,
            extensions,
        } => {
            let mut what = RetryTurn::default();
            (what.turn_id, what.seq, what.text, what.model) = (turn_id, seq, message, model);
            (what.retry, what.approvals) = (retry.map(|settings| *settings), approvals);
            let started = orchestrator.retry_with(&id, what).await?;
            return follow(orchestrator, started, extensions).await;
        }
        Command::ChatSubscribe { conversation_id: id, cursor, extensions } => {
            let cursor = cursor.map(|cursor| cursor.parse::<Cursor>().map_err(Error::from)).transpose()?;
            let extensions = extensions.unwrap_or(false);
            let subscription = orchestrator.subscribe(&id, cursor, extensions).await?;
            return Ok(Outcome::Watch { id, subscription, extensions });
        }
        Command::ChatUnsubscribe { conversation_id: id } => return Ok(Outcome::Unwatch(id)),
        Command::ChatQueue { conversation_id: id, text, message_id } => {
            orchestrator.enqueue(&id, text, message_id).await?;
        }
        Command::ChatQueueCancel { conversation_id: id, message_id } => {
            orchestrator.cancel_queued(&id, &message_id).await?;
        }
        Command::ChatStop { conversation_id: id } => {
            return told(orchestrator.stop(&id).await?);
        }
        Command::ApprovalAnswer {
            conversation_id: id,
            turn_id,
            step_id,
            tool_call_id,
            verdict,
            scope,
            reason,
            name,
            via,
        } => {
            let via = Some(via.unwrap_or_else(|| "websocket".to_owned()));
            let answer = ApprovalAnswer { turn_id, step_id, tool_call_id, verdict, scope, reason, name, via };
            orchestrator.answer_approval(&id, answer).await?;
        }
        Command::QuestionAnswer { conversation_id: id, question_id, action, content, name, via } => {
            let via = Some(via.unwrap_or_else(|| "websocket".to_owned()));
            let answer = QuestionAnswer { question_id, action, content, name, via };
            orchestrator.answer_question(&id, answer).await?;
        }
        Command::RetryAbort { conversation_id: id } => {
            return told(orchestrator.abort_retry(&id).await?);
        }
        Command::RetryNow { conversation_id: id, model: None } => {
            return told(orchestrator.retry_now(&id).await?);
        }
        Command::RetryNow { conversation_id: id, model: Some(model) } => {
            return told(orchestrator.retry_now_with(&id, &model).await?);
        }
        Command::RetrySet { conversation_id: id, settings } => {
            orchestrator.change_retry_settings(id.as_ref(), &settings).await?;
        }
    }
    Ok(Outcome::Done)
}

fn told(somebody: bool) -> Result<Outcome, Error> {
    Ok(if somebody { Outcome::Done } else { Outcome::Nobody })
}

async fn follow(orchestrator: &View, started: Started, extensions: Option<bool>) -> Result<Outcome, Error> {
    let Started { conversation_id: id, from, .. } = started;
    let subscription = orchestrator.subscribe(&id, Some(from), extensions.unwrap_or(false)).await?;
    Ok(Outcome::Follow { id, subscription, extensions })
}

/// Returns the conversation of a command.
pub(crate) fn conversation(command: &Command) -> Option<&ConversationId> {
    match command {
        Command::ChatSend { conversation_id, .. } | Command::RetrySet { conversation_id, .. } => {
            conversation_id.as_ref()
        }
        Command::ChatSubscribe { conversation_id, .. }
        | Command::ChatUnsubscribe { conversation_id }
        | Command::ChatQueue { conversation_id, .. }
        | Command::ChatQueueCancel { conversation_id, .. }
        | Command::ChatStop { conversation_id }
        | Command::ChatRetry { conversation_id, .. }
        | Command::ApprovalAnswer { conversation_id, .. }
        | Command::QuestionAnswer { conversation_id, .. }
        | Command::RetryAbort { conversation_id }
        | Command::RetryNow { conversation_id, .. } => Some(conversation_id),
    }
}

/// Returns the id of the message that a command would queue.
pub(crate) fn queued(command: &Command) -> Option<&str> {
    match command {
        Command::ChatQueue { message_id, .. } => message_id.as_deref(),
        _ => None,
    }
}

/// How a command is ordered relative to earlier ones.
pub(crate) fn urgency(command: &Command) -> Urgency {
    match command {
        Command::ChatStop { .. } | Command::RetryAbort { .. } | Command::RetryNow { model: None, .. } => Urgency::Urgent,
        Command::ChatSend { .. } | Command::ChatRetry { .. } => Urgency::Starts,
        Command::ChatSubscribe { .. }
        | Command::ChatUnsubscribe { .. }
        | Command::ChatQueue { .. }
        | Command::ChatQueueCancel { .. }
        // Urgent commands must be short, but a model name may have any length.
        | Command::RetryNow { model: Some(_), .. }
        | Command::ApprovalAnswer { .. }
        | Command::QuestionAnswer { .. }
        | Command::RetrySet { .. } => Urgency::Ordered,
    }
}
