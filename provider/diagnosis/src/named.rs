//! Findings and their locations.

/// A name or value, and where it was found: `error.type` in a body, `header x-error-type`, or empty for the text
/// itself.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) place: String,
}
