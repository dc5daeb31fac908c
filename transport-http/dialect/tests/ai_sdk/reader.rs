//! A reader as strict as `useChat`: it rejects everything that some version fails on.

use std::collections::BTreeMap;

use everturn_dialect::ai_sdk::Version;
use everturn_wire::Value;

use super::events::data_of;

/// A part of the client's message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Step,
    Text(String),
    Reasoning(String),
    Call { id: String, state: String },
}

/// The client's state after reading a stream.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) message_id: Option<String>,
    pub(crate) parts: Vec<Part>,
    pub(crate) data: Vec<String>,
    pub(crate) finish: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) is_aborted: bool,
    pub(crate) is_done: bool,
    /// Open text parts by kind and id, with their indexes.
    open: BTreeMap<(String, String), usize>,
    in_step: bool,
}

impl Read {
    /// Returns all visible text.
    pub(crate) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    pub(crate) fn call(&mut self, id: &str) -> Result<&mut String, String> {
        let found = self.parts.iter_mut().find_map(|part| match part {
            Part::Call { id: known, state } if known == id => Some(state),
            _ => None,
        });
        found.ok_or_else(|| format!("no tool invocation {id:?}"))
    }
}

/// Reads a stream, or returns what is wrong with it. `had`: the calls of the message it continues.
pub(crate) fn read(stream: &str, version: Version, had: &[&str]) -> Result<Read, String> {
    let mut read = Read::default();
    read.parts.extend(
        had.iter().map(|id| Part::Call { id: (*id).to_owned(), state: "approval-responded".to_owned() }),
    );
    for data in data_of(stream)? {
        if read.is_done {
            return Err(format!("after the end: {data:?}"));
        }
        if data == "[DONE]" {
            read.is_done = true;
            continue;
        }
        let chunk: Value = serde_json::from_str(data).map_err(|error| format!("{error}: {data}"))?;
        if has_null(&chunk) {
            return Err(format!("a null: {data}"));
        }
        take(&chunk, version, &mut read).map_err(|why| format!("{why}: {data}"))?;
    }
    if read.is_done && read.error.is_none() && !read.is_aborted && (!read.open.is_empty() || read.in_step) {
        return Err("it ended in the middle".to_owned());
    }
    Ok(read)
}

/// Whether a field is null instead of absent.
fn has_null(chunk: &Value) -> bool {
    chunk.as_object().is_some_and(|fields| {
        fields
            .iter()
            .any(|(name, value)| value.is_null() && !matches!(name.as_str(), "input" | "output" | "data"))
    })
}

fn take(chunk: &Value, version: Version, read: &mut Read) -> Result<(), String> {
    let text = |name: &str| {
        chunk[name].as_str().map(str::to_owned).ok_or_else(|| format!("{name} is {}", chunk[name]))
    };
    let kind = text("type")?;
    if read.finish.is_some() || read.error.is_some() || read.is_aborted {
        return Err("after the end".to_owned());
    }
    let since = |first: Version| match version >= first {
        true => Ok(()),
        false => Err(format!("{version:?} does not know {kind}")),
    };
    match kind.as_str() {
        "start" => {
            read.message_id = chunk.get("messageId").map(|_| text("messageId")).transpose()?;
        }
        "start-step" => {
            read.parts.push(Part::Step);
            read.in_step = true;
        }
        "finish-step" => read.in_step = false,
        "reset-step" => {
            since(Version::Seven)?;
            let step = read.parts.iter().rposition(|part| *part == Part::Step).ok_or("no step")?;
            read.parts.truncate(step + 1);
            read.open.clear();
        }
        "text-start" | "reasoning-start" | "text-delta" | "reasoning-delta" | "text-end"
        | "reasoning-end" => {
            spoken(&kind, text("id")?, chunk, read)?;
        }
        "tool-input-available" => {
            let (id, _) = (text("toolCallId")?, text("toolName")?);
            if chunk["dynamic"] != true || chunk.get("input").is_none() {
                return Err("a bad call".to_owned());
            }
            match read.call(&id) {
                Ok(state) => *state = "input-available".to_owned(),
                Err(_) => read.parts.push(Part::Call { id, state: "input-available".to_owned() }),
            }
        }
        "tool-output-available" | "tool-output-error" => {
            if kind.ends_with("error") {
                text("errorText")?;
            }
            if chunk["dynamic"] != true || (kind.ends_with("available") && chunk.get("output").is_none()) {
                return Err("a bad result".to_owned());
            }
            *read.call(&text("toolCallId")?)? = kind;
        }
        "tool-output-denied" => {
            since(Version::Six)?;
            *read.call(&text("toolCallId")?)? = kind;
        }
        "tool-approval-request" => {
            since(Version::Six)?;
            if version < Version::Seven && chunk.get("reason").is_some() {
                return Err("a reason".to_owned());
            }
            text("approvalId")?;
            *read.call(&text("toolCallId")?)? = "approval-requested".to_owned();
        }
        "tool-approval-response" => {
            since(Version::Seven)?;
            chunk["approved"].as_bool().ok_or("no answer")?;
            // Our request ids are those of their calls.
            *read.call(&text("approvalId")?)? = "approval-responded".to_owned();
        }
        "finish" => {
            let reason = text("finishReason")?;
            if !["stop", "length", "content-filter", "tool-calls", "error", "other"]
                .contains(&reason.as_str())
            {
                return Err("an unknown reason".to_owned());
            }
            read.finish = Some(reason);
        }
        "error" => read.error = Some(text("errorText")?),
        "abort" => read.is_aborted = true,
        data if data.starts_with("data-everturn-") => {
            if chunk["transient"] != true || chunk.get("data").is_none() {
                return Err("kept data".to_owned());
            }
            read.data.push(data["data-everturn-".len()..].to_owned());
        }
        _ => return Err("an unknown chunk".to_owned()),
    }
    Ok(())
}

fn spoken(kind: &str, id: String, chunk: &Value, read: &mut Read) -> Result<(), String> {
    let (of, act) = kind.split_once('-').ok_or("no kind")?;
    let key = (of.to_owned(), id);
    match act {
        "start" => {
            read.parts.push(if of == "text" {
                Part::Text(String::new())
            } else {
                Part::Reasoning(String::new())
            });
            match read.open.insert(key, read.parts.len() - 1) {
                None if read.in_step => Ok(()),
                _ => Err("out of place".to_owned()),
            }
        }
        "end" => read.open.remove(&key).map(|_| ()).ok_or_else(|| "not open".to_owned()),
        _ => {
            let at = *read.open.get(&key).ok_or("not open")?;
            let delta = chunk["delta"].as_str().ok_or("no delta")?;
            match &mut read.parts[at] {
                Part::Text(text) | Part::Reasoning(text) => text.push_str(delta),
                _ => return Err("no text".to_owned()),
            }
            Ok(())
        }
    }
}

#[test]
fn it_is_strict() {
    let ok = "data: {\"type\":\"start\",\"messageId\":\"t\"}\n\ndata: {\"type\":\"start-step\"}\n\n";
    let text = "data: {\"type\":\"text-start\",\"id\":\"0\"}\n\ndata: {\"type\":\"text-delta\",\"id\":\"0\",\"delta\":\"a\"}\n\n";
    let reset = "data: {\"type\":\"reset-step\"}\n\n";
    assert_eq!(read(&format!("{ok}{text}"), Version::Five, &[]).unwrap().text(), "a");
    assert_eq!(read(&format!("{ok}{text}{reset}{text}"), Version::Seven, &[]).unwrap().text(), "a");
    for bad in [
        format!("{ok}{text}{text}"),
        format!("{ok}{text}{reset}"),
        format!("{ok}{text}data: {{\"type\":\"finish\",\"finishReason\":\"stop\"}}\n\ndata: [DONE]\n\n"),
        format!("{ok}data: {{\"type\":\"text-end\",\"id\":\"0\"}}\n\n"),
        format!(
            "{ok}data: {{\"type\":\"tool-output-available\",\"toolCallId\":\"c\",\"output\":1,\"dynamic\":true}}\n\n"
        ),
        "data: {\"type\":\"start\",\"messageId\":null}\n\n".to_owned(),
        "data: {\"type\":\"news\"}\n\n".to_owned(),
        "data: \n\n".to_owned(),
        ok.trim_end().to_owned(),
    ] {
        assert!(read(&bad, Version::Six, &[]).is_err(), "{bad}");
    }
}
