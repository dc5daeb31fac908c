//! The page, embedded in the binary, and the routes that serve its files.
//!
//! The server side knows nothing of conversations: the page uses the API like any other client.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use axum::{
    Router,
    extract::Path as Name,
    http::{
        HeaderMap, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
            X_CONTENT_TYPE_OPTIONS,
        },
    },
    response::{IntoResponse, Response},
    routing::get,
};

/// Allows only the page's own files and server, so that nothing a model writes makes the page load anything.
const POLICY: &str = "default-src 'self'; connect-src 'self'; img-src 'self' data:; object-src 'none'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types dompurify";

const INDEX: &str = "index.html";

macro_rules! files {
    ($($name:literal)*) => {
        /// The files in `page/asset/`.
        const FILES: &[(&str, &[u8])] = &[$(($name, include_bytes!(concat!("../page/asset/", $name)))),*];
    };
}

files! {
    "again.js" "allowed.js" "api.js" "app.js" "approval.js" "arguments.js" "ask.js" "attempts.js" "banner.js" "because.js" "callers.js" "calls.js" "choice.js" "clean.js" "code.js" "compaction.js"
    "composer.js" "conversation.js" "copy.js" "decision.js" "dock.js" "draft.js" "drawer.js" "element.js" "export.js" "fallback.js" "field.js" "files.js" "focus.js" "fold.js"
    "frame.js" "history.js" "icon.svg" "images.js" "index.html" "instructions.js" "list.js" "login.js" "manage.js" "mark.js" "markdown.js" "maths.js" "menu.js" "nodes.js" "notify.js" "outgoing.js" "panel.js" "passage.js" "patch.js" "permission.js" "picture.js"
    "press.js" "providers.js" "question.js" "readable.js" "render.js" "report.js" "requests.js" "revise.js" "search.js" "section.js" "settings.js" "shelf.js" "shortcuts.js" "silence.js" "snapshot.js" "socket.js" "source.js" "start.js" "stored.js"
    "style.css" "syntax.js" "targets.js" "theme.js" "timeline.js" "toast.js" "token.js" "tool.js" "tools.js" "transcript.js" "turn.js" "typeset.js" "unfinished.js" "usage.js"
    "visible.js" "watchdog.js" "wording.js" "written.js"

    // Copied by testing/e2e/vendor.mjs.
    "vendor/dompurify/LICENSE.txt" "vendor/dompurify/purify.es.mjs"
    "vendor/katex/LICENSE.txt" "vendor/katex/katex.min.css" "vendor/katex/katex.min.js"
    "vendor/katex/fonts/KaTeX_AMS-Regular.woff2" "vendor/katex/fonts/KaTeX_Caligraphic-Bold.woff2" "vendor/katex/fonts/KaTeX_Caligraphic-Regular.woff2"
    "vendor/katex/fonts/KaTeX_Fraktur-Bold.woff2" "vendor/katex/fonts/KaTeX_Fraktur-Regular.woff2" "vendor/katex/fonts/KaTeX_Main-Bold.woff2"
    "vendor/katex/fonts/KaTeX_Main-BoldItalic.woff2" "vendor/katex/fonts/KaTeX_Main-Italic.woff2" "vendor/katex/fonts/KaTeX_Main-Regular.woff2"
    "vendor/katex/fonts/KaTeX_Math-BoldItalic.woff2" "vendor/katex/fonts/KaTeX_Math-Italic.woff2" "vendor/katex/fonts/KaTeX_SansSerif-Bold.woff2"
    "vendor/katex/fonts/KaTeX_SansSerif-Italic.woff2" "vendor/katex/fonts/KaTeX_SansSerif-Regular.woff2" "vendor/katex/fonts/KaTeX_Script-Regular.woff2"
    "vendor/katex/fonts/KaTeX_Size1-Regular.woff2" "vendor/katex/fonts/KaTeX_Size2-Regular.woff2" "vendor/katex/fonts/KaTeX_Size3-Regular.woff2"
    "vendor/katex/fonts/KaTeX_Size4-Regular.woff2" "vendor/katex/fonts/KaTeX_Typewriter-Regular.woff2"
    "vendor/marked/LICENSE.txt" "vendor/marked/marked.esm.js"
    "vendor/highlight/LICENSE.txt" "vendor/highlight/core.min.js"
    "vendor/highlight/bash.min.js" "vendor/highlight/c.min.js" "vendor/highlight/cpp.min.js" "vendor/highlight/csharp.min.js"
    "vendor/highlight/css.min.js" "vendor/highlight/diff.min.js" "vendor/highlight/dockerfile.min.js" "vendor/highlight/go.min.js"
    "vendor/highlight/graphql.min.js" "vendor/highlight/ini.min.js" "vendor/highlight/java.min.js" "vendor/highlight/javascript.min.js"
    "vendor/highlight/json.min.js" "vendor/highlight/kotlin.min.js" "vendor/highlight/lua.min.js" "vendor/highlight/makefile.min.js"
    "vendor/highlight/markdown.min.js" "vendor/highlight/php.min.js" "vendor/highlight/powershell.min.js" "vendor/highlight/python.min.js"
    "vendor/highlight/r.min.js" "vendor/highlight/ruby.min.js" "vendor/highlight/rust.min.js" "vendor/highlight/scala.min.js"
    "vendor/highlight/shell.min.js" "vendor/highlight/sql.min.js" "vendor/highlight/swift.min.js" "vendor/highlight/typescript.min.js"
    "vendor/highlight/xml.min.js" "vendor/highlight/yaml.min.js"
}

/// Returns the routes of the page's files, below `/page/`.
pub(crate) fn router() -> Router {
    Router::new().route(
        "/page/{*name}",
        get(async |Name(name): Name<String>, headers: HeaderMap| file(&name, &headers)),
    )
}

/// Whether a path is part of the page, which contains no secrets and needs no token.
pub(crate) fn is_open(path: &str) -> bool {
    path == "/" || path.starts_with("/page/")
}

/// Returns the page itself.
pub(crate) fn index(headers: &HeaderMap) -> Response {
    file(INDEX, headers)
}

fn file(name: &str, asked: &HeaderMap) -> Response {
    let Some((name, bytes)) = FILES.iter().find(|(known, _)| *known == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    let tag = format!("\"{:x}\"", hasher.finish());
    let is_known = asked.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let headers = [
        (CONTENT_TYPE, content_type(name)),
        (ETAG, &tag),
        // Cached, but always revalidated, so that a new binary serves its new page at once.
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    match is_known {
        true => (StatusCode::NOT_MODIFIED, headers).into_response(),
        false => (headers, *bytes).into_response(),
    }
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("woff2") => "font/woff2",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn every_file_of_the_page_is_embedded_with_its_type() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/page/asset"));
        let mut there = BTreeSet::new();
        list(folder, folder, &mut there);
        let known: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(there, known);
        assert!(known.iter().all(|name| content_type(name) != "application/octet-stream"));
    }

    /// Adds the files below `folder`, with names relative to `root`.
    fn list(root: &Path, folder: &Path, names: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => list(root, &path, names),
                false => {
                    let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                    names.insert(name.replace('\\', "/"));
                }
            }
        }
    }

    #[test]
    fn a_cached_file_is_not_sent_again() {
        let first = file(INDEX, &HeaderMap::new());
        assert_eq!(first.status(), StatusCode::OK);
        assert_eq!(first.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        let mut asked = HeaderMap::new();
        asked.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
        assert_eq!(file(INDEX, &asked).status(), StatusCode::NOT_MODIFIED);
        asked.insert(IF_NONE_MATCH, HeaderValue::from_static("\"other\""));
        assert_eq!(file(INDEX, &asked).status(), StatusCode::OK);
    }

    #[test]
    fn the_page_complies_with_its_content_security_policy() {
        let (_, index) = FILES.iter().find(|(name, _)| *name == INDEX).unwrap();
        let index = str::from_utf8(index).unwrap();
        for forbidden in ["style=", "onclick=", "<style", "<script>", "http://", "https://"] {
            assert!(!index.contains(forbidden), "{forbidden}");
        }
        assert!(POLICY.contains("default-src 'self'") && !POLICY.contains("unsafe"));
    }

    #[test]
    fn unknown_files_are_not_found() {
        for name in ["", "..", "../Cargo.toml", "none.js"] {
            assert_eq!(file(name, &HeaderMap::new()).status(), StatusCode::NOT_FOUND, "{name}");
        }
    }
}
