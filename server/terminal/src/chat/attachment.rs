//! `/file`: a file for a message: an image or a PDF as it is, a text as a part of the message.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use everturn_wire::Image;

/// Maximum size of an image or a PDF, and of a text, in bytes. A message must fit into the body of a request.
const LARGEST: u64 = 12_000_000;
const LARGEST_TEXT: u64 = 400_000;

/// Endings of names, and their media types.
const TYPES: [(&str, &str); 6] = [
    ("pdf", Image::PDF),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
];

/// Splits what follows `/file` into a path, which may be in double quotes, and a text.
pub(super) fn split(rest: &str) -> Option<(String, String)> {
    let rest = rest.trim();
    let (path, text) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
    };
    (!path.is_empty()).then(|| (path.to_owned(), text.trim().to_owned()))
}

/// Reads the file. Returns the message with it.
///
/// # Errors
/// Returns why it cannot be sent, for people.
pub(super) fn read(path: &str, text: &str) -> Result<(String, Vec<Image>), String> {
    let file = Path::new(path);
    let ending = file.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name = file.file_name().unwrap_or_default().to_string_lossy().replace(['"', '\n'], "'");
    let said = if text.is_empty() { &name } else { text };
    let kind = TYPES.iter().find(|(known, _)| *known == ending).map(|(_, kind)| *kind);
    let most = if kind.is_some() { LARGEST } else { LARGEST_TEXT };
    let bytes = contents(file, most).map_err(|error| format!("Cannot read {path}: {error}"))?;
    let Some(bytes) = bytes else {
        return Err(format!("{path} is larger than {} kB, which is the most for a message", most / 1000));
    };
    if let Some(kind) = kind {
        let url = format!("data:{kind};base64,{}", STANDARD.encode(bytes));
        return Ok((said.to_owned(), vec![Image { url, mime_type: Some(kind.to_owned()) }]));
    }
    match String::from_utf8(bytes) {
        Ok(content) if !content.contains('\0') => {
            Ok((format!("{said}\n\n<file name=\"{name}\">\n{}\n</file>", content.trim_end()), Vec::new()))
        }
        _ => Err(format!("{path} is neither a text, nor a PDF, nor a PNG, JPEG, GIF or WebP image")),
    }
}

/// Returns what is in a file; `None` if that is more than `most` bytes.
fn contents(file: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_be_quoted() {
        let of = |rest| split(rest).map(|(path, text)| format!("{path}|{text}"));
        assert_eq!(of("a.pdf").as_deref(), Some("a.pdf|"));
        assert_eq!(of(" a.pdf  what is it? ").as_deref(), Some("a.pdf|what is it?"));
        assert_eq!(of("\"my file.pdf\" why?").as_deref(), Some("my file.pdf|why?"));
        assert_eq!((of(""), of("\"a")), (None, None));
    }

    #[test]
    fn files_are_attached_by_their_kind() {
        let home = std::env::temp_dir().join(format!("everturn-file-{}", std::process::id()));
        std::fs::create_dir_all(&home).unwrap();
        let put = |name: &str, bytes: &[u8]| {
            let path = home.join(name);
            std::fs::write(&path, bytes).unwrap();
            path.display().to_string()
        };
        let (said, images) = read(&put("a.PDF", b"%PDF"), "what?").unwrap();
        assert_eq!(
            (said.as_str(), images[0].url.as_str()),
            ("what?", "data:application/pdf;base64,JVBERg==")
        );
        let (said, images) = read(&put("b.rs", b"fn a() {}\n"), "").unwrap();
        assert_eq!((said.as_str(), images.len()), ("b.rs\n\n<file name=\"b.rs\">\nfn a() {}\n</file>", 0));
        assert!(read(&put("c.bin", b"a\0b"), "").unwrap_err().contains("neither a text, nor a PDF"));
        let large = put("d.txt", &vec![b'a'; LARGEST_TEXT as usize + 1]);
        assert!(read(&large, "").unwrap_err().contains("larger than 400 kB"));
        assert!(read(&home.join("none").display().to_string(), "").unwrap_err().starts_with("Cannot read"));
        std::fs::remove_dir_all(&home).unwrap();
    }
}
