//! Fallback chains, and whether failures are retried at all.

use super::*;

const PROVIDERS: &str = r#"
    [[provider]]
    name = "a"
    base_url = "http://127.0.0.1:1"
    models = ["large", "small"]

    [[provider]]
    name = "b"
    base_url = "http://127.0.0.1:2"
    api_key_env = "B_KEY"
    models = ["m"]

    [[route]]
    name = "cheap"
    targets = ["a/small", "b/m"]
"#;

fn chains(chains: &str) -> Case {
    Case::new(&format!("[retry.fallback_chains]\n{chains}\n{PROVIDERS}"))
}

#[test]
fn retries_are_on_unless_they_are_switched_off() {
    assert!(Case::new("").config().retry.enabled);
    assert!(!Case::new("[retry]\nenabled = false").config().retry.enabled);
}

#[test]
fn a_chain_names_models_and_routes_in_order() {
    let file = "\"a/large\" = [\"b/m\", \"route/cheap\"]\n\"route/cheap\" = [\"a/large\"]";
    let config = chains(file).variable("B_KEY", "k").config();
    let chains: Vec<_> = config.fallback_chains.0.into_iter().collect();
    let expected = [("a/large", vec!["b/m", "route/cheap"]), ("route/cheap", vec!["a/large"])];
    let expected =
        expected.map(|(of, chain)| (of.to_owned(), chain.into_iter().map(str::to_owned).collect()));
    assert_eq!(chains, expected);
}

#[test]
fn a_disabled_model_is_left_out_of_its_chains() {
    let file = "\"a/large\" = [\"b/m\", \"a/small\"]\n\"a/small\" = [\"b/m\"]\n\"b/m\" = [\"a/small\"]";
    let config = chains(file).config();
    assert_eq!(config.fallback_chains.0.into_keys().collect::<Vec<_>>(), ["a/large"]);
    let skipped = config.off.iter().filter(|line| line.starts_with("fallback chain")).count();
    assert_eq!(skipped, 2, "{:?}", config.off);
}

#[test]
fn problems_of_a_chain_name_its_line_its_key_and_the_nearest_name() {
    for (file, expected) in [
        (
            "\"a/larg\" = [\"b/m\"]",
            ":2: [retry.fallback_chains] \"a/larg\": \"a/larg\" is not configured: did you mean \"a/large\"?",
        ),
        (
            "\"a/large\" = [\n\"a/smal\"]",
            ":3: [retry.fallback_chains] \"a/large\": \"a/smal\" is not configured: did you mean \"a/small\"?",
        ),
        ("\"a/large\" = [\"route/chep\"]", "did you mean \"route/cheap\"?"),
        (
            "\"a/large\" = [\"xyz\"]",
            "\"xyz\" is not configured; known models and routes: a/large, a/small, b/m, route/cheap",
        ),
        ("\"a/large\" = [\"b/m\", \"b/m\"]", ":2: [retry.fallback_chains] \"a/large\" names \"b/m\" twice"),
        ("\"a/large\" = [\"a/large\"]", "names \"a/large\", which asks nothing else"),
        ("\"route/cheap\" = [\"b/m\"]", "names \"b/m\", which asks nothing else"),
        ("\"a/large\" = []", ":2: [retry.fallback_chains] \"a/large\" is empty"),
        ("\"a/large\" = \"b/m\"", ":2: `\"a/large\"` must be a list"),
    ] {
        let problem = chains(file).variable("B_KEY", "k").problem();
        assert!(problem.contains(expected), "{file}: {problem}");
    }
    let problem = Case::new("[retry.fallback_chains]\n\"a/m\" = [\"b/m\"]").problem();
    assert!(problem.contains("\"a/m\" is not configured, and neither is any provider"), "{problem}");
}
