#[cfg(feature = "nats")]
mod cluster;
mod compaction;
mod fallback;
mod mcp;
mod memory;
mod old;
#[cfg(all(feature = "nats", feature = "postgres"))]
mod postgres;
mod price;
mod provider;
mod report;
mod route;

use std::{collections::HashMap, fs};

use everturn_orchestrator::{Exponential, RetryPolicy, Waits};
use tempfile::TempDir;

use super::*;

/// A configuration file in its own home directory, with flags and environment.
struct Case {
    home: TempDir,
    flags: Flags,
    variables: HashMap<String, String>,
}

impl Case {
    fn new(file: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("everturn").join("config.toml");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
        let place = home.path().display().to_string();
        let homes = if cfg!(windows) { ["APPDATA", "LOCALAPPDATA"] } else { ["XDG_CONFIG_HOME", "HOME"] };
        let variables = homes.into_iter().map(|name| (name.to_owned(), place.clone())).collect();
        Self { home, flags: Flags::default(), variables }
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    fn listen(mut self, listen: &str) -> Self {
        self.flags.listen = Some(listen.to_owned());
        self
    }

    fn resolve(&self) -> Result<Config> {
        Config::resolve(&self.flags, &Environment(&|name| self.variables.get(name).cloned()))
    }

    fn config(&self) -> Config {
        self.resolve().unwrap()
    }

    fn problem(&self) -> String {
        format!("{:#}", self.resolve().unwrap_err())
    }
}

fn chat(config: &Config, provider: usize) -> &everturn_provider::ChatConfig {
    let Api::OpenAiChat(chat) = &config.providers[provider].api else { panic!("speaks another API") };
    chat
}

fn endpoint(api: &Api) -> &everturn_provider::EndpointConfig {
    match api {
        Api::OpenAiChat(chat) => &chat.endpoint,
        Api::OpenAiResponses(responses) => &responses.endpoint,
        Api::Anthropic(messages) => &messages.endpoint,
        Api::Gemini(gemini) => &gemini.endpoint,
    }
}

#[test]
fn the_default_is_the_demo_on_loopback() {
    let config = Case::new("").config();
    assert_eq!(config.listen, DEFAULT_LISTEN);
    assert!(config.token.is_none() && config.providers.is_empty());
    assert_eq!(
        config.retry,
        Retry {
            enabled: true,
            policy: RetryPolicy::default(),
            max_wait_ms: 28_800_000,
            rewinds: false,
            parks: false
        }
    );
    assert_eq!((config.settings.max_steps, config.usual_max_steps), (None, Some(200)));
}

#[test]
fn conversations_are_kept_in_the_home_directory_by_default() {
    let mut case = Case::new("[server]\ndata = \"of-file.db\"");
    assert_eq!(case.config().data, Some(case.home.path().join("everturn").join("of-file.db")));
    case = case.variable("EVERTURN_DATA", "of-env.db");
    assert_eq!(case.config().data, Some("of-env.db".into()));
    case.flags.data = Some("of-flag.db".into());
    assert_eq!(case.config().data, Some("of-flag.db".into()));
    case.flags.memory = true;
    assert_eq!(case.config().data, None);

    let at_home = Case::new("");
    assert!(at_home.config().data.unwrap().starts_with(at_home.home.path()));
    let homeless = Config::resolve(&Flags::default(), &Environment(&|_| None)).unwrap_err();
    assert!(homeless.to_string().contains("--data"), "{homeless}");
}

#[test]
fn flags_before_environment_before_file_before_default() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\ntoken = \"of-file\"";
    let of_file = Case::new(file);
    assert_eq!(of_file.config().listen.port(), 1);
    assert_eq!(of_file.config().token.unwrap().reveal(), "of-file");
    let of_environment = of_file.variable("EVERTURN_LISTEN", "2").variable("EVERTURN_TOKEN", "of-env");
    assert_eq!(of_environment.config().listen.port(), 2);
    assert_eq!(of_environment.config().token.unwrap().reveal(), "of-env");
    let mut of_flags = of_environment.listen("localhost:3");
    of_flags.flags.token = Some("of-flag".to_owned());
    assert_eq!(of_flags.config().listen.port(), 3);
    assert_eq!(of_flags.config().token.unwrap().reveal(), "of-flag");
}

#[test]
fn an_empty_variable_counts_as_absent() {
    let case = Case::new("[server]\nlisten = \"127.0.0.1:1\"").variable("EVERTURN_LISTEN", " ");
    assert_eq!(case.variable("OPENAI_API_KEY", "").config().listen.port(), 1);
}

#[test]
fn a_named_file_is_read_instead_of_the_default_one() {
    let mut case = Case::new("max_steps = 1");
    let (second, third) = (case.home.path().join("2.toml"), case.home.path().join("3.toml"));
    fs::write(&second, "max_steps = 2").unwrap();
    fs::write(&third, "max_steps = 3").unwrap();
    assert_eq!(case.config().settings.max_steps, Some(1));
    case = case.variable("EVERTURN_CONFIG", second.to_str().unwrap());
    assert_eq!(case.config().settings.max_steps, Some(2));
    case.flags.config = Some(third);
    assert_eq!(case.config().settings.max_steps, Some(3));
    case.flags.config = Some(case.home.path().join("none.toml"));
    let problem = case.problem();
    assert!(problem.contains("none.toml") && problem.contains("--config"), "{problem}");
}

#[test]
fn an_address_has_four_forms() {
    for (text, expected) in [
        ("8080", "127.0.0.1:8080"),
        ("localhost:8080", "127.0.0.1:8080"),
        ("127.0.0.2:0", "127.0.0.2:0"),
        ("[::1]:8080", "[::1]:8080"),
    ] {
        assert_eq!(parse_listen(text).unwrap().to_string(), expected, "{text}");
    }
    for text in ["", "example.com:80", "127.0.0.1", "99999"] {
        let problem = parse_listen(text).unwrap_err().to_string();
        assert!(problem.contains("like 127.0.0.1:4777"), "{problem}");
    }
}

#[test]
fn other_machines_need_a_token() {
    for address in ["0.0.0.0:4777", "[::]:4777", "192.168.1.2:4777"] {
        let case = Case::new("").listen(address);
        let problem = case.config().check_exposure().unwrap_err().to_string();
        assert!(problem.contains(address) && problem.contains("EVERTURN_TOKEN"), "{problem}");
        assert!(case.variable("EVERTURN_TOKEN", "t0ken").config().check_exposure().is_ok());
    }
}

#[test]
fn the_dice_tool_comes_with_the_demo_or_on_request() {
    let provider = "[[provider]]\nname = \"a\"\nbase_url = \"http://127.0.0.1:1\"\nmodels = [\"m\"]\n";
    for (file, expected) in [
        (String::new(), None),
        ("[tools]\ndice = false".to_owned(), Some(false)),
        (provider.to_owned(), None),
        (format!("{provider}[tools]\ndice = true"), Some(true)),
    ] {
        assert_eq!(Case::new(&file).config().dice, expected, "{file}");
    }
}

#[test]
fn tools_have_policies_by_name_or_pattern() {
    use everturn_orchestrator::Policy;

    assert_eq!(Case::new("").config().permissions, Permissions::default());
    let file =
        "[tools]\napproval_timeout_ms = 1500\n[tools.policy]\nroll_dice = \"ask\"\n\"fs__*\" = \"deny\"";
    let policies = vec![("fs__*".to_owned(), Policy::Deny), ("roll_dice".to_owned(), Policy::Ask)];
    let approval_timeout = Some(std::time::Duration::from_millis(1500));
    let expected = Permissions { policies, approval_timeout, review: None };
    assert_eq!(Case::new(file).config().permissions, expected);
    let problem = Case::new("[tools.policy]\nroll_dice = \"maybe\"").problem();
    assert!(problem.contains("config.toml:2: `roll_dice` must be one of `allow`, `ask`"), "{problem}");
}

#[test]
fn a_reviewer_is_an_available_model() {
    let provider = "[[provider]]\nname = \"a\"\nbase_url = \"http://127.0.0.1:1\"\nmodels = [\"m\"]\n";
    let with = |tools: &str| Case::new(&format!("{provider}{tools}"));
    let review = "[tools.review]\nmodel = \"a/m\"\ntimeout_ms = 5000\nwithout_decision = \"deny\"";
    let review = with(review).config().permissions.review.unwrap();
    assert_eq!((review.model.as_str(), review.denies_undecided), ("a/m", true));
    assert_eq!(review.within, Some(std::time::Duration::from_secs(5)));
    let problem = with("[tools.review]\nmodel = \"b/m\"").problem();
    assert!(
        problem.contains("`[tools.review] model` is \"b/m\", which is not available; available: a/m"),
        "{problem}"
    );
    let problem = with("[tools.policy]\n\"x*\" = \"review\"").problem();
    assert!(problem.contains("set `model` in [tools.review]"), "{problem}");
    let problem = Case::new("[tools.review]\nmodel = \"a/m\"").problem();
    assert!(problem.contains("needs a provider"), "{problem}");
}

#[test]
fn a_reviewer_need_not_be_in_the_file() {
    let reviewed = |model: &str| Case::new(&format!("[tools.review]\nmodel = \"{model}\""));
    let of_environment = reviewed("openai/gpt-5.5").variable("OPENAI_API_KEY", "sk-s3cret");
    assert!(of_environment.config().permissions.review.is_some());
    let added = reviewed("mine/m");
    let data = Environment(&|name| added.variables.get(name).cloned()).data_path().unwrap();
    fs::create_dir_all(data.parent().unwrap()).unwrap();
    let provider = "[[provider]]\nname = \"mine\"\nbase_url = \"http://127.0.0.1:1\"\nmodels = [\"m\"]\n";
    fs::write(data.with_file_name("everturn.db.providers.toml"), provider).unwrap();
    assert!(added.config().permissions.review.is_some());
}

#[test]
fn callers_of_a_file_are_not_used_in_a_cluster_but_never_dropped_in_silence() {
    let home = tempfile::tempdir().unwrap();
    let file = CallersFile::beside(&home.path().join("a.db"));
    let problem = caller::unused(&file, false).unwrap_err().to_string();
    assert!(problem.contains("a.db.callers.toml") && problem.contains("set EVERTURN_TOKEN"), "{problem}");
    assert!(caller::unused(&file, true).unwrap().ends_with("([[caller]])"));
}

#[test]
fn a_schedule_is_built_from_its_settings() {
    let file = "[retry]\nschedule = \"exponential\"\nbase_ms = 1500\nmax_delay_ms = 0\nmax_retries = 5\n\
                max_wait_ms = 60000";
    let config = Case::new(file).config();
    let expected = Exponential {
        base: std::time::Duration::from_millis(1500),
        max_delay: None,
        max_retries: 5,
        jitter: 0.1,
        ..Exponential::default()
    };
    let Waits::Exponential(made) = config.retry.policy.waits else { panic!("another schedule") };
    assert_eq!(made, Exponential { seed: made.seed, ..expected });
    assert_eq!(config.retry.max_wait_ms, 60_000);
    assert_eq!(config.settings.budget.max_wait_ms, Some(60_000));
    for (file, expected) in [
        ("[retry]\nbase_ms = 1", "base_ms has no effect with schedule = \"patient\""),
        ("[retry]\nschedule = \"exponential\"\njitter = 2.0", "from 0 to 1"),
        (
            "[retry]\nschedule = \"exponential\"\nbase_ms = 9000\nmax_delay_ms = 5000",
            "base_ms, the first wait, is 9000 ms, but max_delay_ms allows 5000 ms: lower",
        ),
        (
            "[retry]\nschedule = \"exponential\"\nbase_ms = 300001",
            "is 300001 ms, but max_delay_ms allows 300000 ms by default",
        ),
    ] {
        let problem = Case::new(file).problem();
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn waits_have_jitter_by_default() {
    for (line, expected) in [("", 0.1), ("jitter = 0.0", 0.0), ("jitter = 0.5", 0.5)] {
        let config = Case::new(&format!("[retry]\nschedule = \"exponential\"\n{line}")).config();
        let Waits::Exponential(schedule) = &config.retry.policy.waits else { panic!("another schedule") };
        assert!((schedule.jitter - expected).abs() < f64::EPSILON, "{line}");
    }
    assert!(Exponential::default().jitter.abs() < f64::EPSILON, "the library's is exact");
}

#[cfg(unix)]
#[test]
fn files_that_others_may_read_are_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let case = Case::new("[server]\ntoken = \"t\"\n");
    let home = case.home.path();
    let (data, key) = (home.join("data.db"), home.join("key"));
    let file = home.join("everturn").join("config.toml");
    let provider = format!(
        "[server]\ntoken = \"t\"\ndata = {data:?}\n[[provider]]\nname = \"a\"\napi_key_file = {key:?}\nmodels = [\"m\"]"
    );
    fs::write(&file, provider).unwrap();
    let all = [data.clone(), home.join("data.db-wal"), home.join("data.db.lock"), file, key];
    let permit = |mode| {
        for path in &all {
            fs::write(path, fs::read(path).unwrap_or_else(|_| b"k".to_vec())).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    permit(0o600);
    assert_eq!(crate::permission::warnings(&case.config()), [""; 0]);
    permit(0o640);
    let warnings = crate::permission::warnings(&case.config());
    assert_eq!(warnings.len(), all.len(), "{warnings:?}");
    for path in &all {
        let advice = format!(" and is open to other users (mode 640): run chmod 600 {0}", path.display());
        assert!(
            warnings
                .iter()
                .any(|line| line.starts_with(&*path.display().to_string()) && line.ends_with(&advice)),
            "{warnings:?}"
        );
    }
}

#[test]
fn conversations_are_kept_for_ever_unless_a_number_of_days_is_set() {
    let idle_since =
        |file: &str| Case::new(file).config().keep.idle_since(everturn_kernel::Millis(40 * 86_400_000));
    assert_eq!(idle_since(""), None);
    assert_eq!(idle_since("[retention]\nkeep_conversations_days = \"all\""), None);
    let days = "[retention]\nkeep_conversations_days = 30";
    assert_eq!(idle_since(days), Some(everturn_kernel::Millis(10 * 86_400_000)));
}

#[test]
fn events_are_kept_for_a_month_by_default() {
    let kept = |file: &str| Case::new(file).config().keep.events(everturn_kernel::Millis(40 * 86_400_000));
    let month = kept("");
    assert_eq!(month.sealed_before, Some(everturn_kernel::Millis(10 * 86_400_000)));
    assert_eq!(month.newest_turns, None);
    let both = kept("[retention]\nkeep_events_days = \"all\"\nkeep_events_turns = 3");
    assert_eq!((both.sealed_before, both.newest_turns), (None, Some(3)));
    let problem = Case::new("[retention]\nkeep_events_days = \"soon\"").problem();
    assert!(problem.contains("config.toml:2: `keep_events_days` must be a whole number"), "{problem}");
}

#[test]
fn ephemeral_conversations_are_kept_for_an_hour_by_default() {
    let kept = |file: &str| Case::new(file).config().keep_ephemeral.as_secs();
    assert_eq!(kept(""), 3600);
    assert_eq!(kept("[retention]\nkeep_ephemeral_minutes = 5"), 300);
}

#[test]
fn unreadable_configuration_names_file_line_and_key() {
    let case = Case::new("[server]\nport = 4777\n");
    let problem = case.problem();
    assert!(problem.contains("config.toml:2: unknown field `port`"), "{problem}");
    assert!(problem.contains("`listen`"), "says what there is: {problem}");
}

#[test]
fn no_secret_is_shown() {
    let file = "[server]\ntoken = \"of-file-s3cret\"\n[[provider]]\nname = \"a\"\napi_key = \"sk-s3cret\"\n\
                base_url = \"http://127.0.0.1:1\"\nmodels = [\"m\"]\nheaders = { X-Key = \"header-s3cret\" }";
    let shown = format!("{:?}", Case::new(file).config());
    assert!(shown.contains("Hidden") && shown.contains("127.0.0.1:1"), "{shown}");
    assert!(!shown.contains("s3cret"), "{shown}");
}
