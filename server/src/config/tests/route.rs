//! Routes, and providers with several keys.

use std::time::Duration;

use everturn_orchestrator::{Cycling, Switching};

use super::*;

const PROVIDERS: &str = r#"
    [[provider]]
    name = "a"
    base_url = "http://127.0.0.1:1"
    models = ["m", "n"]

    [[provider]]
    name = "b"
    base_url = "http://127.0.0.1:2"
    api_key_env = "B_KEY"
    models = ["m"]
"#;

fn case(routes: &str) -> Case {
    Case::new(&format!("{PROVIDERS}\n{routes}"))
}

#[test]
fn a_route_has_its_own_targets_and_schedule() {
    let file = r#"
        [[route]]
        name = "quick"
        targets = ["a/m", "b/m"]
        schedule = "interactive"
        base_ms = 100
        max_delay_ms = 0
        revert = "never"
        jitter = 0.25

        [[route]]
        name = "round"
        targets = ["b/m"]
        schedule = "cycling"
        max_attempts = 7
        clamp_hints = false
        sticky = true

        [[route]]
        name = "usual"
        targets = ["a/n", "a/m"]
    "#;
    let config = case(&format!("{file}\n[retry]\nschedule = \"exponential\"\njitter = 0.0"))
        .variable("B_KEY", "sk-s3cret")
        .config();
    let quick = Exponential {
        base: Duration::from_millis(100),
        max_delay: None,
        jitter: 0.25,
        switching: Some(Switching { reverts: false }),
        ..Default::default()
    };
    let schedules = [
        RetryPolicy::from(quick),
        Cycling { max_attempts: 7, clamp_hints: false, sticky: true }.into(),
        Exponential::default().into(),
    ];
    let targets = ["a/m b/m", "b/m", "a/n a/m"];
    for ((route, schedule), targets) in config.routes.iter().zip(schedules).zip(targets) {
        assert_eq!(
            (route.policy.clone(), route.targets.join(" ")),
            (schedule, targets.to_owned()),
            "{}",
            route.name
        );
    }
    assert_eq!(config.routes.iter().map(|route| route.is_own).collect::<Vec<_>>(), [true, true, false]);
    assert!(config.off.is_empty());
}

#[test]
fn a_target_whose_provider_is_off_is_left_out() {
    let config = case(
        "[[route]]\nname = \"both\"\ntargets = [\"b/m\", \"a/m\"]\n[[route]]\nname = \"b\"\ntargets = [\"b/m\"]",
    )
    .config();
    assert_eq!(config.routes.len(), 1);
    assert_eq!(config.routes[0].targets, ["a/m"]);
    let expected = [
        "provider \"b\": its key is missing: set the environment variable B_KEY",
        "route \"both\": skipping b/m (provider disabled)",
        "route \"b\": skipping b/m (provider disabled)",
        "route \"b\" is disabled, because all of its targets are",
    ];
    assert_eq!(config.off, expected);
    let problem = case("[[route]]\nname = \"r\"\ntargets = [\"b/m\", \"b/m\"]").problem();
    assert!(problem.contains("names \"b/m\" twice"), "{problem}");
}

#[test]
fn problems_of_a_route_are_named_with_their_line() {
    let of = |targets: &str, more: &str| format!("[[route]]\nname = \"r\"\ntargets = {targets}\n{more}");
    for (file, expected) in [
        (
            of("[\"a/x\"]", ""),
            ":15: route \"r\" names \"a/x\", which is not configured; known models: a/m, a/n, b/m",
        ),
        (of("[\"a/m\",\n\"a/m\"]", ""), ":16: route \"r\" names \"a/m\" twice"),
        (of("[\"route/r\"]", ""), ":15: route \"r\" names \"route/r\": a route cannot contain a route"),
        (of("[]", ""), ":14: route \"r\" has no targets"),
        (of("[\"a/m\"]", "").repeat(2), ":17: two routes are named \"r\""),
        (of("[\"a/m\"]", "").replace("\"r\"", "\"r/s\""), ":14: the name of a route must be one word"),
        (of("[\"a/m\"]", "max_attempts = 2"), ":14: route \"r\" has retry parameters but no schedule"),
        (
            of("[\"a/m\"]", "schedule = \"interactive\"\nmax_attempts = 2"),
            ":14: route \"r\" max_attempts has no effect with schedule = \"interactive\": it is for schedule = \"cycling\"",
        ),
        (of("[\"a/m\"]", "schedule = \"cycling\"\nmax_attempts = 0"), "counts all calls of a step"),
        (of("[\"a/m\"]", "schedule = \"soon\""), ":16: `schedule` must be one of"),
        ("default_model = \"route/x\"".to_owned(), "missing"),
    ] {
        let problem = match expected {
            // It must precede the tables.
            "missing" => Case::new(&format!("{file}\n{PROVIDERS}")).variable("B_KEY", "k").problem(),
            _ => case(&file).variable("B_KEY", "k").problem(),
        };
        let expected = if expected == "missing" { "`default_model` is \"route/x\"" } else { expected };
        assert!(problem.contains(expected), "{file}: {problem}");
    }
}

#[test]
fn the_default_may_be_a_route() {
    let file =
        format!("default_model = \"route/r\"\n{PROVIDERS}\n[[route]]\nname = \"r\"\ntargets = [\"a/m\"]");
    assert_eq!(Case::new(&file).config().default_model.as_deref(), Some("route/r"));
    let problem = Case::new(&file.replace("route/r", "b/m")).problem();
    let expected = "`default_model` is \"b/m\", which is not available; available: a/m, a/n, route/r; provider \"b\": its key";
    assert!(problem.contains(expected), "{problem}");
}

#[test]
fn a_provider_may_have_several_keys() {
    let provider = |keys: &str| {
        let file = "[[provider]]\nname = \"a\"\nbase_url = \"http://127.0.0.1:1\"\nmodels = [\"m\"]";
        Case::new(&format!("{file}\n{keys}")).variable("ONE", "sk-1").variable("TWO", "sk-2")
    };
    let config = provider("api_key_env = [\"ONE\", \"TWO\", \"THREE\"]").config();
    let key = |api: &Api| match api {
        Api::OpenAiChat(chat) => chat.endpoint.api_key.clone(),
        _ => panic!("another API"),
    };
    let [provider_a] = &config.providers[..] else { panic!("{config:?}") };
    let [(name, second)] = &provider_a.credentials[..] else { panic!("{config:?}") };
    assert_eq!((key(&provider_a.api), name.as_str()), (Some("sk-1".into()), "a#2"));
    assert_eq!(key(second), Some("sk-2".into()));
    assert_eq!(config.off, ["provider \"a\": key 3 is missing: set the environment variable THREE"]);
    for (keys, expected) in [
        ("api_key_env = []", "its list of keys is empty"),
        ("api_key_env = [\"ONE\", \"ONE\"]", "its key 2 is a duplicate"),
        ("api_key = [\"sk-s3cret\", 1]", "`api_key` must be"),
        ("api_key_env = [\"THREE\", \"FOUR\"]", "set the environment variable FOUR"),
    ] {
        let problem = provider(keys).problem();
        assert!(problem.contains(expected) && !problem.contains("s3cret"), "{keys}: {problem}");
    }
}
