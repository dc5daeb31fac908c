//! A conversation's history for a client that connects.

use everturn_wire::{Chunk, Role, StepId, StoredChunk, TurnId, TurnMetrics, Value};
use serde_json::json;

use crate::call_key;

/// Returns the messages of these chunks, with the ids they had when streamed. `turns`: the turns of the chunks.
/// `superseded`: the first `seq` that a turn after them supersedes.
pub fn history(chunks: &[StoredChunk], turns: &[TurnMetrics], superseded: Option<u64>) -> Value {
    let mut standing: Vec<&StoredChunk> = Vec::new();
    for stored in chunks {
        if let Some(from) = stored.supersedes {
            standing.retain(|earlier| earlier.seq < from);
        }
        standing.push(stored);
    }
    standing.retain(|stored| superseded.is_none_or(|from| stored.seq < from));
    let mut messages = Messages::default();
    for stored in standing {
        messages.add(stored, turns);
    }
    messages.list.into()
}

#[derive(Default)]
struct Messages {
    list: Vec<Value>,
    turn: Option<TurnId>,
    /// The current step, and whether its answer may go on: the first chunk of an answer begins a step.
    step: Option<u32>,
    is_answer: bool,
    users: u32,
}

impl Messages {
    fn add(&mut self, stored: &StoredChunk, turns: &[TurnMetrics]) {
        let has = |turn: &&TurnMetrics| {
            turn.first_seq
                .zip(turn.last_seq)
                .is_some_and(|(first, last)| (first..=last).contains(&stored.seq))
        };
        let turn = turns.iter().find(has).map(|turn| turn.turn_id.clone());
        if turn != self.turn {
            *self = Self { list: std::mem::take(&mut self.list), turn, ..Self::default() };
        }
        // A chunk of an unknown turn gets an id of its own.
        let turn = self.turn.clone().unwrap_or_else(|| format!("seq-{}", stored.seq).as_str().into());
        let is_answer = stored.role == Role::Assistant;
        if is_answer && !self.is_answer {
            self.step = Some(self.step.map_or(0, |step| step + 1));
        }
        self.is_answer = is_answer;
        if let Chunk::ToolCall { step_id: Some(id), .. } | Chunk::ToolResult { step_id: Some(id), .. } =
            &*stored.chunk
        {
            self.step = id.step_of(&turn).or(self.step);
        }
        let step = StepId::new(&turn, self.step.unwrap_or_default());
        match &*stored.chunk {
            Chunk::Text { text } if stored.role == Role::User => {
                let id = format!("{turn}:u{}", self.users);
                self.users += 1;
                self.list.push(json!({ "id": id, "role": "user", "content": text }));
            }
            Chunk::Text { text } => {
                let message = self.message(&format!("{step}:m"), "assistant");
                let so_far = message["content"].as_str().unwrap_or_default();
                message["content"] = format!("{so_far}{text}").into();
            }
            Chunk::Thinking { text, .. } if !text.is_empty() => {
                let message = self.message(&format!("{step}:r"), "reasoning");
                let so_far = message["content"].as_str().unwrap_or_default();
                message["content"] = format!("{so_far}{text}").into();
            }
            Chunk::ToolCall { tool_call_id, tool_name, input, .. } => {
                let arguments = input.as_str().map_or_else(|| input.to_string(), str::to_owned);
                let function = json!({ "name": tool_name, "arguments": arguments });
                let call =
                    json!({ "id": call_key(&step, tool_call_id), "type": "function", "function": function });
                let message = self.message(&format!("{step}:m"), "assistant");
                match message["toolCalls"].as_array_mut() {
                    Some(calls) => calls.push(call),
                    None => message["toolCalls"] = json!([call]),
                }
            }
            Chunk::ToolResult { tool_call_id, content, .. } => {
                let call = call_key(&step, tool_call_id);
                let id = format!("{call}:result");
                self.list.push(json!({ "id": id, "role": "tool", "toolCallId": call, "content": content }));
            }
            _ => {}
        }
    }

    /// Returns the message with this id, and creates it if necessary.
    fn message(&mut self, id: &str, role: &str) -> &mut Value {
        let at = self.list.iter().rposition(|message| message["id"] == id).unwrap_or_else(|| {
            self.list.push(json!({ "id": id, "role": role, "content": "" }));
            self.list.len() - 1
        });
        &mut self.list[at]
    }
}
