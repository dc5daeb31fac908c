//! Certificates for servers and clients on loopback addresses.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rcgen::{CertifiedKey, generate_simple_self_signed};

/// The files of a certificate that signs itself, so that it is its own authority.
#[derive(Clone, Debug)]
pub struct SelfSigned {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its private key, which only the owner of the file can read.
    pub key: PathBuf,
}

impl SelfSigned {
    /// Writes a new certificate for a host name or an address into this directory, as `<name>.crt` and `<name>.key`.
    ///
    /// # Panics
    /// If the files cannot be written.
    pub fn write(directory: &Path, name: &str, host: &str) -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(vec![host.to_owned()]).expect("the host is valid");
        let file = |ending| directory.join(format!("{name}.{ending}"));
        let (certificate, key) = (file("crt"), file("key"));
        fs::write(&certificate, pem("CERTIFICATE", cert.der())).expect("the certificate can be written");
        let text = pem("PRIVATE KEY", &signing_key.serialize_der());
        write_private(&key, &text).expect("the key can be written");
        Self { certificate, key }
    }
}

/// Servers refuse a key that others can read.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)?;
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(())
}

pub(crate) fn pem(kind: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n"))
}
