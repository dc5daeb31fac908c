//! Converts the result of a call for the model.

use std::borrow::Cow;

use everturn_kernel::ToolAnswer;
use everturn_wire::{Image, Value};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use crate::link::Link;

/// Media types of images that models accept.
const KINDS: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Maximum number of images of a result that are sent to a model, and their maximum total size in bytes of base64. They
/// stay in the history and are sent with each request.
const MOST_IMAGES: usize = 8;
const LARGEST_IMAGES: usize = 4 << 20;

const UNKNOWN: &str = "[content of unknown type]";

/// Converts a result: its texts, and descriptions of other content.
pub(crate) fn of(link: &Link, result: &CallToolResult) -> ToolAnswer {
    let structured = result.structured_content.as_ref();
    let mut parts: Vec<Cow<'_, str>> = result.content.iter().map(part).collect();
    // Servers repeat structured content as text for clients that know only text.
    if let Some(value) = structured.filter(|value| !parts.iter().any(|part| says(part, value))) {
        parts.push(value.to_string().into());
    }
    // Before it is cut, because half a secret is not recognized.
    let parts: Vec<_> = parts.into_iter().map(|part| link.redactor.redact(part)).collect();
    let content = joined(&parts, link.config.max_result);
    ToolAnswer { content, is_error: result.is_error == Some(true), images: images(&result.content) }
}

/// Returns the images that models accept. Other images, and those that are too large, are described in the text.
fn images(content: &[ContentBlock]) -> Vec<Image> {
    let mut room = LARGEST_IMAGES;
    let images = content.iter().filter_map(|block| match block {
        ContentBlock::Image(image) if KINDS.contains(&image.mime_type.as_str()) => Some(image),
        _ => None,
    });
    let mut fits = |data: &str| {
        let is_base64 = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/' | b'=');
        let fits = data.len() <= room && data.bytes().all(is_base64);
        room -= if fits { data.len() } else { 0 };
        fits
    };
    let images = images.take(MOST_IMAGES).map(|image| (image, image.data.as_str()));
    images
        .filter(|(_, data)| fits(data))
        .map(|(image, data)| Image {
            url: format!("data:{};base64,{data}", image.mime_type),
            mime_type: Some(image.mime_type.clone()),
        })
        .collect()
}

/// Whether a text expresses the same value.
fn says(text: &str, value: &Value) -> bool {
    // The Python SDK wraps a value that is not an object in an object with this key.
    let inner = value.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("result"));
    let is_inner = inner.is_some_and(|inner| inner.as_str() == Some(text));
    is_inner || serde_json::from_str::<Value>(text).is_ok_and(|said| said == *value || Some(&said) == inner)
}

fn part(block: &ContentBlock) -> Cow<'_, str> {
    match block {
        ContentBlock::Text(text) => text.text.as_str().into(),
        ContentBlock::Image(image) => placeholder("image", Some(&image.mime_type), &image.data).into(),
        ContentBlock::Audio(audio) => placeholder("audio", Some(&audio.mime_type), &audio.data).into(),
        ContentBlock::ResourceLink(link) => {
            let description = link.description.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
            format!("[resource {} at {}{description}]", link.name, link.uri).into()
        }
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { text, .. } => text.as_str().into(),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                placeholder(&format!("resource {uri}"), mime_type.as_deref(), blob).into()
            }
            _ => UNKNOWN.into(),
        },
        _ => UNKNOWN.into(),
    }
}

/// Returns a description in place of base64 data.
fn placeholder(what: &str, mime_type: Option<&str>, data: &str) -> String {
    let bytes = data.trim_end_matches('=').len() / 4 * 3 + [0, 0, 1, 2][data.trim_end_matches('=').len() % 4];
    format!("[{what}: {}, {bytes} bytes]", mime_type.unwrap_or("unknown type"))
}

/// Joins the parts, one per line. If they exceed `most` bytes, keeps the beginning and the end. Does not copy what is
/// omitted.
fn joined(parts: &[Cow<'_, str>], most: usize) -> String {
    let all = parts.iter().map(|part| part.len()).sum::<usize>() + parts.len().saturating_sub(1);
    if all <= most {
        return parts.join("\n");
    }
    // The note about what was omitted takes space, too.
    let note = |left_out: usize| format!("\n[... {left_out} bytes of this result omitted ...]\n");
    let room = most.saturating_sub(note(all).len());
    let pieces = || parts.iter().flat_map(|part| [part.as_ref(), "\n"]).take(2 * parts.len() - 1);
    let mut head = String::new();
    for piece in pieces() {
        let end = piece.floor_char_boundary(room - room / 2 - head.len());
        head.push_str(&piece[..end]);
        if end < piece.len() {
            break;
        }
    }
    let (mut tail, mut left) = (Vec::new(), room / 2);
    for piece in pieces().collect::<Vec<_>>().into_iter().rev() {
        let start = piece.ceil_char_boundary(piece.len().saturating_sub(left));
        tail.push(&piece[start..]);
        left -= piece.len() - start;
        if start > 0 {
            break;
        }
    }
    let tail: String = tail.into_iter().rev().collect();
    let left_out = all - head.len() - tail.len();
    format!("{head}{}{tail}", note(left_out))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Command, Connection, ServerConfig, Setting};

    fn link() -> Link {
        let secret = [("KEY".to_owned(), Setting::Secret("s3cret-value".to_owned()))];
        let command = Command { env: secret.into(), ..Command::default() };
        Link::new(ServerConfig::new("a", Connection::Command(command)), None)
    }

    fn given(result: serde_json::Value) -> ToolAnswer {
        of(&link(), &serde_json::from_value(result).unwrap())
    }

    #[test]
    fn every_kind_of_content_is_described_as_text() {
        let content = json!([
            { "type": "text", "text": "hello" },
            { "type": "image", "data": "AAECAwQ=", "mimeType": "image/png" },
            { "type": "audio", "data": "AAEC", "mimeType": "audio/wav" },
            { "type": "resource_link", "uri": "file:///a", "name": "a", "description": "the first" },
            { "type": "resource", "resource": { "uri": "file:///b", "text": "inside" } },
            { "type": "resource", "resource": { "uri": "file:///c", "blob": "AA==" } },
        ]);
        let told = given(json!({ "content": content }));
        let expected = "hello\n[image: image/png, 5 bytes]\n[audio: audio/wav, 3 bytes]\n\
                        [resource a at file:///a: the first]\ninside\n[resource file:///c: unknown type, 1 bytes]";
        let png = Image { url: "data:image/png;base64,AAECAwQ=".into(), mime_type: Some("image/png".into()) };
        assert_eq!(told, ToolAnswer { images: vec![png], ..ToolAnswer::ok(expected) });
    }

    #[test]
    fn unsupported_images_are_only_described() {
        let image = |data: &str, kind: &str| json!({ "type": "image", "data": data, "mimeType": kind });
        let large = "A".repeat(LARGEST_IMAGES - 3);
        let content = json!([
            image(&large, "image/png"),
            image("AAAA", "image/png"),
            image("AAA=", "image/tiff"),
            image("\" }", "image/png"),
        ]);
        let told = given(json!({ "content": content }));
        assert_eq!((told.images.len(), told.content.lines().count()), (1, 4), "{:.200}", told.content);
        let many = vec![image("AAAA", "image/png"); 20];
        assert_eq!(given(json!({ "content": many })).images.len(), MOST_IMAGES);
    }

    #[test]
    fn structured_content_is_returned_once() {
        let value = json!({ "b": 1, "a": [2] });
        let text = json!([{ "type": "text", "text": "{ \"a\": [2], \"b\": 1 }" }]);
        let told = given(json!({ "content": text, "structuredContent": value }));
        assert_eq!(told.content, "{ \"a\": [2], \"b\": 1 }");
        for (text, value) in [("well", json!("well")), ("[1, 2]", json!([1, 2])), ("7", json!(7))] {
            let content = json!([{ "type": "text", "text": text }]);
            let told = given(json!({ "content": content, "structuredContent": { "result": value } }));
            assert_eq!(told.content, text);
        }
        let text = json!([{ "type": "text", "text": "see below" }]);
        let told = given(json!({ "content": text, "structuredContent": { "a": 1 }, "isError": true }));
        assert_eq!(told, ToolAnswer::error("see below\n{\"a\":1}"));
    }

    #[test]
    fn a_secret_repeated_by_a_server_is_redacted() {
        let told = given(json!({ "content": [{ "type": "text", "text": "KEY=s3cret-value" }] }));
        assert_eq!(told.content, "KEY=[secret]");
    }

    #[test]
    fn a_long_result_keeps_both_ends_and_its_bound() {
        let parts =
            |texts: &[&str]| texts.iter().map(|text| Cow::from((*text).to_owned())).collect::<Vec<_>>();
        assert_eq!(joined(&parts(&["ab", "cd"]), 5), "ab\ncd");
        let long = "ä".repeat(300);
        for texts in [&[long.as_str()][..], &["first", &long, "last"], &[&long, &long], &["x"; 500]] {
            for most in 80..200 {
                let cut = joined(&parts(texts), most);
                assert!(cut.len() <= most, "{} of {most}: {cut}", cut.len());
                let (head, rest) = cut.split_once("\n[... ").unwrap();
                let (left_out, tail) = rest.split_once(" bytes of this result omitted ...]\n").unwrap();
                let whole = texts.join("\n");
                assert!(whole.starts_with(head) && whole.ends_with(tail), "{cut}");
                assert!(!head.is_empty() && !tail.is_empty(), "{cut}");
                assert_eq!(left_out.parse::<usize>().unwrap(), whole.len() - head.len() - tail.len());
            }
        }
        assert!(joined(&parts(&[&long]), 0).contains("600 bytes"));
    }
}
