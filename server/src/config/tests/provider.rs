//! Providers: names, keys and URLs.

use super::*;

#[test]
fn an_openai_key_is_a_provider() {
    let case = Case::new("").variable("OPENAI_API_KEY", "sk-s3cret");
    let config = case.config();
    assert_eq!(config.providers[0].name, "openai");
    assert!(config.providers[0].models.len() > 1);
    assert_eq!(chat(&config, 0).endpoint.base_url, "https://api.openai.com/v1");
    assert_eq!(case.config().providers[0].models[0], "gpt-5.5");
    let other =
        case.variable("OPENAI_BASE_URL", "http://127.0.0.1:1/v1").variable("EVERTURN_MODEL", "a, b").config();
    assert_eq!(other.providers[0].models, ["a", "b"]);
    assert_eq!(chat(&other, 0).endpoint.base_url, "http://127.0.0.1:1/v1");
}

#[test]
fn models_of_another_endpoint_must_be_named() {
    let case = Case::new("").variable("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
    let warnings = case.config().warnings;
    assert!(matches!(&warnings[..], [line] if line.starts_with("EVERTURN_MODEL is not set")), "{warnings:?}");
    let case = case.variable("EVERTURN_MODEL", "llama3.2");
    assert!(case.config().warnings.is_empty());
    assert!(Case::new("").variable("OPENAI_API_KEY", "sk-s3cret").config().warnings.is_empty());
    let problem = Case::new("").variable("OPENAI_BASE_URL", "127.0.0.1:1/s3cret").problem();
    assert_eq!(
        problem,
        "OPENAI_BASE_URL must begin with http:// or https://, e.g. http://127.0.0.1:11434/v1"
    );
}

#[test]
fn each_key_is_a_provider() {
    let case = Case::new("").variable("ANTHROPIC_API_KEY", "sk-ant-s3cret");
    let config = case.config();
    let Api::Anthropic(messages) = &config.providers[0].api else { panic!("speaks another API") };
    assert_eq!(messages.endpoint.base_url, "https://api.anthropic.com/v1");
    assert_eq!(messages.endpoint.api_key, Some("sk-ant-s3cret".into()));
    assert_eq!(config.providers[0].models[0], "claude-opus-5-5");
    assert!(!format!("{config:?}").contains("s3cret"));

    let case = case.variable("EVERTURN_MODEL", "one");
    assert_eq!(case.config().providers[0].models, ["one"]);
    let case = case.variable("OPENAI_API_KEY", "sk-s3cret");
    let of = |config: &Config| -> Vec<_> {
        config.providers.iter().map(|provider| (provider.name.clone(), provider.models[0].clone())).collect()
    };
    let case = case.variable("GEMINI_API_KEY", "AIza-s3cret");
    let expected = [("openai", "one"), ("anthropic", "claude-opus-5-5"), ("gemini", "gemini-3.8-flash")];
    let all = case.config();
    assert_eq!(of(&all), expected.map(|(name, model)| (name.to_owned(), model.to_owned())));
    for (provider, key) in all.providers.iter().zip(["sk-s3cret", "sk-ant-s3cret", "AIza-s3cret"]) {
        assert_eq!(endpoint(&provider.api).api_key, Some(key.into()), "each has its own key");
    }
    let alone = Case::new("").variable("GEMINI_API_KEY", "AIza-s3cret").config();
    assert!(matches!(&alone.providers[..], [Provider { api: Api::Gemini(_), .. }]), "{alone:?}");
}

#[test]
fn another_endpoint_is_set_with_the_vendor_s_own_variable() {
    let anthropic = ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"];
    let gemini = ["GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY"];
    for ([variable, key], base_url, expected) in [
        (anthropic, "http://127.0.0.1:1", "http://127.0.0.1:1/v1"),
        (anthropic, "http://127.0.0.1:1/proxy/", "http://127.0.0.1:1/proxy/v1"),
        (anthropic, "http://127.0.0.1:1/v1/", "http://127.0.0.1:1/v1/"),
        (gemini, "http://127.0.0.1:1/", "http://127.0.0.1:1/v1beta"),
        (gemini, "http://127.0.0.1:1/v1beta", "http://127.0.0.1:1/v1beta"),
        (gemini, "http://127.0.0.1:1/v1", "http://127.0.0.1:1/v1"),
    ] {
        let case = Case::new("").variable(variable, base_url);
        assert!(case.config().providers.is_empty(), "an address without a key is no provider");
        let config = case.variable(key, "k").config();
        assert_eq!(endpoint(&config.providers[0].api).base_url, expected);
    }
}

#[test]
fn providers_of_the_file_replace_the_environment_s() {
    let file = r#"
        [[provider]]
        name = "local"
        base_url = "http://127.0.0.1:8000/v1"
        models = ["small"]
        output_limit = "max_tokens"
        include_usage = false
        headers = { X-Team = "teams3cret" }
        extra_body = { temperature = 0.5 }
        timeouts = { idle_ms = 7000, progress_ms = 1800000, silence_ms = 0, total_ms = 600000 }

        [[provider]]
        name = "openai"
        kind = "openai-chat"
        models = ["gpt"]
    "#;
    let config = Case::new(file).variable("OPENAI_API_KEY", "sk-s3cret").config();
    let names: Vec<&str> = config.providers.iter().map(|provider| provider.name.as_str()).collect();
    assert_eq!(names, ["local", "openai"]);
    let local = chat(&config, 0);
    assert!(local.endpoint.api_key.is_none(), "OpenAI's key goes to OpenAI only");
    assert_eq!(local.extra_body["temperature"], 0.5);
    assert_eq!(local.output_limit, everturn_provider::OutputLimit::MaxTokens);
    assert!(!local.include_usage);
    let timeouts = config.providers[0].http.timeouts;
    assert_eq!((timeouts.idle.as_secs(), timeouts.progress.as_secs()), (7, 1800));
    assert!(timeouts.silence.is_zero());
    assert_eq!(timeouts.total.map(|total| total.as_secs()), Some(600));
    assert!(chat(&config, 1).endpoint.api_key.is_some());
}

#[test]
fn a_key_comes_from_one_place() {
    let provider = |keys: &str| {
        Case::new(&format!(
            "[[provider]]\nname = \"a\"\nbase_url = \"http://127.0.0.1:1\"\nmodels = [\"m\"]\n{keys}"
        ))
    };
    let with_file = provider("");
    let path = with_file.home.path().join("key");
    fs::write(&path, "sk-s3cret\n").unwrap();
    let in_file = format!("api_key_file = {:?}", path.display().to_string());
    let relative = provider("api_key_file = \"my.key\"");
    fs::write(relative.home.path().join("everturn").join("my.key"), "sk-s3cret\n").unwrap();
    let config = relative.config();
    assert_eq!(chat(&config, 0).endpoint.api_key, Some("sk-s3cret".into()), "beside the configuration");
    assert_eq!(config.secret_files, [relative.home.path().join("everturn").join("my.key")]);
    for keys in ["api_key = \"sk-s3cret\"", "api_key_env = \"MY_KEY\"", &in_file] {
        let config = provider(keys).variable("MY_KEY", "sk-s3cret").config();
        assert_eq!(chat(&config, 0).endpoint.api_key, Some("sk-s3cret".into()), "{keys}");
    }
    for (keys, expected) in [
        ("api_key_env = \"MY_KEY\"", "set the environment variable MY_KEY"),
        ("api_key_file = \"/nowhere/key\"", "there is no `api_key_file` /nowhere/key"),
        ("api_key_env = \"sk-s3cret\"", "`api_key_env` does not look like a variable name"),
        ("api_key_env = \"gsk_s3cret\"", "never the key itself"),
        ("api_key_file = \"./nowhere\"", "there is no `api_key_file` ./nowhere"),
        ("api_key_file = \"sk-s3cret/s3cret.s3cret\"", "there is no `api_key_file` of that name"),
        ("api_key_file = \"sk-s3cret-s3cret-s3cret\"", "does not look like a path"),
        ("api_key = \"sk-s3cret\"\napi_key_env = \"MY_KEY\"", "keep one of"),
        ("api_key = \" \"", "`api_key` is empty"),
    ] {
        let problem = provider(keys).problem();
        assert!(problem.contains(expected) && problem.contains("provider \"a\""), "{problem}");
        assert!(!problem.contains("s3cret"), "{problem}");
    }
}

#[test]
fn a_provider_that_cannot_be_named_is_refused() {
    let provider = |name: &str, models: &str| {
        format!("[[provider]]\nname = {name:?}\nbase_url = \"http://127.0.0.1:1\"\nmodels = {models}\n")
    };
    for (file, expected) in [
        (provider("a/b", "[\"m\"]"), "without / or #"),
        (provider("", "[\"m\"]"), "one word"),
        (provider("a", "[]"), "name at least one model"),
        (provider("a", "[\"m\", \"m\"]"), "twice"),
        (provider("a", "[\"m\"]").repeat(2), "two providers are named \"a\""),
    ] {
        let problem = Case::new(&file).problem();
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn the_version_of_anthropic_s_address_may_be_left_out() {
    for (kind, base_url, expected) in [
        ("anthropic", "https://host", "https://host/v1"),
        ("anthropic", "https://host/", "https://host/v1"),
        ("anthropic", "https://host/v1", "https://host/v1"),
        ("anthropic", "https://host/v1/gateway/anthropic", "https://host/v1/gateway/anthropic/v1"),
        ("openai-chat", "https://host", "https://host"),
        ("gemini", "https://host/v1/publishers/google", "https://host/v1/publishers/google"),
    ] {
        let file = format!(
            "[[provider]]\nname = \"a\"\nkind = \"{kind}\"\nbase_url = \"{base_url}\"\napi_key = \"k\"\nmodels = [\"m\"]"
        );
        let config = Case::new(&file).config();
        assert_eq!(endpoint(&config.providers[0].api).base_url, expected, "{kind}");
    }
}

#[test]
fn every_vendor_has_a_url_and_a_key() {
    for (kind, address, key) in [
        ("anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY"),
    ] {
        let provider = |keys: &str| {
            Case::new(&format!("[[provider]]\nname = \"a\"\nkind = \"{kind}\"\nmodels = [\"m\"]\n{keys}"))
        };
        let config = provider("").variable(key, "k-1").variable("OPENAI_API_KEY", "x").config();
        let api = &config.providers[0].api;
        assert_eq!(matches!(api, Api::Anthropic(_)), kind == "anthropic");
        assert_eq!(matches!(api, Api::Gemini(_)), kind == "gemini");
        let endpoint = endpoint(api);
        assert_eq!((endpoint.base_url.as_str(), &endpoint.api_key), (address, &Some("k-1".into())));
        for (keys, expected) in [
            ("", format!("set the environment variable {key}")),
            ("api_key = \"k\"\ninclude_usage = false", "`include_usage` has no effect".to_owned()),
            ("api_key = \"k\"\noutput_limit = \"max_tokens\"", format!("no effect with kind = \"{kind}\"")),
        ] {
            let problem = provider(keys).problem();
            assert!(problem.contains(&expected) && problem.contains("provider \"a\""), "{problem}");
        }
    }
}

#[test]
fn the_responses_api_has_openai_s_address_and_key() {
    let provider = |keys: &str| {
        Case::new(&format!(
            "[[provider]]\nname = \"a\"\nkind = \"openai-responses\"\nmodels = [\"m\"]\n{keys}"
        ))
    };
    let config = provider("extra_body = { top_p = 0.5 }").variable("OPENAI_API_KEY", "sk-1").config();
    let Api::OpenAiResponses(responses) = &config.providers[0].api else { panic!("speaks another API") };
    assert_eq!(responses.endpoint.base_url, "https://api.openai.com/v1");
    assert_eq!(responses.endpoint.api_key, Some("sk-1".into()));
    assert_eq!(responses.extra_body["top_p"], 0.5);
    for (keys, expected) in [
        ("", "set the environment variable OPENAI_API_KEY"),
        ("api_key = \"k\"\ninclude_usage = false", "no effect with kind = \"openai-responses\""),
    ] {
        let problem = provider(keys).problem();
        assert!(problem.contains(expected) && problem.contains("provider \"a\""), "{problem}");
    }
}

#[test]
fn a_missing_key_turns_off_its_provider_alone() {
    let file = r#"
        [[provider]]
        name = "first"
        kind = "anthropic"
        models = ["m"]

        [[provider]]
        name = "second"
        base_url = "http://127.0.0.1:1"
        models = ["m"]

        [[provider]]
        name = "third"
        api_key_file = "/nowhere/key"
        models = ["m"]
    "#;
    let config = Case::new(file).config();
    assert_eq!(config.providers.len(), 1);
    assert_eq!(config.providers[0].name, "second");
    let expected = [
        "provider \"first\": its key is missing: set the environment variable ANTHROPIC_API_KEY",
        "provider \"third\": its key is missing: there is no `api_key_file` /nowhere/key",
    ];
    assert_eq!(config.off, expected);
    let problem = Case::new(&file.replace("base_url = \"http://127.0.0.1:1\"", "")).problem();
    assert!(
        problem.contains("ANTHROPIC_API_KEY") && problem.contains("OPENAI_API_KEY"),
        "none is left: {problem}"
    );
    let problem = Case::new(&file.replace("kind = \"anthropic\"", "include_usage = 1")).problem();
    assert!(problem.contains("include_usage"), "a mistake is no missing key: {problem}");
}

#[test]
fn the_url_of_an_api_call_is_rejected_without_repeating_it() {
    for address in ["http://127.0.0.1:1/s3cret/v1/chat/completions", "http://h/s3cret/chat/completions/?v=1"]
    {
        let file = format!("[[provider]]\nname = \"a\"\nbase_url = {address:?}\nmodels = [\"m\"]");
        let of_variable = Case::new("").variable("OPENAI_BASE_URL", address);
        for (problem, name) in
            [(Case::new(&file).problem(), "`base_url`"), (of_variable.problem(), "OPENAI_BASE_URL")]
        {
            assert!(problem.contains(&format!("{name} ends with /chat/completions")), "{problem}");
            assert!(!problem.contains("s3cret"), "{problem}");
        }
    }
}

/// The TOML in a document.
fn blocks(text: &str) -> Vec<&str> {
    text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_documentation_has_an_example_of_each_kind_and_of_each_key_of_a_route() {
    let text = include_str!("../../../../docs/configuration.md");
    let mut case = Case::new(blocks(text)[0]);
    for key in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"] {
        case = case.variable(key, "k");
    }
    let config = case.config();
    assert_eq!(config.routes.len(), 1);
    let mut kinds: Vec<&str> = config.providers.iter().map(|provider| provider.api.kind()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["anthropic", "gemini", "openai-chat", "openai-responses"]);
    let routes = text.split("\n## ").find(|section| section.starts_with("Routes\n")).unwrap();
    let unknown = Case::new("[[route]]\nname = \"a\"\ntargets = []\nno_key = 1").problem();
    let keys: Vec<&str> = unknown.split('`').skip(3).step_by(2).collect();
    assert!(keys.contains(&"targets") && keys.len() > 10, "{unknown}");
    for key in keys {
        assert!(blocks(routes)[0].contains(&format!("{key} = ")), "{key} is not shown under Routes");
    }
    // As it stands, without the comments that say what else there is.
    let file = format!("{}\n{}", blocks(text)[0].split("\n[[route]]").next().unwrap(), blocks(routes)[0]);
    std::fs::write(case.home.path().join("everturn").join("config.toml"), file).unwrap();
    assert_eq!(case.config().routes.len(), 1);
}

#[test]
fn the_documentation_names_every_key() {
    let text = concat!(
        include_str!("../../../../docs/configuration.md"),
        include_str!("../../../../docs/callers.md"),
        include_str!("../../../../docs/cluster.md"),
        include_str!("../../../../docs/operations.md"),
        include_str!("../../../../docs/passing-through.md"),
        include_str!("../../../../docs/tools.md"),
        include_str!("../../../../notes/providers.md"),
    );
    let words: BTreeSet<&str> = text.split(|c: char| !c.is_ascii_lowercase() && c != '_').collect();
    for table in [
        "",
        "[server]",
        "[retry]",
        "[retention]",
        "[tools]",
        "[tools.review]",
        "[agent]",
        "[compaction]",
        "[memory]",
        "[titles]",
        "[telemetry]",
        "[cluster]",
        "[postgres]",
        "[[provider]]",
        "[[mcp]]",
        "[[caller]]",
        "[[price]]",
    ] {
        let unknown = Case::new(&format!("{table}\nno_key = 1")).problem();
        let keys: Vec<&str> = unknown.split('`').skip(3).step_by(2).collect();
        assert!(!keys.is_empty(), "{unknown}");
        for key in keys {
            assert!(words.contains(key), "{key} of {table:?} is in no document");
        }
    }
}

#[test]
fn every_documented_provider_is_parsed() {
    let text = include_str!("../../../../notes/providers.md");
    let blocks = blocks(text);
    let keys = text.split(['"', '`']).filter(|word| word.ends_with("_API_KEY"));
    let mut case = Case::new(&blocks.concat());
    for key in keys {
        case = case.variable(key, "k");
    }
    let config = case.config();
    let mut names: Vec<&str> = config.providers.iter().map(|provider| &*provider.name).collect();
    names.sort_unstable();
    let expected = [
        "anthropic",
        "azure",
        "azure-dated",
        "deepseek",
        "gemini",
        "groq",
        "llama-cpp",
        "mistral",
        "moonshot",
        "ollama",
        "openai",
        "openrouter",
        "vllm",
        "xai",
    ];
    assert_eq!(names, expected);
    assert_eq!(config.providers.len(), text.matches("[[provider]]").count());
    let asked = |name: &str| {
        chat(&config, config.providers.iter().position(|provider| provider.name == name).unwrap())
    };
    assert_eq!(asked("deepseek").return_reasoning, everturn_provider::ReturnReasoning::Content);
    assert_eq!(asked("openrouter").return_reasoning, everturn_provider::ReturnReasoning::Details);
    assert_eq!(asked("mistral").return_reasoning, everturn_provider::ReturnReasoning::Never);
    assert_eq!(asked("mistral").history, everturn_provider::HistoryForm::Mistral);
    assert_eq!(asked("vllm").history, everturn_provider::HistoryForm::Usual);
}
