//! Compaction settings.

use super::*;

const PROVIDERS: &str = r#"
[[provider]]
name = "a"
base_url = "http://127.0.0.1:1"
models = ["large", "small"]
context_window = { large = 200000 }

[[provider]]
name = "b"
base_url = "http://127.0.0.1:2"
models = ["m", "n"]
context_window = 32768

[[route]]
name = "cheap"
targets = ["a/small", "b/m"]
"#;

fn with(table: &str) -> Case {
    Case::new(&format!("[compaction]\n{table}\n{PROVIDERS}"))
}

#[test]
fn it_is_on_with_the_model_of_the_conversation() {
    let usual = Some(Compaction { model: None, ahead: Some(0.85) });
    assert_eq!(Case::new("").config().compaction, usual);
    assert_eq!(with("").config().compaction, usual);
    assert_eq!(with("enabled = false").config().compaction, None);
}

#[test]
fn a_model_or_a_route_summarizes_and_how_far_ahead() {
    for (table, model, ahead) in [
        ("model = \"a/small\"\nahead = 0.5", Some("a/small"), Some(0.5)),
        ("model = \"route/cheap\"\nahead = 1.0", Some("route/cheap"), Some(1.0)),
        ("ahead = 0", None, None),
        ("ahead = 1", None, Some(1.0)),
    ] {
        let expected = Compaction { model: model.map(Into::into), ahead };
        assert_eq!(with(table).config().compaction, Some(expected), "{table}");
    }
}

#[test]
fn a_context_window_applies_to_all_models_or_is_set_per_model() {
    let config = with("").config();
    let windows = config.providers.iter().map(|provider| {
        provider.context_windows.iter().map(|(model, tokens)| format!("{model} {tokens}")).collect::<Vec<_>>()
    });
    let expected = [vec!["large 200000"], vec!["m 32768", "n 32768"]];
    assert_eq!(windows.collect::<Vec<_>>(), expected);
}

#[test]
fn problems_are_named_with_their_line() {
    for (table, expected) in [
        (
            "model = \"a/none\"",
            ":2: `[compaction] model` is \"a/none\", which is not available; available: a/large, ",
        ),
        ("model = \"route/none\"", "b/n, route/cheap"),
        ("ahead = 85", ":2: `ahead` is 85, but it is a fraction of the context window: write 0 (off) to 1"),
        ("ahead = -0.5", ":2: `ahead` is -0.5, but "),
        ("ahead = nan", ":2: `ahead` is NaN, but "),
        ("ahead = \"soon\"", ":2: `ahead` must be a number"),
        ("window = 5", ":2: unknown field `window`, expected one of `enabled`, `model`, `ahead`"),
    ] {
        let problem = with(table).problem();
        assert!(problem.contains(expected), "{table}: {problem}");
    }
    let provider = "[[provider]]\nname = \"a\"\nbase_url = \"http://h\"\nmodels = [\"m\"]\n";
    for (line, expected) in [
        ("context_window = 0", "provider \"a\": `context_window` must be at least 1 token"),
        (
            "context_window = { n = 5 }",
            "provider \"a\": `context_window` names \"n\", which is not in `models`",
        ),
        (
            "context_window = -1",
            ":5: `context_window` must be a whole number of tokens, or a table of them by model",
        ),
        ("context_window = \"128k\"", ":5: `context_window` must be a whole number of tokens, or a table"),
    ] {
        let problem = Case::new(&format!("{provider}{line}\n")).problem();
        assert!(problem.contains(expected), "{line}: {problem}");
    }
}
