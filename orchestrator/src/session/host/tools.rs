//! Runs tools.

use std::panic::AssertUnwindSafe;

use everturn_kernel::{Arguments, Input, ToolAnswer, ToolCall, Turn};
use everturn_wire::{ApprovalMode, Category, Decider, Failure, StepId, Value};
use futures_core::future::BoxFuture;
use futures_util::{FutureExt as _, future};
use tokio::sync::mpsc;

use super::TurnHost;
use crate::{
    Invocation, Output, People, Policy,
    conversation::Batch,
    panic::panic_text,
    permission,
    request_history::{MAX_IMAGE, MAX_IMAGES, is_image_url},
    tool::excerpt,
};

/// Maximum number of pieces of live tool output in the channel; a tool that prints faster is blocked.
const OUTPUT_PLACES: usize = 64;

pub(super) type Channel = (mpsc::Sender<Box<Input>>, mpsc::Receiver<Box<Input>>);

impl TurnHost<'_> {
    pub(super) fn start_tool(
        &mut self,
        turn: &Turn,
        step: u32,
        call: &ToolCall,
    ) -> BoxFuture<'static, ToolAnswer> {
        let Some(tool) = self.settings.tools.get(&call.name) else {
            return future::ready(ToolAnswer::error(self.no_such_tool(&call.name))).boxed();
        };
        if let Some(why) = self.no_longer_allowed(turn, call) {
            return future::ready(ToolAnswer::error(why)).boxed();
        }
        let input = match &call.arguments {
            Arguments::Parsed(value) => value.clone(),
            Arguments::Malformed { raw, .. } => Value::String(raw.clone()),
        };
        let (name, inbox) = (call.name.clone(), self.inbox());
        let invocation = Invocation {
            conversation_id: self.conversation.id.clone(),
            turn_id: self.turn_id.clone(),
            step,
            call_id: call.id.clone(),
            input,
            output: Output::new(call.id.clone(), inbox.clone(), self.shared.max_live_output),
            people: People::new(
                self.conversation.questions.clone(),
                (StepId::new(&self.turn_id, step), call.id.clone(), call.name.clone()),
                inbox.clone(),
                self.settings.definition.approvals == ApprovalMode::Deny,
            ),
        };
        let (call_id, most) = (call.id.clone(), self.shared.max_tool_result);
        let (proof, clock) = (self.proof.clone(), self.shared.clock.clone());
        async move {
            if let Some(proof) = proof {
                proof.is_recent(&*clock, &inbox).await;
            }
            let input = match AssertUnwindSafe(async move { tool.run(invocation).await }).catch_unwind().await
            {
                Ok(answer) => Input::ToolDone { step, call_id, answer: bounded(answer, most) },
                Err(panic) => {
                    let text = format!("the tool {name:?} panicked: {}", panic_text(panic.as_ref()));
                    Input::Fault(Failure::new(Category::Internal, false, text))
                }
            };
            // Sent after all output of the tool, and received while the turn waits for it.
            let _ = inbox.send(Box::new(input)).await;
            future::pending().await
        }
        .boxed()
    }

    /// Returns why a call must not start, though nothing stood in its way when it arrived: a rule became stricter over a restart, or
    /// its tool is no longer allowed for the conversation. What a person or a reviewer allowed may run, unless a rule denies it.
    fn no_longer_allowed(&self, turn: &Turn, call: &ToolCall) -> Option<String> {
        // Not what the tool says of itself: its server may be starting, and says nothing yet.
        let rule = self.shared.permissions.rules.policy(&call.name);
        if rule == Some(Policy::Deny) {
            return Some(permission::denied(&call.name));
        }
        let needs_approval = match turn.decision(&call.id).map(|decision| decision.by) {
            Some(Decider::Grant) => true,
            Some(_) => false,
            None => matches!(rule, Some(Policy::Ask | Policy::Review)),
        };
        (needs_approval && !self.conversation.grants.allows(&call.name))
            .then(|| format!("(tool failed: the tool {:?} needs approval now: call it again)", call.name))
    }

    /// Returns where running tools and reviewers report to.
    pub(super) fn inbox(&mut self) -> mpsc::Sender<Box<Input>> {
        self.output.get_or_insert_with(|| mpsc::channel(OUTPUT_PLACES)).0.clone()
    }

    /// Allows a tool for the whole conversation, if a person's answer that this batch saved says so: before its call runs,
    /// and only now, as another answer could have been first.
    pub(super) async fn grant(&self, batch: &Batch) {
        let Some((step, call)) = &batch.grants else { return };
        let Some(tool) = self.conversation.asked_tool(&self.turn_id, step, call) else { return };
        let grants = &self.shared.permissions.grants;
        let (id, own) = (&self.conversation.id, &self.conversation.grants);
        if let Err(error) = grants.change(id, own, &tool, true).await {
            tracing::error!(conversation = %id, tool, %error, "a tool that a person allowed will ask again");
        }
    }
}

/// Cuts an answer's text to this size, and leaves out images that are too many or too large. What is left out is said.
fn bounded(answer: ToolAnswer, most: usize) -> ToolAnswer {
    let (mut content, given) = (excerpt(answer.content, most), answer.images.len());
    let images: Vec<_> =
        answer.images.into_iter().filter(|image| is_image_url(&image.url)).take(MAX_IMAGES).collect();
    if images.len() < given {
        content += &format!(
            "\n({} of {given} images were left out: at most {MAX_IMAGES} are kept, of {} MiB each, from https: or data:image/ URLs)",
            given - images.len(),
            MAX_IMAGE >> 20
        );
    }
    ToolAnswer { content, images, ..answer }
}
