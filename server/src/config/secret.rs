//! All secrets of the configuration, to remove them from text that leaves the process.

use everturn_mcp::{Connection, ServerConfig, Setting};
use everturn_provider::{EndpointConfig, Redactor, Secret};

use super::{Api, Config, Provider};

impl Config {
    /// Returns what removes all configured secrets from a text.
    pub(crate) fn redactor(&self) -> Redactor {
        let mut redactor = Redactor::default();
        if let Some(token) = &self.token {
            redactor.add(&Secret::new(token.reveal()));
        }
        let of_postgres = self.postgres.iter().flat_map(|postgres| &postgres.secrets);
        of_postgres.for_each(|secret| redactor.add(&Secret::new(secret.reveal())));
        self.providers.iter().chain(&self.added).for_each(|provider| provider.hide_in(&mut redactor));
        self.mcp.iter().for_each(|server| add(&mut redactor, server));
        redactor
    }
}

impl Provider {
    /// Adds all its secrets.
    pub(crate) fn hide_in(&self, redactor: &mut Redactor) {
        let others = self.credentials.iter().map(|(_, api)| api);
        others.chain([&self.api]).for_each(|api| redactor.add_endpoint(endpoint(api)));
    }
}

fn endpoint(api: &Api) -> &EndpointConfig {
    match api {
        Api::OpenAiChat(chat) => &chat.endpoint,
        Api::OpenAiResponses(responses) => &responses.endpoint,
        Api::Anthropic(messages) => &messages.endpoint,
        Api::Gemini(gemini) => &gemini.endpoint,
    }
}

fn add(redactor: &mut Redactor, server: &ServerConfig) {
    let settings = match &server.connection {
        Connection::Command(command) => &command.env,
        Connection::Http(endpoint) => {
            // Its URL may contain a secret, too.
            redactor.add_endpoint(&EndpointConfig::new(&endpoint.url));
            &endpoint.headers
        }
    };
    for setting in settings.values() {
        if let Setting::Secret(secret) = setting {
            redactor.add(&Secret::new(secret));
        }
    }
}
