//! Requests to CopilotKit's single endpoint.

use everturn_dialect::ag_ui::{Envelope, Method};

#[test]
fn the_method_is_named_in_the_body() {
    let run =
        br#"{"method":"agent/run","params":{"agentId":"default"},"body":{"threadId":"t", "runId":"r"}}"#;
    let Envelope { method, agent_id, thread_id, body } = Envelope::read(run).unwrap();
    assert_eq!((method, agent_id.as_str(), thread_id.as_str()), (Method::Run, "default", ""));
    assert_eq!(body, br#"{"threadId":"t", "runId":"r"}"#);
    let stop = br#"{"method":"agent/stop","params":{"agentId":"a","threadId":"t"},"body":{"runId":"r"}}"#;
    let stop = Envelope::read(stop).unwrap();
    assert_eq!((stop.method, stop.thread_id.as_str()), (Method::Stop, "t"));
    let info = Envelope::read(br#"{"method":"info"}"#).unwrap();
    assert_eq!((info.method, info.agent_id.as_str(), info.body), (Method::Info, "", &b""[..]));
    assert_eq!(Envelope::read(br#"{"method":"agent/connect","more":1}"#).unwrap().method, Method::Connect);
}

#[test]
fn invalid_calls_are_rejected_with_a_reason() {
    let long = format!(r#"{{"method":"{}"}}"#, "x".repeat(9000));
    for (body, why) in [
        (r#"{"method":"transcribe"}"#, "agent/connect or agent/stop"),
        (r#"{"params":{}}"#, "`method`"),
        (r#"{"method":"info","params":{"agentId":1}}"#, "CopilotKit"),
        ("?", "CopilotKit"),
        (&long, "unknown method"),
    ] {
        let found = Envelope::read(body.as_bytes()).unwrap_err();
        assert!(found.contains(why) && found.len() < 2000, "{found}");
    }
}
