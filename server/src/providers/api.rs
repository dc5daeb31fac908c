//! The calls that list, add and remove providers: for the owner of the server alone.
//!
//! A key goes in, and never out again.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Body,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{delete, get},
};
use serde::{Deserialize, Serialize};

use super::{Made, Problem, Providers, Source};
use crate::{
    body::{read, refusal},
    config::{Hidden, KNOWN_VENDORS, KnownVendor, Wanted},
};

/// What a request to add one looks like.
const SHAPE: &str = "with \"vendor\", and may have \"key\", \"name\", \"baseUrl\", \"models\" and \"anyway\"";

/// What is told of a provider. Its key is not.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    name: String,
    api: &'static str,
    /// Without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    base_url: Option<Arc<str>>,
    /// Whether a person added it; otherwise it belongs to the configuration.
    added: bool,
    /// The last characters of its key, if that is long enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_end: Option<String>,
    models: usize,
    /// Why its list of models cannot be read now.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct All {
    providers: Vec<Shown>,
    vendors: &'static [KnownVendor],
    /// The file that added providers are kept in; absent = they are kept until the server ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

/// A provider to add.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct New {
    vendor: String,
    name: Option<String>,
    base_url: Option<String>,
    key: Option<Hidden>,
    #[serde(default)]
    models: Vec<String>,
    /// Add it although it does not work.
    #[serde(default)]
    anyway: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Done {
    provider: Shown,
    /// The ids of its models.
    models: Vec<String>,
    /// The model that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    answered: Option<String>,
    /// What does not work yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<Problem>,
    /// Whether it took the place of one with its name.
    replaced: bool,
}

/// Why a provider was not added.
#[derive(Serialize)]
struct Refused {
    #[serde(flatten)]
    problem: Problem,
    /// Whether it can be added all the same.
    anyway: bool,
}

/// Returns the routes, which have no access control of their own.
pub(crate) fn router(providers: Providers) -> Router {
    Router::new()
        .route("/providers", get(list).post(add))
        .route("/providers/{name}", delete(remove))
        .with_state(providers)
}

async fn list(State(providers): State<Providers>) -> Json<All> {
    Json(All {
        providers: providers.all().iter().map(|made| shown(made)).collect(),
        vendors: &KNOWN_VENDORS,
        file: providers.file().map(|path| path.display().to_string()),
    })
}

async fn add(State(providers): State<Providers>, body: Body) -> Result<Response, Response> {
    let New { vendor, name, base_url, key, models, anyway } = read(body, SHAPE).await?;
    let key = key.and_then(|key| Hidden::new(key.reveal()));
    let models =
        models.into_iter().map(|model| model.trim().to_owned()).filter(|model| !model.is_empty()).collect();
    let wanted = Wanted { vendor, name, base_url, key, models };
    Ok(match providers.add(wanted, anyway).await {
        Ok((made, tried, is_new)) => {
            let name = &made.provider.name;
            let done = Done {
                provider: shown(&made),
                models: made.models().iter().map(|model| format!("{name}/{}", model.name)).collect(),
                answered: tried.answered.map(|model| format!("{name}/{model}")),
                note: tried.note,
                replaced: !is_new,
            };
            (StatusCode::CREATED, Json(done)).into_response()
        }
        Err(problem) => {
            // What is not even valid cannot be added.
            let anyway = problem.category.is_some();
            (StatusCode::UNPROCESSABLE_ENTITY, Json(Refused { problem, anyway })).into_response()
        }
    })
}

async fn remove(State(providers): State<Providers>, Path(name): Path<String>) -> Response {
    match providers.remove(&name).await {
        Ok(true) => StatusCode::NO_CONTENT.into_response(),
        Ok(false) => refusal(StatusCode::NOT_FOUND, format!("no provider {name:?} was added")),
        Err(error) => refusal(StatusCode::CONFLICT, format!("{error:#}")),
    }
}

fn shown(made: &Made) -> Shown {
    let listed = made.listed();
    Shown {
        name: made.provider.name.clone(),
        api: made.provider.api.kind(),
        base_url: made.api().about().url,
        added: made.source == Source::Added,
        key_end: made.provider.key_end.clone(),
        models: made.models().len(),
        problem: listed.failure.map(|failure| failure.message),
    }
}
