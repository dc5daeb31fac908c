//! A certificate authority for servers on the loopback interface that speak TLS.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use tokio_rustls::rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
};

use crate::certificate::pem;

/// The host of every loopback server.
const HOST: &str = "127.0.0.1";

/// An authority that issues certificates, good and bad ones.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key.
#[derive(Debug)]
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Authority {
    /// Creates an authority that nobody trusts yet.
    ///
    /// # Panics
    /// If no key can be made.
    pub fn new() -> Self {
        let mut about = CertificateParams::new(Vec::new()).expect("there are no names");
        about.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Each has a name of its own, by which clients tell who issued a certificate.
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        about.distinguished_name.push(DnType::CommonName, format!("loopback authority {number}"));
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(about, key).expect("a certificate of its own"))
    }

    /// Returns its own certificate, which clients trust.
    pub fn certificate(&self) -> &[u8] {
        self.0.der()
    }

    /// Writes its own certificate to a file, as `SSL_CERT_FILE` names one.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn write(&self, file: &Path) {
        fs::write(file, pem("CERTIFICATE", self.certificate())).expect("the certificate can be written");
    }

    /// Issues a certificate for 127.0.0.1.
    pub fn issue(&self) -> Identity {
        self.sign(HOST, |_| {})
    }

    /// Issues a certificate for 127.0.0.1 that has expired.
    pub fn issue_expired(&self) -> Identity {
        self.sign(HOST, |about| about.not_after = date_time_ymd(2020, 1, 1))
    }

    /// Issues a certificate for another host.
    pub fn issue_for(&self, host: &str) -> Identity {
        self.sign(host, |_| {})
    }

    fn sign(&self, host: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let mut about = CertificateParams::new(vec![host.to_owned()]).expect("the host is valid");
        change(&mut about);
        let key = KeyPair::generate().expect("a key");
        let certificate = about.signed_by(&key, &self.0).expect("a certificate");
        Identity { certificate: certificate.der().clone(), key: key.serialize_der() }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Identity {
    /// Returns the configuration of a server with this certificate that offers these protocols, the best first.
    pub(crate) fn serving(&self, protocols: &[&str]) -> Arc<ServerConfig> {
        let key = PrivatePkcs8KeyDer::from(self.key.clone());
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring knows the default versions")
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key.into())
            .expect("the key belongs to the certificate");
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}
