//! TLS: the server's certificate, and connections that may be encrypted.

use std::{
    fmt,
    io::{self, IoSlice},
    pin::Pin,
    sync::{Arc, PoisonError, RwLock},
    task::{Context, Poll},
};

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// A server's certificate with its key. Can be replaced while the server runs; clones share it. Connections that exist keep
/// theirs.
#[derive(Clone)]
pub struct Certificate(Arc<RwLock<Arc<ServerConfig>>>);

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// There is no certificate.
    #[error("there is no certificate in it: it must be PEM, with -----BEGIN CERTIFICATE-----")]
    NoCertificate,
    /// There is no private key.
    #[error(
        "there is no private key in it: it must be PEM, with -----BEGIN PRIVATE KEY-----, and not encrypted"
    )]
    NoKey,
    /// The two do not fit, or are of a kind that is not supported.
    #[error("they cannot be used together: {0}")]
    Unusable(String),
}

impl Certificate {
    /// Reads a chain of certificates, the server's own first, and its private key.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        Ok(Self(Arc::new(RwLock::new(config(chain, key)?))))
    }

    /// Replaces it.
    ///
    /// # Errors
    /// When the new one cannot be used; the old one then stays.
    pub fn replace(&self, chain: &[u8], key: &[u8]) -> Result<(), CertificateError> {
        let new = config(chain, key)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone().into()
    }
}

fn config(chain: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, CertificateError> {
    let unusable = |error: rustls::Error| CertificateError::Unusable(error.to_string());
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|_| CertificateError::NoCertificate)?;
    if chain.is_empty() {
        return Err(CertificateError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| CertificateError::NoKey)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificate")
    }
}

/// A connection, encrypted or not.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

macro_rules! on_either {
    ($stream:expr, $either:ident => $then:expr) => {
        match $stream {
            Stream::Plain($either) => $then,
            Stream::Tls($either) => $then,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        on_either!(&mut *self, stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        on_either!(&mut *self, stream => Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on_either!(&mut *self, stream => Pin::new(stream).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        on_either!(self, stream => stream.is_write_vectored())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(&mut *self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(&mut *self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
