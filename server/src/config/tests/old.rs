//! Configuration files as they were documented in the past, each with the settings that were new then. They mean what they meant.

use std::fmt::Write as _;

use super::*;

const OLD: [(&str, &str, &str); 5] = [
    ("first", include_str!("old/first.toml"), include_str!("old/first.txt")),
    ("routes", include_str!("old/routes.toml"), include_str!("old/routes.txt")),
    ("tools", include_str!("old/tools.toml"), include_str!("old/tools.txt")),
    ("compaction", include_str!("old/compaction.toml"), include_str!("old/compaction.txt")),
    ("callers", include_str!("old/callers.toml"), include_str!("old/callers.txt")),
];

/// What a configuration says, line by line.
fn meaning(config: &Config) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &dyn std::fmt::Debug| writeln!(text, "{name}: {value:?}").unwrap();
    line("system prompt", &config.system_prompt);
    line("steps", &(config.settings.max_steps, config.usual_max_steps));
    line("default model", &config.default_model);
    line("listen", &config.listen);
    line("token", &config.token.as_ref().map(Hidden::reveal));
    line("retry", &config.retry);
    line("compaction", &config.compaction);
    line("report", &config.final_report.as_ref().map(|report| (&report.schema, report.max_attempts)));
    line("content in traces", &config.traces_content);
    line("retention", &(&config.keep, config.keep_ephemeral));
    line("memory", &config.memory);
    for provider in &config.providers {
        let Provider { name, api, models, filter, credentials, context_windows, context_window, .. } =
            provider;
        let endpoint = endpoint(api);
        line("provider", &(name, api.kind(), &endpoint.base_url, models, filter, endpoint.api_key.is_some()));
        line("  keys", &credentials.iter().map(|(name, _)| name).collect::<Vec<_>>());
        line("  windows", &(context_windows, context_window));
        line("  timeouts", &provider.http.timeouts);
    }
    for route in &config.routes {
        line("route", &(&route.name, &route.targets, &route.policy.waits, route.priority));
    }
    for server in &config.mcp {
        line("tools of", &(&server.name, &server.connection));
    }
    line("policies", &config.permissions.policies);
    line("approval", &config.permissions.approval_timeout);
    line("review", &config.permissions.review);
    for caller in &config.callers {
        line("caller", caller);
    }
    line("off", &config.off);
    text
}

#[test]
fn old_files_mean_what_they_meant() {
    for (name, file, expected) in OLD {
        let mut case = Case::new(file);
        for key in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "KEY_1", "KEY_2", "ANN_TOKEN"] {
            case = case.variable(key, &format!("the-value-of-{key}"));
        }
        let config = case.config();
        assert_eq!(meaning(&config), expected, "{name}");
        assert_eq!(
            config.data.is_some_and(|path| path == Path::new("/var/lib/everturn.db")),
            name == "first"
        );
    }
}
