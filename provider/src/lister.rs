//! A provider's own list of its models.

use std::{sync::Arc, time::Duration};

use everturn_diagnosis::Transport;
use everturn_wire::{Category, Failure, Value};
use tokio::time::timeout;

use crate::{
    endpoint::{Endpoint, Head},
    http::ConnectionError,
};

/// Maximum size of a list, in bytes. The longest known one has 700 kB.
const MOST_BYTES: usize = 8 << 20;
/// Maximum number of models taken, and maximum length of a name in bytes.
const MOST_MODELS: usize = 4096;
const LONGEST_NAME: usize = 200;
/// Maximum time for the whole list.
const TIME: Duration = Duration::from_secs(20);

/// A model in a provider's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedModel {
    /// The provider's name of the model.
    pub name: String,
    /// Its context window in tokens, if the list has it.
    pub context_window: Option<u64>,
}

/// Reads a provider's list of models.
#[derive(Clone, Debug)]
pub struct Lister {
    endpoint: Arc<Endpoint>,
    query: Option<(&'static str, &'static str)>,
}

impl Lister {
    /// `query` asks for as many models at once as the API allows.
    pub(crate) fn new(endpoint: &Arc<Endpoint>, query: Option<(&'static str, &'static str)>) -> Self {
        Self { endpoint: endpoint.clone(), query }
    }

    /// Returns the models for conversations, newest first if the list has their dates, else in its order. Models that its
    /// entries or their names describe as something else, such as embeddings, are left out. One request, at most 20 s.
    ///
    /// # Errors
    /// When the provider refuses, does not answer, or answers with something else.
    pub async fn fetch(&self) -> Result<Vec<ListedModel>, Failure> {
        timeout(TIME, self.read()).await.unwrap_or_else(|_| {
            let text = format!("no list of models within {TIME:?}");
            Err(self.endpoint.lost(&ConnectionError { kind: Transport::TotalTimeout, text }, None))
        })
    }

    async fn read(&self) -> Result<Vec<ListedModel>, Failure> {
        let request = self.endpoint.get(&["models"], self.query);
        let sent = self.endpoint.http().send(request).await;
        let mut response = sent.map_err(|fault| self.endpoint.lost(&fault, None))?;
        let head = Head::of(&mut response);
        if !(200..300).contains(&response.status()) {
            return Err(self.endpoint.refused(&head, &response.body().await));
        }
        let body = response.whole(MOST_BYTES).await;
        let body = body.map_err(|fault| self.endpoint.lost(&fault, Some(&head)))?;
        let models = serde_json::from_slice(&body).ok().and_then(|list| models(&list));
        models.ok_or_else(|| {
            let text = "the answer is not a list of models: check the base URL, which usually ends with /v1";
            Failure::new(Category::InvalidResponse, false, text)
        })
    }
}

/// Reads a list; `None` = it is none. OpenAI and Anthropic have `{"data": [{"id"}]}`, Gemini `{"models": [{"name"}]}`, and
/// some servers the array alone.
fn models(list: &Value) -> Option<Vec<ListedModel>> {
    let entries = list.get("data").or_else(|| list.get("models")).unwrap_or(list).as_array()?;
    let mut entries: Vec<&Value> =
        entries.iter().take(MOST_MODELS).filter(|entry| converses(entry)).collect();
    // Stable, so that entries without a date keep their order.
    entries.sort_by_key(|entry| std::cmp::Reverse(entry["created"].as_u64()));
    let mut models: Vec<ListedModel> = Vec::new();
    for entry in entries {
        let Some(name) = name(entry) else { continue };
        if !models.iter().any(|known| known.name == name) {
            models.push(ListedModel { name: name.to_owned(), context_window: window(entry) });
        }
    }
    Some(models)
}

fn name(entry: &Value) -> Option<&str> {
    let name = entry["id"].as_str().or_else(|| entry["name"].as_str())?;
    let name = name.strip_prefix("models/").unwrap_or(name);
    let is_plain = !name.is_empty() && name.len() <= LONGEST_NAME;
    (is_plain && !name.contains(|c: char| c.is_control() || c.is_whitespace())).then_some(name)
}

fn window(entry: &Value) -> Option<u64> {
    let fields =
        ["context_length", "context_window", "max_model_len", "max_context_length", "inputTokenLimit"];
    fields.iter().find_map(|field| entry[*field].as_u64()).filter(|tokens| *tokens > 0)
}

/// Parts of names of models that do not hold conversations, between other characters than letters.
const OTHERS: [&str; 17] = [
    "audio",
    "babbage",
    "dall",
    "davinci",
    "embed",
    "embedding",
    "embeddings",
    "image",
    "imagen",
    "moderation",
    "realtime",
    "rerank",
    "sora",
    "transcribe",
    "tts",
    "veo",
    "whisper",
];

/// Whether a model holds conversations, as far as its entry says.
fn converses(entry: &Value) -> bool {
    if let Some(methods) = entry["supportedGenerationMethods"].as_array() {
        return methods.iter().any(|method| method == "generateContent") && !is_other(entry);
    }
    // Mistral's and Together's lists.
    if let Some(chats) = entry["capabilities"]["completion_chat"].as_bool() {
        return chats;
    }
    match entry["type"].as_str() {
        Some("model" | "chat" | "language") | None => !is_other(entry),
        Some(_) => false,
    }
}

fn is_other(entry: &Value) -> bool {
    let name = name(entry).unwrap_or_default().to_ascii_lowercase();
    name.split(|c: char| !c.is_ascii_alphabetic()).any(|part| OTHERS.contains(&part))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(list: &Value) -> Vec<String> {
        models(list).unwrap().into_iter().map(|model| model.name).collect()
    }

    #[test]
    fn models_for_conversations_are_listed_newest_first() {
        let list = json!({ "object": "list", "data": [
            { "id": "old", "created": 1 }, { "id": "whisper-1", "created": 5 }, { "id": "new", "created": 9 },
            { "id": "text-embedding-3-small", "created": 4 }, { "id": "new", "created": 3 }, { "id": 7 },
            { "id": "line\nbreak", "created": 3 }, { "id": "imaginative-1", "created": 2 },
        ] });
        assert_eq!(names(&list), ["new", "imaginative-1", "old"]);
    }

    #[test]
    fn lists_of_several_vendors_are_read() {
        let gemini = json!({ "models": [
            { "name": "models/gemini-3.8-flash", "inputTokenLimit": 1_048_576,
              "supportedGenerationMethods": ["generateContent", "countTokens"] },
            { "name": "models/text-embedding-004", "supportedGenerationMethods": ["embedContent"] },
            { "name": "models/gemini-2.5-flash-image", "supportedGenerationMethods": ["generateContent"] },
        ] });
        let found = models(&gemini).unwrap();
        assert_eq!(
            (found.len(), &*found[0].name, found[0].context_window),
            (1, "gemini-3.8-flash", Some(1_048_576))
        );
        let mistral = json!({ "data": [
            { "id": "mistral-large", "capabilities": { "completion_chat": true }, "type": "base" },
            { "id": "mistral-ocr", "capabilities": { "completion_chat": false } },
        ] });
        assert_eq!(names(&mistral), ["mistral-large"]);
        assert_eq!(names(&json!([{ "id": "a/b", "type": "chat" }, { "id": "c", "type": "video" }])), ["a/b"]);
        let anthropic =
            json!({ "data": [{ "type": "model", "id": "claude-sonnet-5-5" }], "has_more": false });
        assert_eq!(names(&anthropic), ["claude-sonnet-5-5"]);
        for other in [json!("hello"), json!({ "error": "no" }), json!({ "data": 3 })] {
            assert_eq!(models(&other), None, "{other}");
        }
    }
}
