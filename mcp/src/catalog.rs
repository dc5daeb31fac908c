//! What a server lists, as tools that can be offered.

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
    tool::{Facts, McpTool},
};

/// The most tools of a server that are offered.
pub(crate) const MOST: usize = 512;

/// The most that a tool's description and its schema may take, in bytes.
const LONGEST_DESCRIPTION: usize = 16 << 10;
const LARGEST_SCHEMA: usize = 64 << 10;

/// The most reasons why tools are refused that are named.
const REASONS: usize = 8;

type Listed = Arc<[Arc<dyn Tool>]>;

/// What a server offers: what it listed last, also while it is down.
pub(crate) struct Catalog(Mutex<Current>);

struct Current {
    tools: Listed,
    facts: Vec<Facts>,
    /// What of the list cannot be offered, and why.
    refused: Option<String>,
}

impl Catalog {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Current { tools: Vec::new().into(), facts: Vec::new(), refused: None }))
    }

    /// The same `Arc` as long as the list is the same.
    pub(crate) fn tools(&self) -> Listed {
        self.current().tools.clone()
    }

    pub(crate) fn refused(&self) -> Option<String> {
        self.current().refused.clone()
    }

    /// Takes a list in. Returns the server's own names of the tools that are offered.
    pub(crate) fn replace(&self, link: &Arc<Link>, listed: Vec<rmcp::model::Tool>) -> BTreeSet<String> {
        let (facts, refused) = checked(link.name(), listed);
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

/// The tools that can be offered, by name, and why others cannot.
fn checked(server: &str, mut listed: Vec<rmcp::model::Tool>) -> (Vec<Facts>, Vec<String>) {
    let mut refused = Vec::new();
    if listed.len() > MOST {
        listed.truncate(MOST);
        refused.push(format!("it lists more than {MOST} tools: only so many are offered"));
    }
    let mut by_name: BTreeMap<String, Vec<Facts>> = BTreeMap::new();
    for tool in listed {
        let facts = facts(server, tool);
        match facts.spec.parameters.to_string().len() > LARGEST_SCHEMA {
            true => refused
                .push(format!("the schema of {:?} is larger than {LARGEST_SCHEMA} bytes", facts.own_name)),
            false => by_name.entry(facts.spec.name.clone()).or_default().push(facts),
        }
    }
    let mut offered = Vec::new();
    for (name, mut facts) in by_name {
        match facts.len() {
            1 => offered.append(&mut facts),
            // Whichever were taken, it could be the other one after the next change of the list.
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

fn facts(server: &str, tool: rmcp::model::Tool) -> Facts {
    let annotations = tool.annotations.map(|claimed| ToolAnnotations {
        title: claimed.title,
        read_only: claimed.read_only_hint,
        destructive: claimed.destructive_hint,
        idempotent: claimed.idempotent_hint,
        open_world: claimed.open_world_hint,
    });
    let annotations = match (annotations, tool.title) {
        (annotations, Some(title)) => {
            Some(ToolAnnotations { title: Some(title), ..annotations.unwrap_or_default() })
        }
        (annotations, None) => annotations,
    };
    let mut description = tool.description.map(Cow::into_owned).unwrap_or_default();
    description.truncate(description.floor_char_boundary(LONGEST_DESCRIPTION));
    let spec = ToolSpec {
        name: name::qualified(server, &tool.name),
        description,
        parameters: Value::Object(Arc::unwrap_or_clone(tool.input_schema)),
    };
    Facts { own_name: tool.name.into_owned(), spec, annotations }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> rmcp::model::Tool {
        rmcp::model::Tool::new(name.to_owned(), "", serde_json::Map::new())
    }

    fn names(facts: &[Facts]) -> Vec<&str> {
        facts.iter().map(|facts| facts.spec.name.as_str()).collect()
    }

    #[test]
    fn tools_of_one_name_are_refused_whatever_their_order() {
        for list in [["get.x", "get/x", "echo"], ["echo", "get/x", "get.x"]] {
            let (offered, refused) = checked("a", list.map(tool).into());
            assert_eq!(names(&offered), ["a__echo"]);
            assert!(refused[0].contains("\"get.x\"") && refused[0].contains("\"get/x\""), "{refused:?}");
            assert!(refused[0].ends_with("would all be called a__get_x"), "{refused:?}");
        }
    }

    #[test]
    fn a_list_is_bounded() {
        let (offered, refused) = checked("a", (0..600).map(|number| tool(&format!("t{number}"))).collect());
        assert_eq!(offered.len(), MOST);
        assert!(refused[0].contains("more than 512 tools"), "{refused:?}");
        let mut large = tool("large");
        let text = Value::String("x".repeat(LARGEST_SCHEMA));
        large.input_schema = Arc::new([("description".to_owned(), text)].into_iter().collect());
        large.description = Some("ä".repeat(LONGEST_DESCRIPTION).into());
        let (offered, refused) = checked("a", vec![large.clone(), tool("small")]);
        assert_eq!(names(&offered), ["a__small"]);
        assert!(refused[0].contains("the schema of \"large\""), "{refused:?}");
        large.input_schema = Arc::default();
        let (offered, _) = checked("a", vec![large]);
        assert_eq!(offered[0].spec.description.len(), LONGEST_DESCRIPTION);
    }
}
