//! A reader as strict as the client's own parser and verifier, for both versions.

use std::collections::{BTreeMap, BTreeSet};

use everturn_wire::Value;

use super::events::data_of;

/// The client's state after reading a run.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// The messages by id, in order.
    pub(crate) messages: Vec<(String, Value)>,
    pub(crate) custom: Vec<String>,
    pub(crate) outcome: Option<Value>,
    pub(crate) error: Option<String>,
    pub(crate) is_finished: bool,
    open: BTreeSet<(&'static str, String)>,
    has_started: bool,
}

impl Read {
    fn message(&mut self, id: &str, role: &str) -> &mut Value {
        let at = self.messages.iter().position(|(known, _)| known == id).unwrap_or_else(|| {
            let message = serde_json::json!({ "id": id, "role": role, "content": "" });
            self.messages.push((id.to_owned(), message));
            self.messages.len() - 1
        });
        &mut self.messages[at].1
    }

    /// Returns the text of all messages with a role.
    pub(crate) fn text(&self, role: &str) -> String {
        let of_role = self.messages.iter().filter(|(_, message)| message["role"] == role);
        of_role.map(|(_, message)| message["content"].as_str().unwrap()).collect()
    }

    /// Opens or closes a part that has a start and an end.
    fn toggle(&mut self, kind: &'static str, id: String, opens: bool) -> Result<(), String> {
        let key = (kind, id);
        let fits = if opens { self.open.insert(key) } else { self.open.remove(&key) };
        if fits { Ok(()) } else { Err(format!("{kind} is open already, or not at all")) }
    }
}

/// Reads a run, or returns what is wrong with it. `had`: the client's messages.
pub(crate) fn read(stream: &str, is_one: bool, had: &str) -> Result<Read, String> {
    let had: Vec<Value> = serde_json::from_str(had).unwrap();
    let messages = had.into_iter().map(|message| (message["id"].as_str().unwrap().to_owned(), message));
    let mut read = Read { messages: messages.collect(), ..Read::default() };
    for data in data_of(stream)? {
        let event: Value = serde_json::from_str(data).map_err(|error| format!("{error}: {data}"))?;
        let is_null = |(name, value): (&String, &Value)| value.is_null() && name != "value";
        if event.as_object().ok_or("no object")?.iter().any(is_null) {
            return Err(format!("a null: {data}"));
        }
        take(&event, is_one, &mut read).map_err(|why| format!("{why}: {data}"))?;
    }
    Ok(read)
}

fn take(event: &Value, is_one: bool, read: &mut Read) -> Result<(), String> {
    let text = |name: &str| {
        event[name].as_str().map(str::to_owned).ok_or_else(|| format!("{name} is {}", event[name]))
    };
    let kind = text("type")?;
    let starts = matches!(kind.as_str(), "RUN_STARTED" | "RUN_ERROR");
    if (!read.has_started && !starts) || read.is_finished || read.error.is_some() {
        return Err("outside of the run".to_owned());
    }
    let delta = || match event["delta"].as_str() {
        Some("") | None => Err("no delta".to_owned()),
        Some(delta) => Ok(delta.to_owned()),
    };
    let append =
        |value: &mut Value, more: &str| *value = format!("{}{more}", value.as_str().unwrap_or("")).into();
    match kind.as_str() {
        "RUN_STARTED" => {
            if std::mem::replace(&mut read.has_started, true) || text("threadId")?.is_empty() {
                return Err("again".to_owned());
            }
            text("runId")?;
        }
        "RUN_FINISHED" => finished(event, is_one, read)?,
        "RUN_ERROR" => read.error = Some(text("message")?),
        "TEXT_MESSAGE_START" => {
            let (id, role) = (text("messageId")?, text("role")?);
            if !["user", "assistant"].contains(&role.as_str()) {
                return Err("a role".to_owned());
            }
            read.message(&id, &role);
            read.toggle("text", id, true)?;
        }
        "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => {
            let of = if kind.starts_with("TEXT") { "text" } else { "reasoning" };
            let id = text("messageId")?;
            if !read.open.contains(&(of, id.clone())) {
                return Err("not open".to_owned());
            }
            append(&mut read.message(&id, "?")["content"], &delta()?);
        }
        "TEXT_MESSAGE_END" => read.toggle("text", text("messageId")?, false)?,
        "REASONING_START" => read.toggle("span", text("messageId")?, true)?,
        "REASONING_END" => read.toggle("span", text("messageId")?, false)?,
        "REASONING_MESSAGE_START" => {
            let id = text("messageId")?;
            read.message(&id, &text("role")?);
            read.toggle("reasoning", id, true)?;
        }
        "REASONING_MESSAGE_END" => read.toggle("reasoning", text("messageId")?, false)?,
        "TOOL_CALL_START" => {
            let (id, name) = (text("toolCallId")?, text("toolCallName")?);
            let message = read.message(&text("parentMessageId")?, "assistant");
            let call = serde_json::json!({ "id": id, "name": name, "arguments": "" });
            match message["toolCalls"].as_array_mut() {
                Some(calls) => calls.push(call),
                None => message["toolCalls"] = serde_json::json!([call]),
            }
            read.toggle("call", id, true)?;
        }
        "TOOL_CALL_ARGS" => {
            delta()?;
            if !read.open.contains(&("call", text("toolCallId")?)) {
                return Err("not open".to_owned());
            }
        }
        "TOOL_CALL_END" => read.toggle("call", text("toolCallId")?, false)?,
        "TOOL_CALL_RESULT" => {
            text("toolCallId")?;
            let content = text("content")?;
            read.message(&text("messageId")?, "tool")["content"] = content.into();
        }
        "MESSAGES_SNAPSHOT" => snapshot(event, read)?,
        "CUSTOM" => {
            event.get("value").ok_or("no value")?;
            read.custom.push(text("name")?);
        }
        _ => return Err("an unknown event".to_owned()),
    }
    Ok(())
}

fn finished(event: &Value, is_one: bool, read: &mut Read) -> Result<(), String> {
    if !read.open.is_empty() {
        return Err(format!("{:?} is open", read.open));
    }
    if let Some(outcome) = event.get("outcome") {
        let fields: Vec<&String> = outcome.as_object().ok_or("no outcome")?.keys().collect();
        match outcome["type"].as_str() {
            Some("success") if fields.len() == 1 => {}
            Some("cancelled") if is_one => {}
            Some("interrupt") if fields.len() == 2 => {
                for interrupt in outcome["interrupts"].as_array().ok_or("no interrupts")? {
                    if !interrupt["id"].is_string() || !interrupt["reason"].is_string() {
                        return Err("a poor interrupt".to_owned());
                    }
                }
            }
            _ => return Err("an unknown outcome".to_owned()),
        }
        read.outcome = Some(outcome.clone());
    }
    for usage in event["usage"].as_array().into_iter().flatten() {
        let of_one = usage.get("cacheWriteInputTokens").is_some();
        if (of_one && !is_one)
            || usage.as_object().is_none_or(|counts| counts.values().any(|count| !count.is_u64()))
        {
            return Err("bad usage".to_owned());
        }
    }
    read.is_finished = true;
    Ok(())
}

/// Replaces the messages with a snapshot. If it contains no reasoning, all reasoning is kept.
fn snapshot(event: &Value, read: &mut Read) -> Result<(), String> {
    if !read.open.is_empty() {
        return Err(format!("{:?} is open", read.open));
    }
    let list = event["messages"].as_array().ok_or("no messages")?;
    let mut stays = BTreeMap::new();
    for message in list {
        let (Some(id), Some(_)) = (message["id"].as_str(), message["role"].as_str()) else {
            return Err("a poor message".to_owned());
        };
        if stays.insert(id.to_owned(), message.clone()).is_some() {
            return Err("the same id twice".to_owned());
        }
    }
    let has_reasoning = list.iter().any(|message| message["role"] == "reasoning");
    read.messages.retain(|(id, message)| {
        stays.contains_key(id)
            || message["role"] == "activity"
            || (message["role"] == "reasoning" && !has_reasoning)
    });
    for message in list {
        let id = message["id"].as_str().unwrap_or_default();
        *read.message(id, "?") = message.clone();
    }
    Ok(())
}

#[test]
fn it_is_strict() {
    let started = "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n";
    let open = "data: {\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"m\",\"role\":\"assistant\"}\n\n";
    let text = "data: {\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\",\"delta\":\"a\"}\n\n";
    let close = "data: {\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"m\"}\n\n";
    let end = "data: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n";
    let cancelled = "data: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\",\"outcome\":{\"type\":\"cancelled\"}}\n\n";
    let twice = format!("{started}{open}{text}{close}{open}{text}{close}{end}");
    assert_eq!(read(&twice, false, "[]").unwrap().text("assistant"), "aa");
    assert!(read(&format!("{started}{cancelled}"), true, "[]").is_ok());
    for bad in [
        open.to_owned(),
        format!("{started}{started}"),
        format!("{started}{text}"),
        format!("{started}{open}{end}"),
        format!("{started}{open}{open}"),
        format!("{started}{end}{open}"),
        format!("{started}{cancelled}"),
        format!("{started}data: [DONE]\n\n"),
        format!("{started}data: {{\"type\":\"NEWS\"}}\n\n"),
        format!("{started}{open}data: {{\"type\":\"MESSAGES_SNAPSHOT\",\"messages\":[]}}\n\n"),
    ] {
        assert!(read(&bad, false, "[]").is_err(), "{bad}");
    }
}
