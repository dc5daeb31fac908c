//! The Postgres database that keeps conversations.

use super::*;

const TABLE: &str = "[postgres]\nurl = \"postgres://ev@db:5432/ev\"\n";

#[test]
fn the_command_line_overrides_the_environment_which_overrides_the_file() {
    let config = Case::new(TABLE).config();
    assert_eq!(config.data, None);
    let options = config.postgres.unwrap().options;
    assert_eq!((options.url.as_str(), options.schema.as_str()), ("postgres://ev@db:5432/ev", "everturn"));
    assert_eq!(options.password, None);

    let named = || Case::new(TABLE).variable("EVERTURN_POSTGRES", "postgres://second/ev");
    assert_eq!(named().config().postgres.unwrap().options.url, "postgres://second/ev");
    let mut case = named();
    case.flags.postgres = Some("postgres://third/ev".to_owned());
    assert_eq!(case.config().postgres.unwrap().options.url, "postgres://third/ev");
    let mut case = named();
    case.flags.memory = true;
    assert!(case.config().postgres.is_none(), "the command line keeps them in memory");
    let mut case = named();
    case.flags.data = Some("file.db".into());
    let config = case.config();
    assert!(config.postgres.is_none() && config.data == Some("file.db".into()));
    assert!(Case::new("").config().postgres.is_none());
    // The container names a data file in its environment.
    let case = named().variable("EVERTURN_DATA", "/data/everturn.db");
    assert!(case.config().postgres.is_some() && case.config().data.is_none());
}

#[test]
fn conversations_are_kept_in_one_place() {
    let both = Case::new(&format!("{TABLE}[cluster]\nservers = [\"nats://one\"]\n"));
    assert!(both.problem().contains("in NATS or in Postgres, but both are configured"), "{}", both.problem());
    let mut case = both;
    case.flags.cluster = Some("nats://two".to_owned());
    let config = case.config();
    assert!(config.postgres.is_none() && config.cluster.is_some());
    let mut case = Case::new("[cluster]\nservers = [\"nats://one\"]\n");
    case.flags.postgres = Some("postgres://third/ev".to_owned());
    let config = case.config();
    assert!(config.postgres.is_some() && config.cluster.is_none());
}

fn redacted(config: &Config, text: &str) -> String {
    let mut text = text.to_owned();
    config.redactor().redact(&mut text);
    text
}

#[test]
fn a_password_is_given_in_one_way_and_never_shown() {
    let case =
        Case::new(&format!("{TABLE}password_file = \"secret\"\nca_file = \"ca.pem\"\nschema = \"talk\"\n"));
    let folder = case.home.path().join("everturn");
    fs::write(folder.join("secret"), "hunter22\n").unwrap();
    let config = case.config();
    assert_eq!(config.secret_files, [folder.join("secret")]);
    assert!(!format!("{config:?}").contains("hunter22"), "{config:?}");
    assert_eq!(redacted(&config, "it is hunter22"), "it is [redacted]");
    let options = config.postgres.unwrap().options;
    assert_eq!(options.password.as_deref(), Some("hunter22"));
    assert_eq!((options.authorities, options.schema.as_str()), (Some(folder.join("ca.pem")), "talk"));

    let case = Case::new(&format!("{TABLE}password_env = \"PG_SECRET\"\n")).variable("PG_SECRET", "hunter22");
    assert_eq!(case.config().postgres.unwrap().options.password.as_deref(), Some("hunter22"));
    let case = Case::new(&format!("{TABLE}password = \"hunter22\"\n"));
    assert_eq!(case.config().secret_files.len(), 1, "the configuration itself");
    let case = Case::new("[postgres]\nurl = \"postgres://ev:hunter22@db/ev\"\n");
    let config = case.config();
    assert_eq!(config.secret_files.len(), 1);
    assert!(!format!("{config:?}").contains("hunter22"), "{config:?}");
    assert_eq!(redacted(&config, "hunter22"), "[redacted]");
    assert!(Case::new(TABLE).config().secret_files.is_empty());
}

#[test]
fn a_problem_says_what_to_do_and_repeats_no_password() {
    for (keys, expected) in [
        (
            "password = \"hunter22\"\npassword_env = \"PG\"",
            "takes one of password, password_env, password_file",
        ),
        ("password_env = \"PG_SECRET\"", "set the environment variable PG_SECRET"),
        ("password_env = \"hunter22-x\"", "does not look like a variable name"),
        (
            "password_file = \"hunter22\"",
            "cannot read the password of Postgres from the file that `password_file` names",
        ),
        ("password_file = \"/nowhere/secret\"", "from the file /nowhere/secret"),
        ("password = \" \"", "`password` is empty"),
    ] {
        let problem = Case::new(&format!("{TABLE}{keys}\n")).problem();
        assert!(problem.contains(expected) && !problem.contains("hunter22"), "{keys}: {problem}");
    }
    let problem = Case::new("[postgres]\nschema = \"talk\"\n").problem();
    assert!(problem.contains("[postgres] has no `url`"), "{problem}");
    let twice = "[postgres]\nurl = \"postgres://ev:hunter22@db/ev\"\npassword = \"hunter23\"\n";
    let problem = Case::new(twice).problem();
    assert!(problem.contains("keep one of them") && !problem.contains("hunter2"), "{problem}");
}
