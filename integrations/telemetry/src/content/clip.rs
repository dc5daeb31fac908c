//! Cuts texts, and replaces `data:` URLs.

/// The end of a text that was cut.
pub(super) const CUT: &str = "… [cut]";

/// Cuts a text to `room` bytes of JSON, and marks it if that, or an earlier cut, left something out.
pub(super) fn cut(text: &mut String, is_cut: bool, room: usize) {
    let mut size = 0;
    let fits = text.char_indices().find(|(_, c)| {
        size += escaped(*c);
        size > room
    });
    if let Some((at, _)) = fits {
        text.truncate(at);
    }
    if is_cut || fits.is_some() {
        text.push_str(CUT);
    }
}

/// Returns the size of a character in a JSON string.
fn escaped(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..'\u{20}' => 6,
        _ => c.len_utf8(),
    }
}

/// Returns the beginning of a text, about `room` bytes, with the type and size in place of each `data:` URL, and whether
/// something follows. `is_cut` says that the text itself is only a beginning.
pub(super) fn without_data(text: &str, is_cut: bool, room: usize) -> (String, bool) {
    let (mut shown, mut rest) = (String::new(), text);
    while !rest.is_empty() && shown.len() < room {
        let at = rest.find("data:").unwrap_or(rest.len());
        let (before, found) = rest.split_at(at);
        let end = before.floor_char_boundary(room - shown.len());
        shown.push_str(&before[..end]);
        if end < before.len() {
            return (shown, true);
        }
        rest = found;
        if let Some(url) = DataUrl::read(rest) {
            let or_more = if is_cut && url.len == rest.len() { " or more" } else { "" };
            shown.push_str(&format!("[{}, {} bytes{or_more}]", url.media_type, url.bytes));
            rest = &rest[url.len..];
        } else if !rest.is_empty() {
            shown.push_str("data:");
            rest = &rest["data:".len()..];
        }
    }
    (shown, !rest.is_empty())
}

/// Returns the media type of an image, and its size in bytes if the URL contains it.
pub(super) fn image<'u>(url: &'u str, media_type: Option<&'u str>) -> (&'u str, Option<usize>) {
    // The whole text is the URL: reading megabytes to find its end would only cost time.
    let data = DataUrl::head(url).map(|(head, data)| DataUrl::new(url, head, data, data.len()));
    let found = data.as_ref().map(|data| data.media_type);
    (media_type.or(found).unwrap_or("image"), data.map(|data| data.bytes))
}

/// A `data:` URL at the beginning of a text.
struct DataUrl<'t> {
    media_type: &'t str,
    /// Size of the data.
    bytes: usize,
    /// Length of the URL.
    len: usize,
}

impl<'t> DataUrl<'t> {
    fn read(text: &'t str) -> Option<Self> {
        let (head, data) = Self::head(text)?;
        let is_end = |c: char| c.is_whitespace() || c.is_control() || "\"'<>()\\`".contains(c);
        Some(Self::new(text, head, data, data.find(is_end).unwrap_or(data.len())))
    }

    /// Splits a text that begins with a URL into what precedes the comma, and the rest.
    fn head(text: &'t str) -> Option<(&'t str, &'t str)> {
        let rest = text.strip_prefix("data:")?;
        let is_of_head = |c: char| c.is_ascii_alphanumeric() || "/.+-_;=".contains(c);
        let (head, data) = rest.split_at(rest.find(|c| !is_of_head(c))?);
        let data = data.strip_prefix(',')?;
        // Prose may have `data:` before a word and a comma.
        let is_url =
            head.ends_with(";base64") || head.split(';').next().is_some_and(|first| first.contains('/'));
        is_url.then_some((head, data))
    }

    fn new(text: &str, head: &'t str, data: &str, size: usize) -> Self {
        let is_base64 = head.ends_with(";base64");
        let bytes = if is_base64 { data[..size].trim_end_matches('=').len() * 3 / 4 } else { size };
        let media_type = head.split(';').next().filter(|first| !first.is_empty()).unwrap_or("text/plain");
        Self { media_type, bytes, len: text.len() - data.len() + size }
    }
}
