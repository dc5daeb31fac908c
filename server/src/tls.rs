//! The server's certificate, read again when its files change.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result};
use everturn_transport_http::Certificate;
use tokio::time::sleep;

use crate::config::TlsFiles;

/// Interval to look for changes.
const TICK: Duration = Duration::from_secs(1);

/// Reads the certificate.
pub(crate) fn certificate(files: &TlsFiles) -> Result<Certificate> {
    let (chain, key) = read(files)?;
    Certificate::from_pem(&chain, &key).with_context(|| in_files(files))
}

/// Replaces the certificate whenever its files change. One that cannot be used leaves the last one in place.
pub(crate) async fn keep_up(files: TlsFiles, certificate: Certificate) {
    let mut known = changed(&files);
    loop {
        sleep(TICK).await;
        let now = changed(&files);
        if now == known {
            continue;
        }
        known = now;
        let replaced = read(&files)
            .and_then(|(chain, key)| certificate.replace(&chain, &key).with_context(|| in_files(&files)));
        match replaced {
            Ok(()) => tracing::info!("the new TLS certificate is in use"),
            // The second of the two files may not be written yet.
            Err(error) => tracing::warn!(error = format!("{error:#}"), "the TLS certificate stays as it was"),
        }
    }
}

fn read(files: &TlsFiles) -> Result<(Vec<u8>, Vec<u8>)> {
    let read = |name: &str, path: &Path| {
        fs::read(path).with_context(|| format!("cannot read `{name}` {}", path.display()))
    };
    Ok((read("tls_cert", &files.cert)?, read("tls_key", &files.key)?))
}

fn in_files(files: &TlsFiles) -> String {
    format!("`tls_cert` {} and `tls_key` {}", files.cert.display(), files.key.display())
}

/// Returns when each of the files changed.
fn changed(files: &TlsFiles) -> [Option<(SystemTime, u64)>; 2] {
    let at = |path: &PathBuf| {
        let data = fs::metadata(path).ok()?;
        Some((data.modified().ok()?, data.len()))
    };
    [at(&files.cert), at(&files.key)]
}
