//! Warnings about tool policies without a tool.

use everturn_orchestrator::Orchestrator;
use everturn_wire::{ToolSourceStatus, Tools};

/// Similarity, from 0 to 1, from which a name counts as a misspelling of another.
const ALIKE: f64 = 0.8;

/// Returns a line about each policy that names no known tool, with the name that was probably meant. Policies of MCP
/// servers whose tools are not known yet are left out, and so is `*`.
pub(crate) fn warnings(orchestrator: &Orchestrator) -> Vec<String> {
    let tools = orchestrator.tools();
    let unmatched = orchestrator.unmatched_policies();
    let judged =
        unmatched.iter().filter(|pattern| pattern.contains(|c| c != '*') && !may_match(pattern, &tools));
    judged.map(|pattern| warning(pattern, &tools)).collect()
}

/// Whether tools that are not known yet may have this name.
fn may_match(pattern: &str, tools: &Tools) -> bool {
    let start = pattern.split('*').next().unwrap_or_default();
    let is_open = |prefix: String| match pattern.contains('*') {
        true => start.starts_with(&prefix) || prefix.starts_with(start),
        false => start.starts_with(&prefix),
    };
    let mut unknown = tools.sources.iter().filter(|source| source.status != ToolSourceStatus::Up);
    unknown.any(|source| is_open(format!("{}__", source.name)))
}

fn warning(pattern: &str, tools: &Tools) -> String {
    let known = tools.tools.iter().chain(tools.sources.iter().flat_map(|source| &source.tools));
    let names = known.map(|tool| tool.name.clone());
    let groups = tools.sources.iter().map(|source| format!("{}__*", source.name));
    let (what, candidates): (_, Vec<String>) = match pattern.contains('*') {
        true => ("no tool matches it", groups.collect()),
        false => ("no tool has this name", names.collect()),
    };
    let alike = |name: &String| strsim::jaro_winkler(name, pattern);
    let nearest = candidates.iter().max_by(|one, other| alike(one).total_cmp(&alike(other)));
    let nearest = nearest.filter(|name| alike(name) >= ALIKE);
    let meant = match nearest {
        Some(name) => format!("did you mean {name:?}?"),
        None => "`everturn tools` lists the tools of a running server".to_owned(),
    };
    format!("{pattern:?} under [tools.policy] has no effect, because {what}: {meant}")
}

#[cfg(test)]
mod tests {
    use everturn_wire::{ToolInfo, ToolSourceInfo};

    use super::*;

    fn tools(status: ToolSourceStatus) -> Tools {
        let tool = |name: &str| ToolInfo { name: name.to_owned(), ..ToolInfo::default() };
        let (name, message) = ("files".to_owned(), None);
        let files = ToolSourceInfo { name, status, message, login: None, tools: vec![tool("files__read")] };
        Tools { tools: vec![tool("roll_dice")], sources: vec![files] }
    }

    #[test]
    fn the_nearest_name_is_suggested() {
        let tools = tools(ToolSourceStatus::Up);
        for (pattern, expected) in [
            ("rol_dice", "no tool has this name: did you mean \"roll_dice\"?"),
            ("files_read", "no tool has this name: did you mean \"files__read\"?"),
            ("file__*", "no tool matches it: did you mean \"files__*\"?"),
            ("zebra", "no tool has this name: `everturn tools` lists"),
        ] {
            let warning = warning(pattern, &tools);
            assert!(warning.contains(expected), "{warning}");
        }
    }

    #[test]
    fn tools_of_a_server_that_is_not_up_may_still_come() {
        for (pattern, expected) in [
            ("files__write", true),
            ("files__*", true),
            ("f*", true),
            ("*_write", true),
            ("roll", false),
            ("fil", false),
        ] {
            assert_eq!(may_match(pattern, &tools(ToolSourceStatus::Down)), expected, "{pattern}");
            assert!(!may_match(pattern, &tools(ToolSourceStatus::Up)), "{pattern}");
        }
    }
}
