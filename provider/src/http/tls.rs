//! TLS with ring and the system's certificate authorities.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::CertificateDer};
use rustls_platform_verifier::Verifier;

use crate::ConfigError;

/// Created per client instead of installed for the process, because that choice belongs to the embedder. Trusts the
/// authorities with these certificates, in DER, besides the system's.
pub(super) fn config(authorities: &[Vec<u8>]) -> Result<ClientConfig, ConfigError> {
    let wrong = |error: rustls::Error| ConfigError::Client(error.to_string());
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions().map_err(wrong)?;
    let more = || authorities.iter().cloned().map(CertificateDer::from);
    let mut config = match Verifier::new_with_extra_roots(more(), provider) {
        Ok(verifier) => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
        }
        Err(error) => {
            tracing::warn!(%error, "https endpoints will be refused: install the system's CA certificates");
            let mut roots = RootCertStore::empty();
            for authority in more() {
                roots.add(authority).map_err(wrong)?;
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
