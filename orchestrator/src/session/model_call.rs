//! A call of a model: counted, observed, metered, and its panics caught.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc};

use everturn_kernel::{Arguments, Request, StreamEvent, Target, ToolCall, Turn};
use everturn_wire::{Category, Failure, Value};
use futures_core::stream::BoxStream;
use futures_util::{StreamExt as _, future, stream};

use super::{Ports, image};
use crate::{
    ProviderCall,
    clock::Clock,
    health::{self, SharedHealth},
    memory::{Account, Metered},
    model::Model,
    observer::Observers,
    pacing::AdmittedCall,
    panic::panic_text,
    telemetry,
    usage::{Figures, UsageBook},
};

/// Maximum length of a failure's message, in bytes, as with the adapters of `everturn-provider`.
const LONGEST_MESSAGE: usize = 4096;

/// A call, ready to be made.
pub(super) struct ModelCall {
    pub(super) model: Arc<Model>,
    pub(super) request: Request,
    /// For the observers; `None` = there are none.
    pub(super) call: Option<ProviderCall>,
    pub(super) observers: Observers,
    pub(super) account: Account,
    /// The health that learns how a target of a route does.
    pub(super) on_route: Option<(Arc<SharedHealth>, Target)>,
    /// Whether its caller gets calls of tools as the model wrote them.
    pub(super) is_bare: bool,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) usage: Arc<UsageBook>,
    /// Whose conversation it is; `None` = the administrator's.
    pub(super) caller: Option<String>,
}

impl ModelCall {
    /// Makes the call and returns its events.
    pub(super) fn make(self, admitted: AdmittedCall) -> BoxStream<'static, StreamEvent> {
        let Self { model, request, call, observers, account, on_route, is_bare, clock, usage, caller } = self;
        telemetry::provider_called(&model.id);
        let asked = Figures { requests: 1, ..Figures::default() };
        usage.add(caller.as_deref(), &model.target, clock.now(), &asked);
        let call = call.map(|call| ProviderCall { begun_at: clock.now(), ..call });
        if let Some(call) = &call {
            observers.begins(call, &request);
        }
        let attached = image::are_in(&request.messages);
        let started = std::panic::catch_unwind(AssertUnwindSafe(|| model.provider.stream(request)));
        let started = started
            .unwrap_or_else(|panic| stream::once(future::ready(broke(&model.id, panic.as_ref()))).boxed());
        let events = AssertUnwindSafe(started).catch_unwind();
        let events = events.map(move |event| match event {
            Ok(StreamEvent::ToolCall(call)) if is_bare => StreamEvent::ToolCall(as_made(call)),
            Ok(StreamEvent::Failed(failure)) => StreamEvent::Failed(image::explained(cut(failure), attached)),
            Ok(event) => event,
            Err(panic) => broke(&model.id, panic.as_ref()),
        });
        let events = Metered::new(events, account);
        // Each layer adds a cost per delta; the usual call has only one.
        if call.is_none() && on_route.is_none() {
            return admitted.watch(events).boxed();
        }
        let now = move || clock.now();
        let events = match call {
            Some(call) => observers.watch(events, call, now.clone()).boxed(),
            None => events.boxed(),
        };
        let events = match on_route {
            Some((health, target)) => health::watched(events, target, health, now).boxed(),
            None => events,
        };
        admitted.watch(events).boxed()
    }
}

/// The call of a target that is no longer configured. On a route, it counts as a failure of the target.
pub(super) fn gone(ports: &Ports, turn: &Turn, failure: Failure) -> BoxStream<'static, StreamEvent> {
    let failed = stream::once(future::ready(StreamEvent::Failed(failure)));
    let Some(target) = turn.target() else { return failed.boxed() };
    let clock = ports.clock.clone();
    health::watched(failed, target.clone(), ports.health.clone(), move || clock.now()).boxed()
}

/// Returns a call whose arguments count as what the model wrote, so that its caller gets them even if they are not JSON.
fn as_made(mut call: ToolCall) -> ToolCall {
    if let Arguments::Malformed { raw, .. } = call.arguments {
        call.arguments = Arguments::Parsed(Value::String(raw));
    }
    call
}

/// Returns the failure for a panic of the provider. The kernel bounds its retries.
fn broke(model: &str, panic: &(dyn Any + Send)) -> StreamEvent {
    let text = format!("the provider of {model} panicked: {}", panic_text(panic));
    StreamEvent::Failed(cut(Failure::new(Category::Internal, true, text)))
}

/// Cuts the message of a failure, which may be a whole page, as it goes into each event about it.
fn cut(mut failure: Failure) -> Failure {
    failure.message.truncate(failure.message.floor_char_boundary(LONGEST_MESSAGE));
    failure.message.shrink_to_fit();
    failure
}
