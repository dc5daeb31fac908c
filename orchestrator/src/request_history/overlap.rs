//! Finds how much of a given history a conversation already has.

use std::{borrow::Cow, sync::Arc};

use everturn_wire::{Chunk, Role, StepId, StoredChunk, Value};

use super::Opening;

/// A piece of a history as it is sent to a model: without reasoning, which callers do not have, and without what only
/// our log contains. The texts of one answer form one piece.
#[derive(Debug, PartialEq)]
enum Piece<'a> {
    Text(Role, Cow<'a, str>),
    Image(&'a str),
    Call(&'a str, &'a str, &'a Value),
    Result(&'a str, &'a str, bool),
    /// Anything else; equal to nothing.
    Other,
}

/// A piece and its start index, which includes the reasoning before it.
struct Placed<'a> {
    at: usize,
    piece: Piece<'a>,
}

/// How a turn begins that was given `said` before its own message, in a conversation with the current chunks
/// `standing`.
pub(super) fn opening(said: &[(Role, Arc<Chunk>)], standing: &[&Arc<StoredChunk>]) -> Opening {
    let known = pieces(standing.iter().map(|stored| (stored.role, &*stored.chunk)));
    let given = pieces(said.iter().map(|(role, chunk)| (*role, &**chunk)));
    let alike = |(known, given): &(&Placed<'_>, &Placed<'_>)| {
        known.piece != Piece::Other && known.piece == given.piece
    };
    let common = known.iter().zip(&given).take_while(alike).count();
    let supersedes = known.get(common).map(|placed| standing[placed.at].seq);
    let from = given.get(common).map_or(said.len(), |placed| placed.at);
    let kept = known.get(common).map_or(standing.len(), |placed| placed.at);
    Opening { added: added(&said[from..], &standing[..kept], &said[..from]), supersedes }
}

/// The chunks to add. Tool results get the step and the tool name of their call.
fn added(
    new: &[(Role, Arc<Chunk>)],
    kept: &[&Arc<StoredChunk>],
    common: &[(Role, Arc<Chunk>)],
) -> Vec<(Role, Chunk)> {
    let known = kept.iter().map(|stored| &*stored.chunk);
    let mut calls: Vec<(String, String, Option<StepId>)> =
        common.iter().map(|(_, chunk)| &**chunk).chain(known).filter_map(call).collect();
    let mut added = Vec::with_capacity(new.len());
    for (role, chunk) in new {
        let mut chunk = (**chunk).clone();
        match &mut chunk {
            // Step ids are assigned by us.
            Chunk::ToolCall { step_id, .. } => *step_id = None,
            Chunk::ToolResult { tool_call_id, tool_name, step_id, .. } => {
                let of = calls.iter().rev().find(|(id, ..)| id == tool_call_id);
                *step_id = of.and_then(|(.., step)| step.clone());
                if let Some((_, name, _)) = of {
                    tool_name.clone_from(name);
                }
            }
            _ => {}
        }
        calls.extend(call(&chunk));
        added.push((*role, chunk));
    }
    added
}

fn call(chunk: &Chunk) -> Option<(String, String, Option<StepId>)> {
    match chunk {
        Chunk::ToolCall { tool_call_id, tool_name, step_id, .. } => {
            Some((tool_call_id.clone(), tool_name.clone(), step_id.clone()))
        }
        _ => None,
    }
}

fn pieces<'a>(chunks: impl Iterator<Item = (Role, &'a Chunk)>) -> Vec<Placed<'a>> {
    let mut pieces: Vec<Placed<'a>> = Vec::new();
    // Start of reasoning that nothing has followed yet.
    let mut thought: Option<usize> = None;
    for (at, (role, chunk)) in chunks.enumerate() {
        let piece = match chunk {
            // Shown only to people.
            Chunk::Error(_) => continue,
            Chunk::Thinking { .. } => {
                thought.get_or_insert(at);
                continue;
            }
            Chunk::Text { text } => Piece::Text(role, Cow::Borrowed(text)),
            Chunk::Image { url, .. } => Piece::Image(url),
            Chunk::ToolCall { tool_call_id, tool_name, input, .. } => {
                Piece::Call(tool_call_id, tool_name, input)
            }
            Chunk::ToolResult { tool_call_id, content, is_error, images, .. } if images.is_empty() => {
                Piece::Result(tool_call_id, content, *is_error)
            }
            _ => Piece::Other,
        };
        let begin = match thought.take() {
            // Reasoning without an answer.
            Some(thought) if role != Role::Assistant => {
                pieces.push(Placed { at: thought, piece: Piece::Other });
                at
            }
            Some(thought) => thought,
            None => at,
        };
        match (pieces.last_mut().map(|last| &mut last.piece), piece) {
            (Some(Piece::Text(Role::Assistant, before)), Piece::Text(Role::Assistant, text)) => {
                before.to_mut().push_str(&text);
            }
            (_, piece) => pieces.push(Placed { at: begin, piece }),
        }
    }
    pieces.extend(thought.map(|at| Placed { at, piece: Piece::Other }));
    pieces
}
