//! Settings of required reports.

use serde_json::json;

use super::*;

const PROVIDER: &str = "[[provider]]\nname = \"a\"\nbase_url = \"http://127.0.0.1:1\"\nmodels = [\"m\"]\n";

#[test]
fn a_report_is_a_file_beside_the_configuration_or_a_table() {
    let case = Case::new(&format!(
        "[agent]\nfinal_report = \"schemas/all.json\"\nreport_attempts = 5\n{PROVIDER}\n\
         [[route]]\nname = \"own\"\ntargets = [\"a/m\"]\nfinal_report = {{ type = \"object\", required = [\"n\"] }}\n\
         [[route]]\nname = \"usual\"\ntargets = [\"a/m\"]\n"
    ));
    let directory = case.home.path().join("everturn/schemas");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("all.json"), r#"{"type":"object"}"#).unwrap();
    let config = case.config();
    let all = RequiredReport { schema: json!({ "type": "object" }), max_attempts: Some(5) };
    assert_eq!(config.final_report, Some(all));
    let own = RequiredReport::new(json!({ "type": "object", "required": ["n"] }));
    let of_routes: Vec<_> = config.routes.into_iter().map(|route| route.final_report).collect();
    assert_eq!(of_routes, [Some(own), None]);
}

#[test]
fn turns_that_must_report_have_their_own_number_of_steps_where_none_is_set() {
    for (file, set, usual) in
        [("", None, Some(200)), ("max_steps = 7", Some(7), None), ("max_steps = 0", None, None)]
    {
        let config = Case::new(file).config();
        assert_eq!((config.settings.max_steps, config.usual_max_steps), (set, usual), "{file}");
    }
}

#[test]
fn an_invalid_report_setting_is_named_with_its_line() {
    let route = |fields: &str| format!("{PROVIDER}[[route]]\nname = \"r\"\ntargets = [\"a/m\"]\n{fields}");
    for (file, expected) in [
        (
            "[agent]\nfinal_report = \"none.json\"".to_owned(),
            ":2: `final_report` under [agent]: cannot read the schema",
        ),
        (
            "[agent]\nfinal_report = 7".to_owned(),
            ":2: `final_report` under [agent] must be the path of a JSON Schema",
        ),
        (
            "[agent]\nfinal_report = { type = \"no-such\" }".to_owned(),
            ":2: `final_report` under [agent]: the final report cannot be required: its schema cannot be used",
        ),
        (
            "[agent]\nfinal_report = { schema = {} }".to_owned(),
            ":2: `final_report` under [agent] is the schema itself",
        ),
        (
            "[agent]\nfinal_report = {}\nreport_attempts = 0".to_owned(),
            ":3: `report_attempts` under [agent] must be 1 to 100",
        ),
        (
            "[agent]\nreport_attempts = 2".to_owned(),
            ":2: `report_attempts` under [agent] needs a `final_report`",
        ),
        ("[agent]\nfinal = {}".to_owned(), ":2: unknown field `final`"),
        (route("final_report = []"), ":8: `final_report` of route \"r\" must be the path of a JSON Schema"),
        (route("report_attempts = 2"), ":8: `report_attempts` of route \"r\" needs a `final_report`"),
    ] {
        let problem = Case::new(&file).problem();
        assert!(problem.contains("config.toml:") && problem.contains(expected), "{file}: {problem}");
    }
    let case = Case::new("[agent]\nfinal_report = \"broken.json\"");
    let broken = case.home.path().join("everturn/broken.json");
    fs::write(&broken, "{\n  type").unwrap();
    let expected =
        format!("{}:2:3: not JSON (key must be a string): write the JSON Schema", broken.display());
    assert!(case.problem().contains(&expected), "{}", case.problem());
}
