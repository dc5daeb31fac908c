//! An operator with one account and one user, as `nsc` would create them.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use nkeys::KeyPair;
use serde_json::{Value, json};

/// Who vouches for accounts.
pub(crate) struct Operator {
    own: KeyPair,
    system: KeyPair,
    account: KeyPair,
    user: KeyPair,
}

impl Operator {
    pub(crate) fn new() -> Self {
        Self {
            own: KeyPair::new_operator(),
            system: KeyPair::new_account(),
            account: KeyPair::new_account(),
            user: KeyPair::new_user(),
        }
    }

    /// Returns the configuration of a server that trusts this operator.
    pub(crate) fn config(&self) -> String {
        let operator = claims(&self.own, &self.own, &json!({ "type": "operator", "version": 2 }));
        let account = |key: &KeyPair, storage: i64| {
            let limits = json!({
                "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
                "conn": -1, "leaf": -1, "mem_storage": storage, "disk_storage": storage, "streams": storage,
                "consumer": storage,
            });
            claims(&self.own, key, &json!({ "type": "account", "version": 2, "limits": limits }))
        };
        format!(
            "operator: {operator}\nsystem_account: {system}\nresolver: MEMORY\n\
             resolver_preload: {{ {system}: {}, {}: {} }}",
            account(&self.system, 0),
            self.account.public_key(),
            account(&self.account, -1),
            system = self.system.public_key(),
        )
    }

    /// Returns the content of the user's credentials file.
    pub(crate) fn credentials(&self) -> String {
        let rights = json!({ "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1 });
        format!(
            "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            claims(&self.account, &self.user, &rights),
            self.user.seed().unwrap()
        )
    }
}

/// Returns a signed token.
fn claims(issuer: &KeyPair, subject: &KeyPair, nats: &Value) -> String {
    let head = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let body = json!({
        "jti": "none", "iat": 1_700_000_000, "iss": issuer.public_key(), "name": "test",
        "sub": subject.public_key(), "nats": nats,
    });
    let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let signed = format!("{}.{}", encode(head.to_string().as_bytes()), encode(body.to_string().as_bytes()));
    format!("{signed}.{}", encode(&issuer.sign(signed.as_bytes()).unwrap()))
}
