//! What CopilotKit sends where all calls have one address.

use everturn_dialect::ag_ui::{Envelope, Method};

#[test]
fn a_call_is_named_in_the_body() {
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
fn what_is_no_call_is_refused_in_words() {
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
