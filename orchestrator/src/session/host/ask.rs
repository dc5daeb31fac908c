//! Calls the provider, unless other turns found that it is currently unavailable.

use std::sync::Arc;

use everturn_kernel::{Op, Request, StreamEvent, Turn};
use everturn_wire::{Chunk, Message, Role};
use futures_core::stream::BoxStream;
use futures_util::{StreamExt as _, future, stream};

use super::{TurnHost, compact::Prepared};
use crate::{
    ProviderCall,
    conversation::Called,
    model::Model,
    pacing::Paced,
    report,
    session::{
        model_call::{self, ModelCall},
        request, summary,
    },
};

impl TurnHost<'_> {
    /// Starts a call and returns its events; a held call yields only [`StreamEvent::Held`].
    pub(super) fn ask(&mut self, turn: &Turn, op: Op) -> BoxStream<'static, StreamEvent> {
        self.asked = Some(op);
        let model = match self.shared.models.now().asked(&self.settings.model, turn.target()) {
            Ok(model) => model,
            Err(gone) => {
                let at = self.shared.clock.now();
                self.called = turn.target().map(|target| Called::new(target, at));
                return model_call::gone(self.shared, turn, gone);
            }
        };
        self.model = Some(model.clone());
        let summary = match self.summary_of(turn, &model) {
            Prepared::None => None,
            Prepared::Cut(cut) => Some(cut),
            Prepared::Answered(events) => {
                self.called = None;
                return events;
            }
        };
        if let Some(full) = self.conversation.account.excess(0) {
            self.called = None;
            return stream::once(future::ready(StreamEvent::Failed(full))).boxed();
        }
        let entry = match self.pace(turn, &model).enter() {
            Paced::Held(event) => {
                self.called = None;
                return stream::once(future::ready(event)).boxed();
            }
            entry => entry,
        };
        self.called = Some(Called::new(&model.target, self.shared.clock.now()));
        let mut request = match &summary {
            Some(cut) => self.summary_request(op, &model, cut),
            None => self.request(turn, op, &model),
        };
        let call = self.call(turn, op, &model);
        request.trace = match &call {
            Some(call) => self.conversation.observers().trace_of(call),
            None => self.settings.definition.trace.as_deref().cloned(),
        };
        let called = ModelCall {
            model,
            request,
            call,
            observers: self.conversation.observers().clone(),
            account: self.conversation.account.clone(),
            on_route: turn.target().map(|target| (self.shared.health.clone(), target.clone())),
            is_bare: self.settings.is_bare(),
            clock: self.shared.clock.clone(),
            usage: self.shared.usage.clone(),
            caller: self.conversation.id.caller().map(str::to_owned),
        };
        let events = match entry {
            Paced::Now(admitted) => called.make(admitted),
            Paced::Soon(pace) => pace.soon(move |admitted| called.make(admitted)),
            Paced::Held(event) => stream::once(future::ready(event)).boxed(),
        };
        match summary {
            Some(cut) => summary::collected(events, cut),
            None => events,
        }
    }

    fn request(&self, turn: &Turn, op: Op, model: &Model) -> Request {
        // Cloned so that the request is built without the lock; the chunks are shared with the history.
        let chunks = self.conversation.state().record.chunks.clone();
        let definition = &self.settings.definition;
        let configured = &definition.configured;
        let scope = definition.request.as_deref();
        let own_prompt = scope.and_then(|scope| scope.system_prompt.as_deref());
        let is_bare = self.settings.is_bare();
        let system_prompt = own_prompt.or(configured.system_prompt.as_deref().filter(|_| !is_bare));
        let mut sent = request::sent(&chunks, definition.supersedes, Some(&model.target.model));
        if turn.is_cut_down() {
            sent = summary::cut_down(&sent, self.latest().as_deref());
        }
        let mut messages = request::messages(system_prompt, &sent);
        let (mut tools, is_last) = (self.settings.tools.specs(), turn.must_report_now());
        if let Some(required) = definition.final_report.as_deref().filter(|_| turn.must_report()) {
            tools = report::offered(required, &tools, is_last);
        }
        if is_last {
            messages.push(Message::new(Role::User, [Chunk::Text { text: report::LAST_STEP.to_owned() }]));
        }
        let mut parameters = scope.map(|scope| scope.parameters_of(op.step)).unwrap_or_default();
        if let Some(temperature) =
            configured.temperature.filter(|_| parameters.temperature.is_none() && !is_bare)
        {
            Arc::make_mut(&mut parameters).temperature = Some(temperature);
        }
        Request {
            op,
            model: model.name.clone(),
            messages,
            tools,
            max_output_tokens: parameters.max_output_tokens.or(configured.max_output_tokens),
            parameters,
            reasoning_effort: definition.reasoning_effort.clone().or_else(|| configured.usual_effort.clone()),
            eager_calls: turn.settings().eager_tools,
            trace: None,
        }
    }

    /// Describes a call for the observers; `None` = there are none.
    fn call(&self, turn: &Turn, op: Op, model: &Model) -> Option<ProviderCall> {
        self.conversation.observers().is_any().then(|| ProviderCall {
            conversation_id: self.conversation.id.clone(),
            turn_id: turn.id().clone(),
            op,
            model: model.id.clone(),
            model_name: model.name.clone(),
            provider: model.about(),
            trace: self.settings.definition.trace.as_deref().cloned(),
            begun_at: self.shared.clock.now(),
        })
    }
}
