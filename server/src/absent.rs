//! What this build lacks, and how to get it.

/// Says that this build lacks something, which is a feature of this crate.
pub(crate) fn absent(what: &str, feature: &str) -> String {
    format!("this build has no {what} support: build with `--features {feature}`, or use a released binary")
}
