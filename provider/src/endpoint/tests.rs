//! Valid endpoints, and errors about invalid ones.

use everturn_wire::Category;

use super::*;
use crate::HttpConfig;

#[allow(clippy::needless_pass_by_value, reason = "tests make it for this call")]
fn endpoint(config: EndpointConfig) -> Result<Endpoint, ConfigError> {
    Endpoint::new(HttpClient::new(HttpConfig::default()).unwrap(), &config, Credential::Bearer, &[])
}

fn at(base_url: &str) -> EndpointConfig {
    EndpointConfig::new(base_url)
}

#[test]
fn paths_are_appended_to_the_base() {
    for (base, expected) in [
        ("http://host", "http://host/a/b"),
        ("http://host/v1", "http://host/v1/a/b"),
        (" http://host:8080/v1/ ", "http://host:8080/v1/a/b"),
        ("https://host/deployments/x?api-version=1", "https://host/deployments/x/a/b?api-version=1"),
    ] {
        let request = endpoint(at(base)).unwrap().post(&["a", "b"], &Value::Null, None).unwrap();
        assert_eq!(request.uri(), expected);
    }
}

#[test]
fn an_invalid_configuration_is_rejected_without_showing_secrets() {
    let keyed = |key: &str| EndpointConfig { api_key: Some(key.into()), ..at("http://host") };
    let headed = |name: &str, value: &str| EndpointConfig {
        headers: vec![(name.into(), value.into())],
        ..at("http://host")
    };
    for (config, expected) in [
        (at("host/v1"), "relative URL"),
        (at(""), "relative URL"),
        (at("ftp://host"), "neither http nor https"),
        (at("https://user:hush-hush@host"), "contains a user name or password"),
        (keyed("hush-hush\nsk"), "API key has characters"),
        (headed("x y", "hush-hush"), "header \"x y\" cannot be sent: its name"),
        (headed("x-y", "hush-hush\u{7f}"), "header \"x-y\" cannot be sent: its value"),
    ] {
        let message = endpoint(config).unwrap_err().to_string();
        assert!(message.contains(expected) && !message.contains("hush-hush"), "{message}");
    }
}

#[test]
fn a_key_pasted_with_its_line_break_is_used() {
    let config = EndpointConfig { api_key: Some("sk-123\n".into()), ..at("http://host") };
    let request = endpoint(config).unwrap().post(&[], &Value::Null, None).unwrap();
    assert_eq!(request.headers()[AUTHORIZATION], "Bearer sk-123");
    assert!(!format!("{request:?}").contains("sk-123"));
}

#[test]
fn no_secret_of_the_url_is_shown() {
    let endpoint = endpoint(at("http://host/v1?key=two%20words%21")).unwrap();
    let told = endpoint.broken(&Head::default(), "no two%20words%21, no two words!");
    assert_eq!(told.message, "no [redacted], no [redacted]");
    assert!(!format!("{endpoint:?}").contains("words"), "{endpoint:?}");
    assert_ne!(told.category, Category::Internal);
}

#[test]
fn every_configured_secret_is_redacted_in_every_part() {
    let config = EndpointConfig {
        headers: vec![
            ("Authorization".into(), "Bearer tok-Zq7RkT0vWm3Xn".into()),
            ("user-agent".into(), "acme-agent/1.0".into()),
        ],
        ..at("http://host/t/pAth5ecret99/deployments/gpt-4o-mini/v1?sig=qUery5ecret77&api-version=2024-10-21")
    };
    let endpoint = endpoint(config).unwrap();
    let body =
        "no tok-Zq7RkT0vWm3Xn, no tok-Zq7RkT0..., no pAth5ecret99, no qUery5ecre, no tok%2DZq7RkT0vWm3Xn";
    let told = endpoint.broken(&Head::default(), body).message;
    for part in ["Zq7RkT0v", "ecret99", "ecret77", "qUery5ec"] {
        assert!(!told.contains(part), "{told}");
    }
    let plain = "the deployments of acme-agent/1.0 have no api-version 2024-10-21, try gpt-4o";
    assert_eq!(endpoint.broken(&Head::default(), plain).message, plain);
}

#[test]
fn a_secret_that_is_a_common_word_does_not_mislead_the_diagnosis() {
    let config = EndpointConfig { api_key: Some("overloaded".into()), ..at("http://host") };
    let told = endpoint(config).unwrap().broken(&Head::default(), "the server is overloaded");
    assert_eq!(told.category, Category::Overloaded);
    assert_eq!(told.message, "the server is [redacted]");
}
