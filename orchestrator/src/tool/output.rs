//! Bounded live output of a running tool.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use everturn_kernel::Input;
use everturn_wire::OutputStream;
use tokio::sync::mpsc;

/// Live output of a running tool, shown to subscribers but never to the model. Limited for each call by
/// [`Builder::max_live_output`](crate::Builder::max_live_output), as a tool may print without end.
#[derive(Clone, Debug)]
pub struct Output {
    call_id: String,
    inbox: mpsc::Sender<Box<Input>>,
    /// Remaining bytes that may be shown, shared by all clones.
    left: Arc<AtomicUsize>,
}

impl Output {
    pub(crate) fn new(call_id: String, inbox: mpsc::Sender<Box<Input>>, most: usize) -> Self {
        Self { call_id, inbox, left: Arc::new(AtomicUsize::new(most)) }
    }

    /// Publishes a piece of text. Waits until earlier output is published. Output beyond the call's limit is dropped;
    /// subscribers get one note about that.
    pub async fn write(&self, stream: OutputStream, data: impl Into<String> + Send) {
        let Some(data) = self.within_bound(data.into()) else { return };
        let input = Input::ToolOutput { call_id: self.call_id.clone(), stream, data };
        // Fails when the turn is over; then nobody needs the output.
        let _ = self.inbox.send(Box::new(input)).await;
    }

    /// The part of `data` that may be shown: all of it, what still fits and a note, or nothing.
    fn within_bound(&self, mut data: String) -> Option<String> {
        let taken = |left: usize| Some(left.saturating_sub(data.len()));
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).unwrap_or_default();
        if data.len() < left {
            return Some(data);
        }
        if left == 0 {
            return None;
        }
        data.truncate(data.floor_char_boundary(left));
        data.push_str("\n[... further output is not shown ...]\n");
        Some(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_tool_that_prints_without_end_is_shown_up_to_its_bound() {
        let (inbox, mut told) = mpsc::channel(8);
        let output = Output::new("call".into(), inbox, 10);
        for piece in ["abcd", "efghé", "never", "shown"] {
            output.clone().write(OutputStream::Stdout, piece).await;
        }
        drop(output);
        let mut pieces = Vec::new();
        while let Some(input) = told.recv().await {
            let Input::ToolOutput { data, .. } = *input else { panic!("only output is told") };
            pieces.push(data);
        }
        assert_eq!(pieces, ["abcd", "efghé\n[... further output is not shown ...]\n"]);
    }

    #[test]
    fn no_character_is_cut() {
        let (inbox, _told) = mpsc::channel(1);
        let output = Output::new("call".into(), inbox, 3);
        let shown = output.within_bound("aé€".into()).unwrap();
        assert!(shown.starts_with("aé\n["), "{shown}");
        assert_eq!(output.within_bound("b".into()), None);
    }
}
