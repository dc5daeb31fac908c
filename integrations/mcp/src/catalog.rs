//! The tools that a server lists.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use everturn_kernel::ToolSpec;
use everturn_orchestrator::Tool;
use everturn_wire::{ToolAnnotations, Value};

use crate::{
    link::Link,
    name,
    redactor::Redactor,
    tool::{Facts, McpTool},
};

/// Maximum number of tools of a server that are offered.
pub(crate) const MOST: usize = 512;

/// Maximum size of a tool's name, title, description and schema, in bytes.
const LONGEST_NAME: usize = 256;
const LONGEST_DESCRIPTION: usize = 16 << 10;
const LARGEST_SCHEMA: usize = 64 << 10;

/// Maximum number of reported reasons for refused tools.
const REASONS: usize = 8;

type Listed = Arc<[Arc<dyn Tool>]>;

/// The tools that a server offers. While it is down, those that it last listed.
pub(crate) struct Catalog(Mutex<Current>);

struct Current {
    tools: Listed,
    facts: Vec<Facts>,
    /// Which listed tools cannot be offered, and why.
    refused: Option<String>,
}

impl Catalog {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Current { tools: Vec::new().into(), facts: Vec::new(), refused: None }))
    }

    /// Returns the tools. The `Arc` is the same as long as the list is.
    pub(crate) fn tools(&self) -> Listed {
        self.current().tools.clone()
    }

    pub(crate) fn refused(&self) -> Option<String> {
        self.current().refused.clone()
    }

    /// Replaces the list. Returns the server's own names of the offered tools.
    pub(crate) fn replace(&self, link: &Arc<Link>, listed: Vec<Result<Facts, String>>) -> BTreeSet<String> {
        let (facts, refused) = checked(listed);
        if !refused.is_empty() {
            tracing::warn!(server = link.name(), "tools are not offered: {}", refused.join("; "));
        }
        let mut current = self.current();
        current.refused = Some(refused.join("; ")).filter(|refused| !refused.is_empty());
        let offered = facts.iter().map(|facts| facts.own_name.clone()).collect();
        if current.facts != facts {
            let tool = |facts: &Facts| {
                Arc::new(McpTool { link: link.clone(), facts: facts.clone() }) as Arc<dyn Tool>
            };
            current.tools = facts.iter().map(tool).collect();
            current.facts = facts;
        }
        offered
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the tools that can be offered, by name, and why others cannot.
fn checked(mut listed: Vec<Result<Facts, String>>) -> (Vec<Facts>, Vec<String>) {
    let mut refused = Vec::new();
    if listed.len() > MOST {
        listed.truncate(MOST);
        refused.push(format!("it lists more than {MOST} tools; the rest are not offered"));
    }
    let mut by_name: BTreeMap<String, Vec<Facts>> = BTreeMap::new();
    for facts in listed {
        match facts {
            Ok(facts) => by_name.entry(facts.spec.name.clone()).or_default().push(facts),
            Err(why) => refused.push(why),
        }
    }
    let mut offered = Vec::new();
    for (name, mut facts) in by_name {
        match facts.len() {
            1 => offered.append(&mut facts),
            // Neither is offered, because after the next change of the list it could be the other.
            _ => {
                let names: Vec<String> = facts.iter().map(|facts| format!("{:?}", facts.own_name)).collect();
                refused.push(format!("{} would all be called {name}", names.join(" and ")));
            }
        }
    }
    if refused.len() > REASONS {
        let more = refused.len() - REASONS;
        refused.truncate(REASONS);
        refused.push(format!("{more} more"));
    }
    (offered, refused)
}

/// Returns what is kept of a listed tool.
///
/// # Errors
/// Returns the reason, for people, if it is too large to be offered, or has a secret in its name.
pub(crate) fn facts(server: &str, redactor: &Redactor, tool: rmcp::model::Tool) -> Result<Facts, String> {
    let shown = |text: String, most: usize| cut(redactor.redact(text).into_owned(), most);
    if let Cow::Owned(_) = redactor.redact(&*tool.name) {
        return Err("the name of a tool has a secret in it".to_owned());
    }
    let own_name = cut(tool.name.into_owned(), LONGEST_NAME + 1);
    if own_name.len() > LONGEST_NAME {
        return Err(format!("the name of a tool is longer than {LONGEST_NAME} bytes"));
    }
    let mut parameters = Value::Object(Arc::unwrap_or_clone(tool.input_schema));
    let json = parameters.to_string();
    if json.len() > LARGEST_SCHEMA {
        return Err(format!("the schema of {own_name:?} is larger than {LARGEST_SCHEMA} bytes"));
    }
    if let Cow::Owned(redacted) = redactor.redact_secrets(&json) {
        parameters = serde_json::from_str(&redacted)
            .map_err(|_| format!("the schema of {own_name:?} has a secret in it"))?;
    }
    let claimed = tool.annotations.map(|claimed| ToolAnnotations {
        title: claimed.title,
        read_only: claimed.read_only_hint,
        destructive: claimed.destructive_hint,
        idempotent: claimed.idempotent_hint,
        open_world: claimed.open_world_hint,
    });
    let annotations = (claimed.is_some() || tool.title.is_some()).then(|| {
        let claimed = claimed.unwrap_or_default();
        let title = tool.title.or(claimed.title).map(|title| shown(title, LONGEST_NAME));
        ToolAnnotations { title, ..claimed }
    });
    let description = shown(tool.description.map(Cow::into_owned).unwrap_or_default(), LONGEST_DESCRIPTION);
    let spec = ToolSpec { name: name::qualified(server, &own_name), description, parameters };
    Ok(Facts { own_name, spec, annotations })
}

/// Truncates a text, and releases the memory of the rest.
fn cut(mut text: String, most: usize) -> String {
    text.truncate(text.floor_char_boundary(most));
    text.shrink_to_fit();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(tools: impl IntoIterator<Item = rmcp::model::Tool>) -> (Vec<Facts>, Vec<String>) {
        checked(tools.into_iter().map(|tool| facts("a", &hiding("s3cret-value"), tool)).collect())
    }

    fn hiding(secret: &str) -> Redactor {
        let redactor = Redactor::default();
        redactor.hide([secret]);
        redactor
    }

    #[test]
    fn no_secret_is_offered() {
        let mut told = tool("told");
        told.description = Some("Asks s3cret-value.".into());
        told.input_schema = Arc::new([("title".to_owned(), "s3cret-value".into())].into_iter().collect());
        let (offered, refused) = listed([told, tool("of-s3cret-value")]);
        let ToolSpec { description, parameters, .. } = &offered[0].spec;
        assert_eq!((description.as_str(), &parameters["title"]), ("Asks [secret].", &"[secret]".into()));
        assert_eq!((offered.len(), refused), (1, vec!["the name of a tool has a secret in it".to_owned()]));
    }

    fn tool(name: &str) -> rmcp::model::Tool {
        rmcp::model::Tool::new(name.to_owned(), "", serde_json::Map::new())
    }

    fn names(facts: &[Facts]) -> Vec<&str> {
        facts.iter().map(|facts| facts.spec.name.as_str()).collect()
    }

    #[test]
    fn tools_of_one_name_are_refused_whatever_their_order() {
        for list in [["get.x", "get/x", "echo"], ["echo", "get/x", "get.x"]] {
            let (offered, refused) = listed(list.map(tool));
            assert_eq!(names(&offered), ["a__echo"]);
            assert!(refused[0].contains("\"get.x\"") && refused[0].contains("\"get/x\""), "{refused:?}");
            assert!(refused[0].ends_with("would all be called a__get_x"), "{refused:?}");
        }
    }

    #[test]
    fn a_list_is_bounded() {
        let (offered, refused) = listed((0..600).map(|number| tool(&format!("t{number}"))));
        assert_eq!(offered.len(), MOST);
        assert!(refused[0].contains("more than 512 tools"), "{refused:?}");
        let mut large = tool("large");
        let text = Value::String("x".repeat(LARGEST_SCHEMA));
        large.input_schema = Arc::new([("description".to_owned(), text)].into_iter().collect());
        large.description = Some("ä".repeat(LONGEST_DESCRIPTION).into());
        let (offered, refused) = listed([large.clone(), tool("small"), tool(&"x".repeat(300))]);
        assert_eq!(names(&offered), ["a__small"]);
        assert!(refused[0].contains("the schema of \"large\""), "{refused:?}");
        assert!(refused[1].contains("longer than 256 bytes"), "{refused:?}");
        large.input_schema = Arc::default();
        let (offered, _) = listed([large]);
        assert_eq!(offered[0].spec.description.len(), LONGEST_DESCRIPTION);
    }
}
