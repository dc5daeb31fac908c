//! The NATS servers that keep conversations.

use super::*;

const TABLE: &str =
    "[cluster]\nservers = [\"nats://one:4222\", \"nats://user:hunter22@two:4222\"]\nname = \"first\"\n";

#[test]
fn the_command_line_overrides_the_environment_which_overrides_the_file() {
    let config = Case::new(TABLE).config();
    assert_eq!(config.data, None);
    let cluster = config.cluster.unwrap();
    assert_eq!(
        (cluster.shown.as_str(), cluster.name.as_deref()),
        ("nats://one:4222, two:4222", Some("first"))
    );
    assert!(!format!("{cluster:?}").contains("hunter22"), "{cluster:?}");

    let named = || Case::new(TABLE).variable("EVERTURN_CLUSTER", "nats://three, nats://four");
    let cluster = named().variable("EVERTURN_NODE", "second").config().cluster.unwrap();
    assert_eq!(cluster.options.servers, ["nats://three", "nats://four"]);
    assert_eq!(cluster.name.as_deref(), Some("second"));

    let mut case = named();
    case.flags.cluster = Some("nats://five".to_owned());
    assert_eq!(case.config().cluster.unwrap().options.servers, ["nats://five"]);
    let mut case = named();
    case.flags.memory = true;
    assert!(case.config().cluster.is_none(), "the command line keeps them in memory");
    let case = named().variable("EVERTURN_DATA", "/data/everturn.db");
    assert!(case.config().cluster.is_some(), "the data file of the environment is for the other files");
    assert!(Case::new("").config().cluster.is_none());
}

#[test]
fn there_is_one_way_to_log_in() {
    for (keys, works) in [
        ("token = \"secret-1\"", true),
        ("user = \"u\"\npassword = \"secret-1\"", true),
        ("credentials_file = \"ev.creds\"", true),
        ("user = \"u\"", false),
        ("token = \"secret-1\"\ncredentials_file = \"ev.creds\"", false),
    ] {
        let case = Case::new(&format!("{TABLE}{keys}\n"));
        if works {
            let cluster = case.config().cluster.unwrap();
            if let everturn_store_nats::Login::CredentialsFile(path) = &cluster.options.login {
                assert_eq!(*path, case.home.path().join("everturn").join("ev.creds"));
            }
            assert!(!format!("{cluster:?}").contains("secret-1"), "{cluster:?}");
        } else {
            assert!(
                case.problem().contains("one of credentials_file, token, or user with password"),
                "{keys}"
            );
        }
    }
}

#[test]
fn servers_take_their_callers_from_the_configuration() {
    let case = Case::new(TABLE);
    let data = Environment(&|name| case.variables.get(name).cloned()).data_path().unwrap();
    fs::create_dir_all(data.parent().unwrap()).unwrap();
    let caller = "[[caller]]\nname = \"ann\"\nscopes = [\"chat\"]\n";
    fs::write(data.with_file_name("everturn.db.callers.toml"), caller).unwrap();
    let problem = case.problem();
    assert!(problem.contains("Without them, nobody would need a token"), "{problem}");
    let config = case.variable("EVERTURN_TOKEN", "of-env").config();
    assert!(config.callers_file.is_none() && config.known_callers().unwrap().is_empty());
    assert!(config.warnings[0].contains("everturn.db.callers.toml are not used"), "{:?}", config.warnings);
}
