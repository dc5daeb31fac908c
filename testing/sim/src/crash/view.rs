//! Views of a conversation: assembled from events, or read from the history.

use everturn_wire::{AgentEvent, Chunk, EventBody, Role, StoredChunk};

/// The result of a call that may have had its effect before a crash.
const BY_CRASH: &str = "(tool failed: interrupted by a restart";
/// The result of a call that was shown but is not in the history, because the turn ended.
const BY_THE_END: &str = "(tool failed: interrupted, the turn ended";

/// An item of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    User(String),
    /// Replaces older messages in requests.
    Summary(String),
    Text(String),
    Thinking(String),
    Call(String),
    Result {
        id: String,
        content: String,
        is_error: bool,
    },
    Error(String),
}

impl Item {
    /// Returns the order within a step, as in the history.
    fn rank(&self) -> u8 {
        match self {
            Self::User(_) | Self::Summary(_) => 0,
            Self::Text(_) | Self::Thinking(_) => 1,
            Self::Call(_) => 2,
            Self::Result { .. } => 3,
            Self::Error(_) => 4,
        }
    }

    fn call_id(&self) -> Option<&str> {
        match self {
            Self::Call(id) | Self::Result { id, .. } => Some(id),
            _ => None,
        }
    }

    fn push(items: &mut Vec<Self>, item: Self) {
        match (items.last_mut(), item) {
            (Some(Self::Text(text)), Self::Text(more))
            | (Some(Self::Thinking(text)), Self::Thinking(more)) => {
                text.push_str(&more);
            }
            (_, item) => items.push(item),
        }
    }
}

/// A conversation as a client displays it, event by event, discarding what is withdrawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    turns: Vec<Vec<Step>>,
    /// Number of turns whose end was received.
    pub(super) sealed: usize,
}

/// The displayed part of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Step {
    items: Vec<Item>,
    complete: bool,
}

impl View {
    pub(super) fn apply(&mut self, event: AgentEvent) {
        match event.body {
            EventBody::UserMessage { text } => {
                self.turns.push(vec![Step { items: vec![Item::User(text)], complete: false }]);
            }
            EventBody::Steering { text } => self.push(Item::User(text)),
            EventBody::TextDelta { delta } => self.push(Item::Text(delta)),
            EventBody::ReasoningDelta { delta } => self.push(Item::Thinking(delta)),
            EventBody::ToolCall { tool_call_id, .. } => self.push(Item::Call(tool_call_id)),
            EventBody::ToolResult { step_id, tool_call_id: id, content, is_error, .. } => {
                if let Some(step) = self.step(step_id.as_str()) {
                    step.items.push(Item::Result { id, content, is_error });
                }
            }
            EventBody::StepComplete { step_id, .. } => {
                if let Some(step) = self.step(step_id.as_str()) {
                    step.complete = true;
                }
            }
            EventBody::StepRewound { step_id, .. } => {
                if let Some(step) = self.step(step_id.as_str()) {
                    step.items.retain(|item| matches!(item, Item::User(_) | Item::Summary(_)));
                }
            }
            EventBody::CompactionCompleted { summary: Some(text), .. } => self.push(Item::Summary(text)),
            EventBody::Error(report) => self.push(Item::Error(report.message)),
            EventBody::TurnSealed => self.sealed += 1,
            _ => {}
        }
    }

    /// Returns the items in the order of a history, without what only watchers are told.
    pub(super) fn items(&self, history: &[Item]) -> Vec<Item> {
        let mut all = Vec::new();
        for step in self.turns.iter().flatten() {
            let kept = step.items.iter().filter(|item| {
                let id = item.call_id();
                let by_the_end = |item: &Item| {
                    matches!(item, Item::Result { content, .. } if content.starts_with(BY_THE_END))
                };
                let given_up = step.items.iter().any(|other| other.call_id() == id && by_the_end(other));
                id.is_none() || !given_up || history.contains(item)
            });
            all.extend(settled(kept.cloned().collect()));
        }
        let mut items = Vec::new();
        all.into_iter().for_each(|item| Item::push(&mut items, item));
        items
    }

    fn push(&mut self, item: Item) {
        let Some(turn) = self.turns.last_mut() else { return };
        if turn.last().is_none_or(|step| step.complete) {
            turn.push(Step::default());
        }
        if let Some(step) = turn.last_mut() {
            Item::push(&mut step.items, item);
        }
    }

    /// Returns the step with this id in the running turn, and creates it if necessary.
    fn step(&mut self, id: &str) -> Option<&mut Step> {
        let number: usize = id.rsplit('#').next()?.parse().ok()?;
        let turn = self.turns.last_mut()?;
        while turn.len() <= number {
            turn.push(Step::default());
        }
        turn.get_mut(number)
    }
}

/// Returns the items of a history, with each step's results in the order of their ids.
pub(super) fn history(chunks: &[StoredChunk]) -> Vec<Item> {
    let mut items = Vec::new();
    for StoredChunk { role, chunk, .. } in chunks {
        let item = match Chunk::clone(chunk) {
            Chunk::Text { text } if *role == Role::User => Item::User(text),
            Chunk::Text { text } => Item::Text(text),
            Chunk::Thinking { text, .. } => Item::Thinking(text),
            Chunk::ToolCall { tool_call_id, .. } => Item::Call(tool_call_id),
            Chunk::ToolResult { tool_call_id: id, content, is_error, .. } => {
                Item::Result { id, content, is_error }
            }
            Chunk::Error(report) => Item::Error(report.message),
            Chunk::System { text, keeps_from: Some(_) } => Item::Summary(text),
            Chunk::System { text, .. } => Item::User(text),
            Chunk::Image { url, .. } => Item::User(url),
            _ => continue,
        };
        Item::push(&mut items, item);
    }
    let steps = items.chunk_by(|a, b| a.rank() <= b.rank() && a.rank() != 4);
    steps.flat_map(|step| settled(step.to_vec())).collect()
}

/// Returns a step in the order of a history.
fn settled(mut step: Vec<Item>) -> Vec<Item> {
    let results = |item: &Item| if item.rank() == 3 { item.call_id().map(str::to_owned) } else { None };
    step.sort_by(|a, b| a.rank().cmp(&b.rank()).then_with(|| results(a).cmp(&results(b))));
    step
}

/// Whether a history equals that of the undisturbed world, except for calls interrupted by a crash, summaries at other
/// positions after that, and effects of the remaining budget.
pub(super) fn is_as_calm(found: &[Item], calm: &[Item]) -> bool {
    let is_interrupted = interrupted(found) > 0;
    let counts = |item: &&Item| !is_interrupted || !matches!(item, Item::Summary(_));
    let same = |(found, calm): (&Item, &Item)| match (found, calm) {
        (Item::Result { id, content, .. }, Item::Result { id: other, .. })
            if content.starts_with(BY_CRASH) =>
        {
            id == other
        }
        _ => found == calm,
    };
    let [found, calm] = [found, calm].map(|items| items.iter().filter(counts).collect::<Vec<_>>());
    found.len() == calm.len() && found.into_iter().zip(calm).all(same)
}

/// Returns the number of calls interrupted by a crash.
pub(super) fn interrupted(items: &[Item]) -> usize {
    let by_crash =
        |item: &&Item| matches!(item, Item::Result { content, .. } if content.starts_with(BY_CRASH));
    items.iter().filter(by_crash).count()
}
