//! The files of the server's certificate.

use std::path::PathBuf;

use anyhow::{Result, bail};

use super::file::Source;

/// The files of the server's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl TlsFiles {
    pub(super) fn resolve(
        cert: Option<String>,
        key: Option<String>,
        source: &Source,
    ) -> Result<Option<Self>> {
        match (cert, key) {
            (None, None) => Ok(None),
            (Some(cert), Some(key)) => Ok(Some(Self { cert: source.path(&cert), key: source.path(&key) })),
            _ => bail!(
                "[server] needs both `tls_cert` and `tls_key`, the PEM files of its certificate and private key"
            ),
        }
    }
}
