//! TLS with ring and the system's certificate authorities.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::ConfigError;

/// Created per client instead of installed for the process, because that choice belongs to the embedder.
pub(super) fn config() -> Result<ClientConfig, ConfigError> {
    let builder = || {
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| ConfigError::Client(error.to_string()))
    };
    let mut config = match builder()?.with_platform_verifier() {
        Ok(trusting) => trusting.with_no_client_auth(),
        Err(error) => {
            tracing::warn!(%error, "https endpoints will be refused: install the system's CA certificates");
            builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
