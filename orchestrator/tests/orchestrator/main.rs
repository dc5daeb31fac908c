//! What an embedder may rely on, tested through the public API only.

mod journal;
