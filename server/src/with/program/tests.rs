use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};

use super::*;
use crate::{config::Config, with::upstream};

const URL: &str = "http://127.0.0.1:5";

/// Returns what a program is told with these variables in its user's environment, and where its calls go.
fn told(command: &str, environment: &[(&str, &str)]) -> (Told, Vec<Upstream>) {
    let known: BTreeMap<&str, &str> = environment.iter().copied().collect();
    let lookup = |name: &str| known.get(name).map(|value| (*value).to_owned());
    let program = Program::of(&command.into());
    let site = Site { url: URL, environment: &lookup, own: &[], has_token: known.contains_key(TOKEN) };
    (program.told(&site, &["--version".into()]).unwrap(), program.upstreams(&lookup))
}

fn variable<'t>(told: &'t Told, name: &str) -> &'t str {
    told.variables
        .iter()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value.as_str())
        .unwrap_or_default()
}

fn words(told: &Told) -> Vec<&str> {
    told.arguments.iter().map(|word| word.to_str().unwrap()).collect()
}

#[test]
fn every_program_calls_the_server_and_the_server_its_vendor() {
    for program in PROGRAMS.iter().map(|program| program.name).chain(["script.py"]) {
        let (told, upstreams) = told(program, &[]);
        assert!(!upstreams.is_empty(), "{program}");
        assert!(
            upstreams.iter().all(|upstream| *upstream == Upstream::usual(upstream.vendor)),
            "{upstreams:?}"
        );
        let all = format!(
            "{told:?}{}",
            told.file.as_ref().map_or_else(String::new, |file| fs::read_to_string(file.path()).unwrap())
        );
        assert!(all.contains(URL), "{program}: {all}");
        Config::of_text(&upstream::config(&upstreams, &[])).unwrap();
    }
}

#[test]
fn the_servers_token_goes_into_a_header_of_its_own() {
    for program in PROGRAMS.iter().filter(|program| program.sends_token).map(|program| program.name) {
        let (told, _) = told(program, &[(TOKEN, "evt_1")]);
        let extension = told.file.as_ref().map(|file| fs::read_to_string(file.path()).unwrap());
        let all = format!("{told:?}{}", extension.unwrap_or_default());
        assert!(all.contains(HEADER), "{program}: {all}");
        assert!(!words(&told).concat().contains("evt_1"), "other users see the arguments: {all}");
    }
    let both = [(TOKEN, "evt_1"), (claude::HEADERS, "x-team: a")];
    let (told, _) = told("claude", &both);
    assert_eq!(variable(&told, claude::HEADERS), "x-team: a\nx-everturn-token: evt_1");
}

#[test]
fn what_the_environment_names_is_asked_instead_of_the_vendor() {
    for (program, name, value, base_url) in [
        ("claude", "ANTHROPIC_BASE_URL", "https://gateway/claude/", "https://gateway/claude/v1"),
        ("claude", "ANTHROPIC_BASE_URL", "https://gateway/v1", "https://gateway/v1"),
        ("/usr/bin/qwen", "OPENAI_BASE_URL", "https://other/api/v4", "https://other/api/v4"),
        ("goose", "OPENAI_HOST", "https://gateway", "https://gateway/v1"),
        ("gemini", "GOOGLE_GEMINI_BASE_URL", "https://gateway", "https://gateway/v1beta"),
        ("codex", "OPENAI_BASE_URL", "https://gateway/v1", "https://gateway/v1"),
        ("unknown", "OPENAI_API_BASE", "http://localhost:11434/v1", "http://localhost:11434/v1"),
    ] {
        let (told, upstreams) = told(program, &[(name, value)]);
        assert!(upstreams.iter().any(|upstream| upstream.base_url == base_url), "{program}: {upstreams:?}");
        assert!(variable(&told, name).starts_with(URL), "{program}: {told:?}");
    }
}

#[test]
fn codex_keeps_its_provider_and_its_login() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().to_str().unwrap();
    let (plain, upstreams) = told("codex", &[("CODEX_HOME", path), ("OPENAI_API_KEY", "k")]);
    assert!(words(&plain)[3].contains("env_key = \"OPENAI_API_KEY\""), "{plain:?}");
    assert_eq!(upstreams, [Upstream::usual(OpenAi)]);
    fs::write(home.path().join("auth.json"), r#"{"OPENAI_API_KEY":null,"tokens":{"a":"b"}}"#).unwrap();
    let (plain, upstreams) = told("codex", &[("CODEX_HOME", path)]);
    assert!(words(&plain)[3].contains("requires_openai_auth = true"), "{plain:?}");
    assert_eq!(upstreams[0].base_url, "https://chatgpt.com/backend-api/codex");
    let config = "model_provider = \"x\"\n[model_providers.x]\nbase_url = \"https://x.example/v1\"\n";
    fs::write(home.path().join("config.toml"), config).unwrap();
    let (own, upstreams) = told("codex", &[("CODEX_HOME", path)]);
    let uncompressed = "features.enable_request_compression=false";
    let of_provider = "model_providers.x.base_url=\"http://127.0.0.1:5/v1\"";
    assert_eq!(words(&own), ["-c", of_provider, "-c", uncompressed]);
    assert_eq!(upstreams[0].base_url, "https://x.example/v1");
    assert_eq!(fs::read_to_string(home.path().join("config.toml")).unwrap(), config, "it was not changed");
    fs::write(home.path().join("config.toml"), "openai_base_url = \"https://gateway.example/v1\"").unwrap();
    assert_eq!(told("codex", &[("CODEX_HOME", path)]).1[0].base_url, "https://gateway.example/v1");
    fs::write(home.path().join("config.toml"), "key = \"s3cret\" s3cret\n").unwrap();
    let (_, upstreams) = told("codex", &[("CODEX_HOME", path)]);
    assert_eq!(upstreams[0].base_url, "https://chatgpt.com/backend-api/codex");
    let error =
        codex::configuration(&|name| (name == "CODEX_HOME").then(|| path.to_owned())).unwrap().unwrap_err();
    assert!(!error.to_string().contains("s3cret"), "{error}");
}

#[test]
fn opencode_keeps_what_it_was_given() {
    let given = r#"{"model":"anthropic/x","provider":{"anthropic":{"options":{"apiKey":"k"}},"own":{}}}"#;
    let (told, _) = told("opencode", &[("OPENCODE_CONFIG_CONTENT", given)]);
    let config: Value = serde_json::from_str(variable(&told, "OPENCODE_CONFIG_CONTENT")).unwrap();
    assert_eq!(
        config["provider"]["anthropic"]["options"],
        json!({ "apiKey": "k", "baseURL": format!("{URL}/v1") })
    );
    assert_eq!((&config["model"], &config["provider"]["own"]), (&json!("anthropic/x"), &json!({})));
}

#[test]
fn claude_shows_its_waits_unless_its_user_has_a_status_line() {
    let home = tempfile::tempdir().unwrap();
    let environment = [("CLAUDE_CONFIG_DIR", home.path().to_str().unwrap())];
    let (shown, _) = told("claude", &environment);
    let settings: Value = serde_json::from_str(words(&shown)[1]).unwrap();
    assert!(settings["statusLine"]["command"].as_str().unwrap().ends_with(" status --line"));
    fs::write(home.path().join("settings.json"), r#"{"statusLine":{}}"#).unwrap();
    assert!(told("claude", &environment).0.arguments.is_empty());
}

/// Claude Code prefers it to its environment.
#[test]
fn an_address_in_claudes_own_settings_is_called_by_the_server_instead() {
    let home = tempfile::tempdir().unwrap();
    let settings = r#"{"env":{"ANTHROPIC_BASE_URL":"https://gateway/claude"},"statusLine":{}}"#;
    fs::write(home.path().join("settings.json"), settings).unwrap();
    let environment =
        [("CLAUDE_CONFIG_DIR", home.path().to_str().unwrap()), ("ANTHROPIC_BASE_URL", "https://other")];
    let (told, upstreams) = told("claude", &environment);
    assert_eq!(upstreams[0].base_url, "https://gateway/claude/v1");
    assert_eq!(variable(&told, "ENABLE_TOOL_SEARCH"), "", "as without us");
    let given: Value = serde_json::from_str(words(&told)[1]).unwrap();
    assert_eq!(given, json!({ "env": { "ANTHROPIC_BASE_URL": URL } }));
    let lookup = |name: &str| (name == "CLAUDE_CONFIG_DIR").then(|| home.path().display().to_string());
    let site = Site { url: URL, environment: &lookup, own: &[], has_token: false };
    let refused = Program::of(&"claude".into()).told(&site, &["--settings=mine.json".into()]);
    assert!(refused.unwrap_err().to_string().contains("ANTHROPIC_BASE_URL"));
}

#[test]
fn the_extension_of_pi_is_removed_with_its_directory() {
    let (told, _) = told("pi", &[]);
    let directory = told.file.as_ref().unwrap().directory().to_owned();
    assert!(directory.exists());
    drop(told);
    assert!(!directory.exists());
}

#[test]
fn a_model_on_ones_own_machine_has_ten_minutes_to_begin_its_answer() {
    let own = Upstream::named(OpenAi, "http://127.0.0.1:11434/v1", "/v1");
    for (upstream, is_patient) in [(Upstream::usual(OpenAi), false), (own, true)] {
        let config = upstream::config(&[upstream], &[]);
        assert_eq!(config.contains("first_byte_ms = 600000"), is_patient, "{config}");
        Config::of_text(&config).unwrap();
    }
}
