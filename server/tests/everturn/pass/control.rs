//! Calls as people see and control them, repeated requests, and restarts.

use super::*;

const BODY: &str = r#"{"model":"claude-a","messages":[],"max_tokens":5}"#;
const SESSION: (&str, &str) = ("x-claude-code-session-id", "s1");

fn answer() -> Reply {
    Reply::json(200, &json!({ "content": "secret words" }))
}

fn is_waiting(calls: &[Value]) -> bool {
    calls.first().is_some_and(|call| call["phase"] == "waiting")
}

async fn retry_now(server: &Server, call: &Value) -> u16 {
    let id = call["id"].as_str().unwrap();
    post(server, &format!("/calls/{id}/retry-now"), &Value::Null).await.status
}

#[tokio::test]
async fn a_repeated_request_joins_its_call_and_both_get_the_answer() {
    let provider = Loopback::start([fault::overloaded(), answer()]).await;
    let server = messages_server(&provider, LONG).await;
    let control = async {
        let calls = calls_until(&server, is_waiting).await;
        assert_eq!(
            (calls.len(), &calls[0]["retries"], &calls[0]["category"]),
            (1, &json!(1), &json!("overloaded"))
        );
        assert_eq!((&calls[0]["target"], &calls[0]["listeners"]), (&json!("sim/claude-a"), &json!(1)));
        assert!(calls[0].get("shared").is_none(), "its wait is its own: {calls:?}");
        let other = async {
            let second = ask(&server, "/v1/messages", &[SESSION], BODY).await;
            assert_eq!(second.json().await["content"], "secret words");
        };
        let go = async {
            calls_until(&server, |calls| calls[0]["listeners"] == 2).await;
            assert_eq!(retry_now(&server, &calls[0]).await, 200);
        };
        join!(other, go);
    };
    let first = async {
        let first = ask(&server, "/v1/messages", &[SESSION], BODY).await;
        assert_eq!(first.json().await["content"], "secret words");
    };
    join!(first, control);
    assert_eq!(provider.counts().requests, 2);
    calls_until(&server, <[Value]>::is_empty).await;
}

#[tokio::test]
async fn nobody_gets_the_answer_of_another_credential_or_session() {
    let provider =
        Loopback::with(|request| if request.index == 0 { fault::overloaded() } else { answer() }).await;
    let server = messages_server(&provider, LONG).await;
    let waiting = ask(&server, "/v1/messages", &[SESSION], BODY);
    let others = async {
        let calls = calls_until(&server, is_waiting).await;
        let other_session = ask(&server, "/v1/messages", &[("x-claude-code-session-id", "s2")], BODY).await;
        assert_eq!(other_session.status, 200);
        let headers = [SESSION, ("authorization", "Bearer another")];
        assert_eq!(ask(&server, "/v1/messages", &headers, BODY).await.status, 200);
        let body = BODY.replace('5', "6");
        assert_eq!(ask(&server, "/v1/messages", &[SESSION], &body).await.status, 200);
        assert_eq!(provider.counts().requests, 4, "each made a request of its own");
        assert_eq!(retry_now(&server, &calls[0]).await, 200);
    };
    let (response, ()) = join!(waiting, others);
    assert_eq!(response.status, 200);
}

#[tokio::test]
async fn an_answer_that_nobody_took_is_there_for_the_repeated_request() {
    let gate = everturn_sim::Gate::new();
    let provider =
        Loopback::start([answer().hold(&gate), Reply::json(200, &json!({ "content": "another" }))]).await;
    let server = messages_server(&provider, SHORT).await;
    tokio::select! {
        _ = ask(&server, "/v1/messages", &[SESSION], BODY) => panic!("it is not answered"),
        () = provider.arrived(1) => {}
    }
    calls_until(&server, |calls| calls.first().is_some_and(|call| call["listeners"] == 0)).await;
    gate.open();
    calls_until(&server, |calls| calls.first().is_some_and(|call| call["phase"] == "kept")).await;
    let repeated = ask(&server, "/v1/messages", &[SESSION], BODY).await;
    assert_eq!(repeated.json().await["content"], "secret words");
    assert_eq!(provider.counts().requests, 1);
    let again = ask(&server, "/v1/messages", &[SESSION], BODY).await;
    assert_eq!(again.json().await["content"], "another", "it is kept for one repetition");
}

#[tokio::test]
async fn a_call_that_is_given_up_ends_with_the_last_refusal() {
    let provider = Loopback::start([fault::overloaded()]).await;
    let server = messages_server(&provider, LONG).await;
    let waiting = ask(&server, "/v1/messages", &[SESSION], BODY);
    let control = async {
        let calls = calls_until(&server, is_waiting).await;
        let id = calls[0]["id"].as_str().unwrap();
        assert_eq!(post(&server, &format!("/calls/{id}/give-up"), &Value::Null).await.status, 200);
        assert_eq!(post(&server, "/calls/call-unknown/give-up", &Value::Null).await.status, 404);
    };
    let (response, ()) = join!(waiting, control);
    assert_eq!(response.status, 529);
    assert_eq!(response.text().await.as_bytes(), fault::overloaded().body_bytes());
}

#[tokio::test]
async fn a_terminal_lists_retries_and_gives_up_calls() {
    let provider = Loopback::start([fault::overloaded(), fault::overloaded()]).await;
    let home = messages_home(&provider, LONG, "");
    let server = home.serve().await;
    let run =
        async |words: &[&str]| home.run(&[&["calls"], words, &["--server", &server.url]].concat()).await;
    let control = async {
        let calls = calls_until(&server, is_waiting).await;
        let id = calls[0]["id"].as_str().unwrap();
        let id = &id[id.len() - 6..];
        let list = stdout(&run(&[]).await);
        assert!(list.lines().nth(1).is_some_and(|line| line.starts_with(id)), "{list}");
        let retried = run(&["retry", id]).await;
        assert_eq!(stdout(&retried), format!("{id} of ? is tried again.\n"), "{}", stderr(&retried));
        calls_until(&server, |calls| is_waiting(calls) && calls[0]["retries"] == 2).await;
        let unknown = run(&["give-up", "zzz"]).await;
        assert!(!unknown.status.success() && stderr(&unknown).contains("no call's id ends with"));
        let given_up = run(&["give-up"]).await;
        assert_eq!(stdout(&given_up), format!("{id} of ? is given up.\n"), "{}", stderr(&given_up));
    };
    let (response, ()) = join!(ask(&server, "/v1/messages", &[SESSION], BODY), control);
    assert_eq!((response.status, provider.counts().requests), (529, 2));
}

#[tokio::test]
async fn after_a_crash_the_repeated_request_finds_its_wait_where_it_was() {
    let provider = Loopback::start([fault::overloaded(), fault::overloaded(), answer()]).await;
    let home = messages_home(&provider, LONG, "");
    let mut server = home.serve().await;
    let headers = [("content-type", "application/json"), ("x-api-key", "sk-callers-abcdefgh"), SESSION];
    let (gone, calls) =
        join!(try_send(&server, Method::POST, "/v1/messages", &headers, BODY.to_owned()), async {
            let calls = calls_until(&server, is_waiting).await;
            assert_eq!(retry_now(&server, &calls[0]).await, 200);
            let calls = calls_until(&server, |calls| is_waiting(calls) && calls[0]["retries"] == 2).await;
            let id = server.child.id().unwrap().to_string();
            tokio::process::Command::new("kill").args(["-KILL", &id]).status().await.unwrap();
            calls
        });
    assert!(gone.is_none());
    server.child.wait().await.unwrap();
    let server = home.serve().await;
    // Some clients repeat a request with its members in another order.
    let repeated = r#"{"messages":[],"max_tokens":5,"model":"claude-a"}"#;
    let (response, again) = join!(ask(&server, "/v1/messages", &[SESSION], repeated), async {
        let again = calls_until(&server, is_waiting).await;
        assert_eq!(retry_now(&server, &again[0]).await, 200);
        again
    });
    for field in ["nextAt", "retries"] {
        assert_eq!(again[0][field], calls[0][field], "{field}");
    }
    let waited = |calls: &[Value]| calls[0]["waitedMs"].as_u64().unwrap();
    assert!(waited(&again) >= waited(&calls), "the time of the process before it counts");
    assert!(waited(&again) < 45_000, "the rest of the wait does not count yet");
    assert_eq!(response.json().await["content"], "secret words");
    assert_eq!(provider.counts().requests, 3);
    let database = std::fs::read(home.journal()).unwrap();
    let wal = std::fs::read(home.journal().with_extension("db-wal")).unwrap_or_default();
    for secret in ["sk-callers-abcdefgh", "sk-own-12345678", "secret words"] {
        let is_in = |bytes: &[u8]| bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!is_in(&database) && !is_in(&wal), "{secret}");
    }
}
