//! The page as requested by a browser.

use hyper::Method;

use crate::{
    client::{get, send},
    home::Home,
};

#[tokio::test]
async fn the_page_and_all_its_files_are_served() {
    let server = Home::empty().serve().await;
    let page = get(&server, "/").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").to_owned();
    assert!(policy.contains("default-src 'self'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    let (tag, html) = (page.header("etag").to_owned(), page.text().await);
    let parts: Vec<&str> = html.split(['"']).filter(|part| part.starts_with("page/")).collect();
    assert!(parts.len() > 2, "{html}");
    for part in parts {
        let file = get(&server, &format!("/{part}")).await;
        assert_eq!(file.status, 200, "{part}");
        assert!(!file.text().await.is_empty(), "{part}");
    }
    let again = send(&server, Method::GET, "/", &[("if-none-match", &tag)], String::new()).await;
    assert_eq!(again.status, 304);
    assert_eq!(get(&server, "/page/none.js").await.status, 404);
}

#[tokio::test]
async fn the_page_needs_no_token_and_everything_else_does() {
    let server = Home::with("[server]\ntoken = \"t0ken\"").serve().await;
    assert_eq!(get(&server, "/").await.status, 200);
    assert_eq!(get(&server, "/page/app.js").await.status, 200);
    assert_eq!(get(&server, "/models").await.status, 401);
    let bearer = [("authorization", "Bearer t0ken")];
    assert_eq!(send(&server, Method::GET, "/models", &bearer, String::new()).await.status, 200);
}

#[tokio::test]
async fn another_site_is_refused() {
    let server = Home::empty().serve().await;
    for headers in [[("host", "evil.example")], [("origin", "http://evil.example")]] {
        let answer = send(&server, Method::GET, "/models", &headers, String::new()).await;
        assert!([400, 403, 421].contains(&answer.status), "{headers:?}: {}", answer.status);
    }
}
