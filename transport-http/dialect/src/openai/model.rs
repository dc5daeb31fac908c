//! Lists of models in the API's format.

use serde_json::{Value, json};

/// Returns the model that a client means: by id, or by the provider's name for it if that is unambiguous.
pub fn resolve<'m>(asked: &str, models: &'m [String]) -> Option<&'m str> {
    if let Some(model) = models.iter().find(|model| *model == asked) {
        return Some(model);
    }
    let is_named = |model: &&String| {
        model.split_once('/').is_some_and(|(provider, name)| provider != "route" && name == asked)
    };
    let mut named = models.iter().filter(is_named);
    match (named.next(), named.next()) {
        (Some(model), None) => Some(model),
        _ => None,
    }
}

/// Returns all models, for `GET /v1/models`.
pub fn list(models: &[String]) -> Value {
    json!({ "object": "list", "data": models.iter().map(|id| one(id)).collect::<Vec<_>>() })
}

/// Returns one model, for `GET /v1/models/{id}`.
pub fn one(id: &str) -> Value {
    json!({ "id": id, "object": "model", "created": 0, "owned_by": "everturn" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_by_its_id_or_by_a_name_that_one_provider_has() {
        let models = ["openai/gpt-4o", "azure/gpt-4o", "openai/o3", "or/meta/llama", "route/main"];
        let models = models.map(str::to_owned);
        for (asked, found) in [
            ("openai/gpt-4o", Some("openai/gpt-4o")),
            ("gpt-4o", None),
            ("o3", Some("openai/o3")),
            ("meta/llama", Some("or/meta/llama")),
            ("route/main", Some("route/main")),
            ("main", None),
            ("llama", None),
            ("", None),
        ] {
            assert_eq!(resolve(asked, &models), found, "{asked}");
        }
    }
}
