//! A container image, as `podman load`, `skopeo` and `docker load` read it: the binary, its libraries, and certificates.

use std::fs;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{
    archive::{Tar, gzip, sha256},
    contents::Contents,
};

/// The user and group of the server, who owns the data.
pub(super) const USER: u32 = 65_532;

const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Builds the same image as `server/packaging/Dockerfile`.
pub(super) fn make(contents: &Contents) -> Result<(String, Vec<u8>)> {
    let layer = layer(contents)?;
    let packed = gzip(&layer, contents.level)?;
    let config = json!({
        "architecture": contents.machine.debian,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "ExposedPorts": { "4777/tcp": {} },
            // Inside a container every address is its own: the token is what protects it.
            "Env": [
                "EVERTURN_LISTEN=0.0.0.0:4777",
                "EVERTURN_DATA=/data/everturn.db",
                format!("SSL_CERT_FILE={CERTIFICATES}"),
                "SQLITE_TMPDIR=/data",
            ],
            "Entrypoint": ["/everturn"],
            "Cmd": ["serve"],
            "Volumes": { "/data": {} },
            // Not part of the OCI format, but engines that know health checks read it.
            "Healthcheck": {
                "Test": ["CMD", "/everturn", "health"],
                "Interval": 30_000_000_000_u64,
                "Timeout": 5_000_000_000_u64,
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer))] },
    });
    let config = config.to_string().into_bytes();
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": reference("application/vnd.oci.image.config.v1+json", &config),
        "layers": [reference("application/vnd.oci.image.layer.v1.tar+gzip", &packed)],
    });
    let manifest = manifest.to_string().into_bytes();
    let mut named = reference("application/vnd.oci.image.manifest.v1+json", &manifest);
    named["annotations"] = json!({ "org.opencontainers.image.ref.name": contents.version });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [named],
    });
    // What Docker reads instead of the index.
    let docker = json!([{
        "Config": blob(&config),
        "RepoTags": [format!("everturn:{}", contents.version)],
        "Layers": [blob(&packed)],
    }]);
    let mut tar = Tar::new(contents.time);
    tar.file("oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    tar.file("index.json", 0o644, index.to_string().as_bytes())?;
    tar.file("manifest.json", 0o644, docker.to_string().as_bytes())?;
    for content in [&config, &manifest, &packed] {
        tar.file(&blob(content), 0o644, content)?;
    }
    let name = format!("everturn-{}-{}-image.tar", contents.version, contents.machine.rust);
    Ok((name, tar.end()))
}

fn layer(contents: &Contents) -> Result<Vec<u8>> {
    let certificates =
        fs::read(CERTIFICATES).with_context(|| format!("the image needs {CERTIFICATES} of this system"))?;
    let mut tar = Tar::new(contents.time);
    tar.file("everturn", 0o755, &contents.binary)?;
    tar.file(CERTIFICATES.trim_start_matches('/'), 0o644, &certificates)?;
    for (path, library) in &contents.libraries {
        tar.file(path.trim_start_matches('/'), 0o755, library)?;
    }
    tar.directory("data", USER)?;
    Ok(tar.end())
}

fn reference(kind: &str, content: &[u8]) -> Value {
    json!({ "mediaType": kind, "digest": format!("sha256:{}", sha256(content)), "size": content.len() })
}

fn blob(content: &[u8]) -> String {
    format!("blobs/sha256/{}", sha256(content))
}
