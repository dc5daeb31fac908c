//! What was found in a failure, with its place.

/// A name or a value, and where it stood: `error.type` in a body, `header x-error-type`, or nowhere but in the text.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) place: String,
}
