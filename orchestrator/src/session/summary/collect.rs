//! Collects a model's answer to the request for a summary into one event.

use everturn_kernel::{FinishReason, StreamEvent};
use everturn_wire::{Category, Failure};
use futures_core::stream::{BoxStream, Stream};
use futures_util::{StreamExt as _, future, stream};

use super::Cut;

/// Maximum length of a summary, in bytes. A longer one is a failure.
const MAX_SUMMARY: usize = 256 << 10;

/// Collects the text of a summary call. Token counts, silences, holds and failures are passed on.
pub(in crate::session) fn collected(
    events: impl Stream<Item = StreamEvent> + Send + 'static,
    cut: Cut,
) -> BoxStream<'static, StreamEvent> {
    let state = (String::new(), false);
    let gathered = events.boxed().scan((state, cut), |((text, over), cut), event| {
        if *over {
            return future::ready(None);
        }
        let told = match event {
            StreamEvent::Text(piece) if text.len() + piece.len() > MAX_SUMMARY => Some(endless()),
            StreamEvent::Text(piece) => {
                text.push_str(&piece);
                None
            }
            // A truncated summary is better than none.
            StreamEvent::Finished(FinishReason::ContentFilter) => Some(withheld()),
            StreamEvent::Finished(_) => Some(StreamEvent::Summary(Box::new(cut.summary(text)))),
            StreamEvent::Usage(_)
            | StreamEvent::Silent(_)
            | StreamEvent::Held(_)
            | StreamEvent::Failed(_) => Some(event),
            _ => None,
        };
        *over = matches!(told, Some(StreamEvent::Summary(_) | StreamEvent::Failed(_) | StreamEvent::Held(_)));
        future::ready(Some(stream::iter(told)))
    });
    gathered.flatten().boxed()
}

fn endless() -> StreamEvent {
    let text = format!("the summary has more than {MAX_SUMMARY} bytes");
    StreamEvent::Failed(Failure::new(Category::InvalidResponse, true, text))
}

fn withheld() -> StreamEvent {
    let text = "the provider withheld the summary";
    StreamEvent::Failed(Failure::new(Category::ContentPolicy, false, text))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use everturn_wire::{Chunk, Role, StoredChunk, Usage};
    use futures_util::FutureExt as _;

    use super::*;

    fn answer(events: Vec<StreamEvent>, task: Option<&str>) -> Vec<StreamEvent> {
        let chunk = Arc::new(Chunk::Text { text: "Hi".into() });
        let stored = Arc::new(StoredChunk { seq: 1, role: Role::User, chunk, supersedes: None });
        let cut = Cut { older: vec![stored], keeps_from: 2, total: 2, task: task.map(Into::into) };
        collected(stream::iter(events), cut)
            .collect::<Vec<_>>()
            .now_or_never()
            .expect("nothing is waited for")
    }

    #[test]
    fn text_comes_as_one_summary_and_the_rest_is_passed_on() {
        let usage = StreamEvent::Usage(Usage { input_tokens: 9, ..Usage::default() });
        let text = |text: &str| StreamEvent::Text(text.into());
        let told = answer(
            vec![
                StreamEvent::Reasoning("hm".into()),
                text(" They "),
                text("spoke. "),
                usage.clone(),
                StreamEvent::Finished(FinishReason::Stop),
                text("never"),
            ],
            Some("Go on."),
        );
        let [first, StreamEvent::Summary(summary)] = &told[..] else { panic!("{told:?}") };
        assert_eq!(*first, usage);
        assert_eq!(summary.text, "They spoke.\n\nThe user's current request, verbatim:\nGo on.");
        assert_eq!(summary.keeps_from, 2);
    }

    #[test]
    fn an_endless_summary_is_a_failure_and_an_empty_one_stays_empty() {
        let told = answer(vec![StreamEvent::Text("x".repeat(MAX_SUMMARY / 2)); 3], None);
        let [StreamEvent::Failed(failure)] = &told[..] else { panic!("{told:?}") };
        assert!(failure.message.contains("more than 262144 bytes"), "{}", failure.message);
        let told = answer(vec![StreamEvent::Finished(FinishReason::Stop)], Some("Go on."));
        let [StreamEvent::Summary(summary)] = &told[..] else { panic!("{told:?}") };
        assert_eq!(summary.text, "", "the kernel has it made again");
    }
}
