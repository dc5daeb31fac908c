//! Images and PDFs that belong to a message.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// An image or a PDF attached to a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The URL: `https:`, or `data:` in base64.
    pub url: String,
    /// The media type, if known. A PDF at an `https:` URL needs it: `application/pdf`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

impl Image {
    /// The media type of a PDF.
    pub const PDF: &'static str = "application/pdf";

    /// Whether an attachment with this URL and media type is a PDF.
    pub fn is_pdf(url: &str, mime_type: Option<&str>) -> bool {
        match url.strip_prefix("data:") {
            Some(data) => data.strip_prefix(Self::PDF).is_some_and(|rest| rest.starts_with([';', ','])),
            None => mime_type == Some(Self::PDF),
        }
    }
}
