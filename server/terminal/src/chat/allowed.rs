//! `/allowed` and `/revoke`: the tools that are allowed for the entire conversation.

use anyhow::Result;
use everturn_wire::{Approvals, ConversationId, Revoked};

use crate::{
    remote::{Remote, encoded},
    wording,
};

/// Lists the allowed tools.
const ALLOWED: &str = "/allowed";
/// Revokes a tool, so that each of its calls is asked about again.
const REVOKE: &str = "/revoke";

/// Maximum length of a displayed tool name, in characters.
const NAME: usize = 60;

/// A parsed line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    List,
    Revoke(String),
}

/// Parses a line, if it is one of these commands.
pub(super) fn asked(line: &str) -> Option<Asked> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        [ALLOWED] | [REVOKE] => Some(Asked::List),
        [REVOKE, tool] => Some(Asked::Revoke((*tool).to_owned())),
        _ => None,
    }
}

/// Runs the command and returns its result as text.
///
/// # Errors
/// When the server cannot be asked.
pub(super) async fn answer(asked: Asked, id: &ConversationId, remote: &Remote<'_>) -> Result<String> {
    match asked {
        Asked::List => {
            let answer = remote.get(&format!("/conversations/{id}/approvals")).await?;
            let approvals: Option<Approvals> = answer.map(|answer| answer.read()).transpose()?;
            // There is no conversation before the first message.
            Ok(told(&approvals.map(|approvals| approvals.allowed_tools).unwrap_or_default()))
        }
        Asked::Revoke(tool) => {
            let path = format!("/conversations/{id}/approvals/tools/{}", encoded(&tool));
            let answer = remote.delete(&path).await?;
            let revoked: Option<Revoked> = answer.map(|answer| answer.read()).transpose()?;
            let tool = wording::one_line(&tool, NAME);
            Ok(match revoked.is_some_and(|revoked| revoked.revoked) {
                true => format!("Each call of {tool} asks you again."),
                false => format!("{tool} was not allowed in this conversation."),
            })
        }
    }
}

fn told(tools: &[String]) -> String {
    if tools.is_empty() {
        return "No tool is allowed in the whole conversation.".to_owned();
    }
    let tools: Vec<String> = tools.iter().map(|tool| wording::one_line(tool, NAME)).collect();
    format!("Allowed in this conversation: {}. {REVOKE} TOOL takes that back.", tools.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_lists_or_revokes() {
        assert_eq!(asked(" /allowed "), Some(Asked::List));
        assert_eq!(asked("/revoke roll_dice"), Some(Asked::Revoke("roll_dice".to_owned())));
        for line in ["/allowed it", "allowed", "/revoke a b", "what /allowed"] {
            assert_eq!(asked(line), None, "{line}");
        }
    }
}
