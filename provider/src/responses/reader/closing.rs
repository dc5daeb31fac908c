//! The last event, which has the finish reason and repeats the whole answer.

use everturn_wire::Value;

use super::ResponsesReader;
use crate::{
    answer::note,
    exchange::{Facts, Flaw, Reading},
    responses::{
        frame::{Item, Placed, Response, told, usage},
        output::Kind,
    },
};

impl ResponsesReader {
    pub(super) fn closed(
        &mut self,
        response: Option<Response>,
        is_incomplete: bool,
        payload: &str,
        facts: &mut Facts,
    ) -> Result<Reading, Flaw> {
        let response = response.unwrap_or_default();
        let finish = response.finish_reason(is_incomplete);
        let finish = finish.ok_or_else(|| Flaw::Payload(told(payload)))?;
        self.answer.usage(response.usage.as_ref().and_then(usage));
        let reported = &mut self.answer.reported;
        note(&mut reported.model, response.model.as_ref().and_then(Value::as_str));
        note(&mut reported.service_tier, response.service_tier.as_ref().and_then(Value::as_str));
        self.catch_up(response.output.unwrap_or_default(), facts)?;
        self.answer.finish(Some(finish));
        self.answer.keep(&told(payload));
        self.answer.complete(facts).map(|()| Reading::Complete)
    }

    /// Adds what only the last event has. It repeats the whole output, on some servers with different ids, and nothing
    /// may be shown or run twice. So only kinds that have not appeared yet are added, and missing fields of known
    /// calls.
    pub(super) fn catch_up(&mut self, output: Vec<Item>, facts: &mut Facts) -> Result<(), Flaw> {
        let has_text = self.spoken.is_some();
        let has_reasoning = self.output.any(Kind::Reasoning, |entry| entry.ended);
        let has_calls = self.output.any(Kind::Call, |_| true);
        for (place, item) in (0..).zip(output) {
            let known = item.sign(None).and_then(|sign| self.output.named(sign)).is_some();
            let (is_news, output_index) = match &item {
                Item::Message(_) => (!has_text, Some(place)),
                Item::Reasoning(_) => (!has_reasoning, Some(place)),
                Item::FunctionCall(_) => (!has_calls || known, None),
                Item::Other => (false, None),
            };
            if is_news {
                self.ended(Placed { output_index, item }, facts)?;
            }
        }
        Ok(())
    }
}
