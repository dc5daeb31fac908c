//! Checks what a request asks for.

use everturn_wire::{CallerTool, ToolChoice};

use super::super::StartTurn;
use crate::{Error, json, session::TurnSettings};

/// Maximum number of tools in a request, and their maximum total size, in bytes of JSON.
const MAX_TOOLS: usize = 128;
const MAX_TOOLS_BYTES: usize = 512 << 10;
/// Maximum length of a tool's name: no API accepts longer ones.
const MAX_TOOL_NAME: usize = 64;
/// Maximum number of stop sequences, and the maximum length of each, in bytes.
const MAX_STOPS: usize = 16;
const MAX_STOP: usize = 1024;

pub(super) fn check_scope(start: &StartTurn) -> Result<(), Error> {
    let numbers = [
        ("temperature", start.parameters.temperature),
        ("topP", start.parameters.top_p),
        ("presencePenalty", start.parameters.presence_penalty),
        ("frequencyPenalty", start.parameters.frequency_penalty),
    ];
    let no_number = numbers.into_iter().find(|(_, value)| value.is_some_and(|value| !value.is_finite()));
    let stop = &start.parameters.stop;
    let why = if let Some((name, _)) = no_number {
        format!("{name} must be a finite number")
    } else if stop.len() > MAX_STOPS || stop.iter().any(|text| text.is_empty() || text.len() > MAX_STOP) {
        format!("stop takes at most {MAX_STOPS} texts of 1 to {MAX_STOP} bytes")
    } else if json::size(&start.parameters) > MAX_TOOLS_BYTES {
        format!("responseFormat may have at most {MAX_TOOLS_BYTES} bytes")
    } else if start.parameters.max_output_tokens == Some(0) {
        "maxOutputTokens must be at least 1".to_owned()
    } else if let Some(why) = start.tools.as_deref().and_then(bad_tools) {
        why
    } else {
        return Ok(());
    };
    Err(Error::BadMessage { why })
}

fn bad_tools(tools: &[CallerTool]) -> Option<String> {
    let fits = |name: &str| {
        (1..=MAX_TOOL_NAME).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    if tools.len() > MAX_TOOLS || json::size(tools) > MAX_TOOLS_BYTES {
        return Some(format!("tools takes at most {MAX_TOOLS} tools of {MAX_TOOLS_BYTES} bytes together"));
    }
    tools.iter().enumerate().find_map(|(at, tool)| {
        if !fits(&tool.name) {
            return Some(format!(
                "the name of tools[{at}] must have 1 to {MAX_TOOL_NAME} of A-Z a-z 0-9 _ -"
            ));
        }
        if !tool.input_schema.is_null() && !tool.input_schema.is_object() {
            return Some(format!("the inputSchema of tools[{at}] must be an object"));
        }
        let is_second = tools[..at].iter().any(|other| other.name == tool.name);
        is_second.then(|| format!("tools has {:?} more than once", tool.name))
    })
}

/// Refuses a `toolChoice` that no tool can satisfy.
pub(super) fn check_choice(settings: &TurnSettings, start: &StartTurn) -> Result<(), Error> {
    let why = match &start.parameters.tool_choice {
        Some(ToolChoice::Tool { name }) if !settings.tools.names().any(|known| known == name) => {
            format!(
                "toolChoice names {:?}, which is not among the tools",
                name.chars().take(64).collect::<String>()
            )
        }
        Some(ToolChoice::Required) if settings.tools.names().next().is_none() => {
            "toolChoice is \"required\", and there are no tools".to_owned()
        }
        _ => return Ok(()),
    };
    Err(Error::BadMessage { why })
}
