//! Images and PDFs: whether one in the request may be the reason why it was rejected.

use crate::kind::Kind;
use crate::prose::Prose;
use crate::shape::Findings;

/// Words for an image or PDF that the provider could not use or fetch, or that its model does not take. Some providers do not
/// call it an image; the caller knows whether its request had any.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "image*", "vision", "multimodal", "mmproj", "too much media", "mime type", "media type",
    "while downloading", "unable to download", "failed to download", "could not download", "failed to fetch",
    "cannot fetch", "could not fetch", "robots txt", "file uri", "only https urls",
    "pdf", "file content", "file data", "input file*", "type file", "part type", "variant file", "tag file", "value file",
    "support file*", "support document*",
    // Servers of models that take only text
    "content must be a string", "value must be a string", "content should be a string",
];

/// Parts of a request other than images and PDFs with limits of their own.
const OTHERS: &[&str] = &["attachment*", "audio", "video"];

/// Whether an image may be the reason for a failure of this kind.
pub(crate) fn is_rejected(kind: Kind, found: &Findings, prose: &Prose) -> bool {
    let is_named = || {
        let param = found.param.as_deref().unwrap_or_default();
        let is_of_tool = param.starts_with("tool");
        let names = found.codes.iter().map(|code| code.name.as_str()).chain([param]);
        !is_of_tool && (names.into_iter().any(is_of_image) || prose.has_any(WORDS))
    };
    match kind {
        // A request that is too large in bytes is so because of its images, if it has any.
        Kind::Size => prose.has("image*") || prose.has("pdf") || !prose.has_any(OTHERS),
        Kind::Request | Kind::Policy | Kind::NotFound | Kind::Permission => is_named(),
        _ => false,
    }
}

fn is_of_image(name: &str) -> bool {
    name.to_ascii_lowercase().contains("image")
}
