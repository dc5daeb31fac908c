//! A strict client: it rejects everything that some real client fails on.

use everturn_wire::Value;

/// The client's state after reading a stream.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Read {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) calls: Vec<(String, String, String)>,
    pub(crate) finish: Option<String>,
    pub(crate) usage: Option<Value>,
    pub(crate) error: Option<Value>,
    pub(crate) is_done: bool,
    pub(crate) comments: Vec<String>,
}

/// Reads a stream, or returns what is wrong with it.
pub(crate) fn read(stream: &str) -> Result<Read, String> {
    let mut read = Read::default();
    let (mut identity, mut has_role) = (None, false);
    if stream.contains('\r') {
        return Err("a carriage return".to_owned());
    }
    let Some(stream) = stream.strip_suffix("\n\n").or(stream.is_empty().then_some("")) else {
        return Err("the last event is cut off".to_owned());
    };
    for event in stream.split("\n\n").filter(|event| !event.is_empty()) {
        if event.contains('\n') {
            return Err(format!("more than one line: {event:?}"));
        }
        if let Some(comment) = event.strip_prefix(':') {
            read.comments.push(comment.trim().to_owned());
            continue;
        }
        // Clients fail on `id:` and `event:` fields.
        let data = event.strip_prefix("data: ").ok_or_else(|| format!("not data: {event:?}"))?;
        if read.is_done || read.error.is_some() {
            return Err(format!("after the end: {data}"));
        }
        if data == "[DONE]" {
            if read.finish.is_none() {
                return Err("done without a finish".to_owned());
            }
            read.is_done = true;
            continue;
        }
        let data: Value = serde_json::from_str(data).map_err(|error| format!("{error}: {data}"))?;
        if let Some(error) = data.get("error") {
            if !error["message"].is_string() || !error["type"].is_string() {
                return Err(format!("a poor error: {error}"));
            }
            read.error = Some(error.clone());
            continue;
        }
        let of = (data["id"].clone(), data["created"].clone(), data["model"].clone());
        if !of.0.as_str().is_some_and(|id| id.starts_with("chatcmpl-")) || !of.1.is_u64() || !of.2.is_string()
        {
            return Err(format!("no head: {data}"));
        }
        if identity.get_or_insert(of.clone()) != &of || data["object"] != "chat.completion.chunk" {
            return Err(format!("another head: {data}"));
        }
        let choices = data["choices"].as_array().ok_or_else(|| format!("no choices: {data}"))?;
        match choices.as_slice() {
            [] if data["usage"].is_object() && read.finish.is_some() && read.usage.is_none() => {
                read.usage = Some(data["usage"].clone());
            }
            [choice] => take(choice, &mut read, &mut has_role)?,
            _ => return Err(format!("not one choice: {data}")),
        }
    }
    Ok(read)
}

fn take(choice: &Value, read: &mut Read, has_role: &mut bool) -> Result<(), String> {
    let delta = choice["delta"].as_object().ok_or_else(|| format!("no delta: {choice}"))?;
    if choice["index"] != 0 || read.finish.is_some() {
        return Err(format!("out of place: {choice}"));
    }
    match delta.get("role") {
        Some(role) if role != "assistant" || *has_role => return Err(format!("a role: {choice}")),
        None if !*has_role => return Err(format!("missing role for choice 0: {choice}")),
        _ => *has_role = true,
    }
    for (field, to) in [("content", &mut read.text), ("reasoning_content", &mut read.reasoning)] {
        match delta.get(field) {
            None => {}
            Some(Value::String(text)) => to.push_str(text),
            Some(other) => return Err(format!("{field} is {other}")),
        }
    }
    for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        if call["index"] != read.calls.len() || call["type"] != "function" {
            return Err(format!("a bad call: {call}"));
        }
        let word =
            |value: &Value| value.as_str().map(str::to_owned).ok_or_else(|| format!("a bad call: {call}"));
        let function = &call["function"];
        read.calls.push((word(&call["id"])?, word(&function["name"])?, word(&function["arguments"])?));
    }
    match &choice["finish_reason"] {
        Value::Null => Ok(()),
        Value::String(word)
            if ["stop", "length", "tool_calls", "content_filter"].contains(&word.as_str()) =>
        {
            read.finish = Some(word.clone());
            Ok(())
        }
        other => Err(format!("finished for {other}")),
    }
}

#[test]
fn it_is_strict() {
    let chunk = |choices: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":{choices}}}\n\n"
        )
    };
    let role = chunk(r#"[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]"#);
    let stop = chunk(r#"[{"index":0,"delta":{},"finish_reason":"stop"}]"#);
    let text = chunk(r#"[{"index":0,"delta":{"content":"a"},"finish_reason":null}]"#);
    let done = "data: [DONE]\n\n";
    assert_eq!(read(&format!(": hi\n\n{role}{text}{stop}{done}")).unwrap().text, "a");
    for bad in [
        format!("{text}{stop}{done}"),
        format!("{role}{done}"),
        format!("{role}{stop}{text}"),
        format!("{role}{stop}{done}{done}"),
        format!("{role}{role}"),
        format!("id: 7\n{role}"),
        format!("event: retry\n\n{role}"),
        format!("{role}data: {{\"id\":\"chatcmpl-1\"}}\n\n"),
        format!("{role}data: \n\n"),
        role.trim_end().to_owned(),
    ] {
        assert!(read(&bad).is_err(), "{bad}");
    }
}
