//! The provider of a world of several nodes. It follows the script, and checks every request.

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::{
    NodeId,
    kernel::{Provider, Request, StreamEvent},
};
use futures_util::stream::{self, BoxStream, StreamExt as _};

use super::{
    super::{
        model::{conversation, place, well_formed},
        script::{Cue, End, Script},
    },
    ledger::Ledger,
    life::Life,
};

/// The model as used by one node.
pub(super) struct Line {
    pub(super) script: Script,
    pub(super) ledger: Ledger,
    pub(super) node: NodeId,
    pub(super) life: Arc<Life>,
}

impl Provider for Line {
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        let place = place(&request.messages);
        let id = conversation(&place);
        if self.life.is_over() {
            return stream::pending().boxed();
        }
        let (call_id, number) = self.ledger.asked(&self.node, &id, &place);
        if let Err(what) = well_formed(&request.messages) {
            self.ledger
                .book
                .wrong(format!("{id}: a request is not well-formed: {what}: {:?}", request.messages));
        }
        let call = self.script.call(&place, number);
        self.ledger.book.pages().tally.count(match call.end {
            End::Passing { hint_ms: 1.. } => "a failure with a hint",
            End::Passing { .. } => "a failure without a hint",
            _ => "a call that is not to fail for now",
        });
        let (ledger, life) = (self.ledger.clone(), self.life.clone());
        let spoken = stream::unfold(Some(call.cues.into_iter()), move |cues| {
            let (ledger, life) = (ledger.clone(), life.clone());
            async move {
                let mut cues = cues?;
                loop {
                    let cue = cues.next();
                    if let Some(Cue::Pause(ms)) = &cue {
                        tokio::time::sleep(Duration::from_millis(*ms)).await;
                    }
                    life.goes_on().await;
                    match cue {
                        Some(Cue::Pause(_)) => {}
                        Some(Cue::Say(event)) => {
                            let ends = matches!(event, StreamEvent::Finished(_) | StreamEvent::Failed(_));
                            if ends {
                                ledger.answered(call_id);
                            }
                            return Some((event, (!ends).then_some(cues)));
                        }
                        None => {
                            // Truncates the answer.
                            ledger.answered(call_id);
                            return None;
                        }
                    }
                }
            }
        });
        spoken.boxed()
    }
}
