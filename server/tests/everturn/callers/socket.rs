//! Every command of the WebSocket.

use super::*;

/// A command of each kind about this conversation.
fn commands(id: &str) -> Vec<Value> {
    vec![
        json!({ "type": "chat.subscribe", "conversationId": id }),
        json!({ "type": "chat.queue", "conversationId": id, "text": "hi" }),
        json!({ "type": "chat.queue.cancel", "conversationId": id, "messageId": "heron-1" }),
        json!({ "type": "chat.stop", "conversationId": id }),
        json!({ "type": "chat.retry", "conversationId": id }),
        json!({ "type": "approval.answer", "conversationId": id, "turnId": "t", "stepId": "t#0", "toolCallId": "c",
                "verdict": "allowed" }),
        json!({ "type": "question.answer", "conversationId": id, "questionId": "q", "action": "decline" }),
        json!({ "type": "retry.abort", "conversationId": id }),
        json!({ "type": "retry.now", "conversationId": id }),
        json!({ "type": "retry.set", "conversationId": id, "enabled": false }),
    ]
}

#[tokio::test]
async fn no_command_reaches_another_callers_conversation() {
    let known: std::collections::BTreeSet<_> =
        commands("x").iter().map(|command| command["type"].to_string()).collect();
    // These two need no conversation that exists: one begins it, and one forgets it.
    let all =
        everturn_wire::Command::TYPES.iter().filter(|kind| !["chat.send", "chat.unsubscribe"].contains(kind));
    assert_eq!(all.map(|kind| format!("{kind:?}")).collect::<std::collections::BTreeSet<_>>(), known);
    let world = World::new().await.with_ann_talking().await;
    let before = world.anns().await;
    let mut ben = Socket::open_as(&world.server, "/ws", &world.ben).await;
    let mut said = async |command: &Value, id: &str| {
        ben.say(command).await;
        let mut answer = ben.hear("chat.error").await;
        assert_eq!(answer["conversationId"].take(), *id);
        answer.to_string().replace(id, "ID")
    };
    for (at, command) in commands("nowhere").iter().enumerate() {
        let nothing = said(command, "nowhere").await;
        assert!(nothing.contains("there is no conversation ID"), "{nothing}");
        for id in ["plans", "plans@ann", "plans-2", "plans-2@ann", "nowhere@ann"] {
            assert_eq!(said(&commands(id)[at], id).await, nothing, "{command}");
        }
    }
    ben.say(&json!({ "type": "chat.send", "conversationId": "plans@ann", "message": "hi" })).await;
    assert!(ben.hear("chat.error").await["message"].as_str().unwrap().contains("there is no conversation"));
    ben.say(&json!({ "type": "retry.set", "enabled": false })).await;
    assert!(ben.hear("chat.error").await["message"].as_str().unwrap().contains("only the administrator can"));
    assert_eq!(world.anns().await, before);
}

#[tokio::test]
async fn a_socket_is_told_of_its_callers_conversations_alone() {
    let world = World::new().await;
    let mut ben = Socket::open_as(&world.server, "/ws", &world.ben).await;
    let mut ann = Socket::open_as(&world.server, "/ws", &world.ann).await;
    let mut admin = Socket::open_as(&world.server, "/ws", ADMIN).await;
    ann.say(&json!({ "type": "chat.send", "conversationId": "plans", "message": "heron" })).await;
    let events = ann.events("turn-sealed").await;
    assert!(events.iter().all(|event| event["conversationId"] == "plans"), "{events:?}");
    assert_eq!(ann.hear("conversation.statusChanged").await["conversationId"], "plans");
    assert_eq!(admin.hear("conversation.statusChanged").await["conversationId"], "plans@ann");
    ann.say(&json!({ "type": "retry.set", "conversationId": "plans", "enabled": false })).await;
    ben.say(
        &json!({ "type": "chat.send", "conversationId": "mine", "message": "weather", "extensions": true }),
    )
    .await;
    // The first that Ben is told of is his own.
    assert_eq!(ben.hear("conversation.statusChanged").await["conversationId"], "mine");
    let events = ben.events("turn-sealed").await;
    assert!(events.iter().all(|event| event["conversationId"] == "mine"), "{events:?}");
    ben.say(&json!({ "type": "retry.set", "conversationId": "mine", "enabled": false })).await;
    assert_eq!(ben.hear("retry.settingsChanged").await["conversationId"], "mine");
    // Of calls that pass through, too: Ann's came before his.
    for (token, program) in [(&world.ann, "heron"), (&world.ben, "bens")] {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("user-agent", program),
        ];
        let body = json!({ "model": "sim/model", "messages": [{ "role": "user", "content": "hi" }] });
        let answer =
            send(&world.server, Method::POST, "/v1/chat/completions", &headers, body.to_string()).await;
        assert_eq!(answer.status, 200);
        answer.text().await;
    }
    let mut call = ben.hear("call.changed").await;
    assert_eq!((&call["program"], &call["phase"]), (&json!("bens"), &json!("asking")), "{call}");
    let id = call["id"].take();
    while call["phase"] != "ended" {
        call = ben.hear("call.changed").await;
        assert!(call["id"] == id && call.get("caller").is_none(), "{call}");
    }
}
