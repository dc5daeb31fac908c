//! Idempotency keys of callers.

use super::*;

#[tokio::test]
async fn a_key_finds_only_the_turn_of_its_caller() {
    let world = World::new().await.with_ann_talking().await;
    let send_keyed = async |token: &str, body: &Value| {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("idempotency-key", "k1"),
        ];
        let answer = send(&world.server, Method::POST, "/chat", &headers, body.to_string()).await;
        let (status, id) = (answer.status, answer.header("x-conversation-id").to_owned());
        (status, id, answer.text().await)
    };
    let anns = json!({ "message": "The heron has eggs" });
    let first = send_keyed(&world.ann, &anns).await;
    assert_eq!(first.0, 200);
    assert_eq!(send_keyed(&world.ann, &anns).await.1, first.1, "it is the same turn");
    // Neither the same request nor another one learns of it.
    let same = send_keyed(&world.ben, &anns).await;
    assert!(same.0 == 200 && same.1 != first.1 && same.2 != first.2, "{same:?}");
    let other = send_keyed(&world.ben, &json!({ "message": "Weather" })).await;
    assert_eq!(other.0, 409, "Ben used it for another request himself: {other:?}");
    let admins = send_keyed(ADMIN, &json!({ "message": "Weather" })).await;
    assert_eq!(admins.0, 200, "{admins:?}");
    assert_silent(&admins.2, "the administrator's answer");
}
