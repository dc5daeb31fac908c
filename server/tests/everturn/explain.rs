//! `everturn explain` with piped input.

use std::{env, path::Path, process::Stdio};

use everturn_wire::Category;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, process::Command, time::timeout};

use crate::home::{DEADLINE, Home, stderr, stdout};

/// Returns the exit code, standard output and standard error for this input.
async fn explain(home: &Home, words: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut command = home.command(&[&["explain"], words].concat());
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // A program that rejects its arguments does not read.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes()).await;
    let output =
        timeout(DEADLINE, child.wait_with_output()).await.expect("the process ends in time").unwrap();
    (output.status.code(), stdout(&output), stderr(&output))
}

async fn explained(home: &Home, words: &[&str], input: &str) -> Value {
    let (code, out, error) = explain(home, &[words, &["--json"]].concat(), input).await;
    let said: Value = serde_json::from_str(&out).unwrap();
    let expected = i32::from(said["verdict"] == "unrecognised");
    assert_eq!((code, error.as_str()), (Some(expected), ""), "{words:?}");
    said
}

#[tokio::test]
async fn the_documented_output_is_current() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/explain.md");
    let document = std::fs::read_to_string(document).unwrap();
    let (_, block) = document.split_once("```text\n$ curl -s -i ").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let (_, said) = block.split_once('\n').unwrap();
    let response = "HTTP/1.1 529 \r\nretry-after: 8\r\ncontent-type: application/json\r\n\r\n\
                    {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}";
    let (code, out, error) = explain(&Home::empty(), &[], response).await;
    assert_eq!((code, out.as_str(), error.as_str()), (Some(0), said, ""));
}

#[tokio::test]
async fn every_form_of_input_is_the_same_failure() {
    let body = r#"{"error":{"type":"rate_limit_exceeded","message":"Later"}}"#;
    let response = format!("HTTP/2 429 \r\nretry-after: 20\r\n\r\n{body}");
    let talk = format!("* Connected\n> POST / HTTP/1.1\n< HTTP/1.1 429 x\n< retry-after: 20\n< \n{body}");
    let home = Home::empty();
    for (words, input) in [
        (&["--status", "429", "--header", "Retry-After: 20"][..], body),
        (&[], response.as_str()),
        (&[], talk.as_str()),
    ] {
        let said = explained(&home, words, input).await;
        assert_eq!(said["failure"]["category"], json!(Category::RateLimited), "{input}");
        assert_eq!(said["failure"]["hintMs"], 20_000);
        assert_eq!(said["because"], json!(["the body's error.type is `rate_limit_exceeded`"]));
        assert_eq!(said["retry"]["waitsMs"][0], 20_000);
        assert_eq!(said["retry"]["waitsMs"].as_array().unwrap().len(), 21);
    }
    let refused = explained(&home, &[], "tcp connect error: Connection refused (os error 111)").await;
    assert_eq!(refused["readAs"], "a failed connection, 52 bytes of text");
    assert_eq!(refused["failure"]["category"], json!(Category::Network));
    let silent = explained(&home, &["--transport", "idle-timeout"], "").await;
    assert_eq!(silent["failure"]["category"], json!(Category::Timeout));
    let dated = [
        "--status",
        "429",
        "-H",
        "retry-after: Tue, 01 Sep 2026 00:00:12 GMT",
        "--now",
        "2026-09-01T00:00:00Z",
    ];
    assert_eq!(explained(&home, &dated, "").await["failure"]["hintMs"], 12_000);
}

#[tokio::test]
async fn messages_of_another_client_are_shown() {
    let home = Home::empty();
    let traceback = "Traceback (most recent call last):\n  File \"agent.py\", line 429, in <module>\n\
        openai.BadRequestError: Error code: 400 - {'error': {'message': 'Too long.', 'code': 'context_length_exceeded'}}\n";
    let logged = r#"HTTP 529: {"error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let quoting =
        r#"litellm.RateLimitError: AException - {"error":{"type":"rate_limit_error","message":"x"}}"#;
    let stream = "data: {\"delta\":\"a\"}\n\nevent: error\ndata: {\"error\":{\"type\":\"overloaded_error\",\"message\":\
        \"Overloaded\"}}\n\ndata: [DONE]\n";
    for (input, read_as, category, message) in [
        (
            traceback,
            "a client's error message about a response with status 400, ",
            Category::ContextOverflow,
            "HTTP 400: {'error': {'message': 'Too long.', 'code': 'context_length_exceeded'}}",
        ),
        (logged, "a client's error message about a response with status 529, ", Category::Overloaded, logged),
        (quoting, "a client's error message, ", Category::RateLimited, quoting),
        (
            stream,
            "an event inside a stream without a status, 60 bytes",
            Category::Overloaded,
            r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        ),
    ] {
        let said = explained(&home, &[], input).await;
        assert!(said["readAs"].as_str().unwrap().starts_with(read_as), "{said}");
        assert_eq!(
            (&said["failure"]["category"], &said["failure"]["message"]),
            (&json!(category), &json!(message))
        );
    }
    let asked = explained(&home, &["--stage", "transport"], logged).await;
    assert_eq!(asked["readAs"], format!("a failed connection, {} bytes of text", logged.len()));
}

/// What people paste: the category, the requested wait and the beginning of the advice.
const PASTED: &[(&str, Category, Option<u64>, &str)] = &[
    (
        "stream disconnected before completion: Rate limit reached for gpt-5 in organization org-x on tokens per min (TPM): \
         Limit 30000, Used 28000, Requested 6000. Please try again in 11.054s. Visit https://platform.openai.com to learn more.",
        Category::RateLimited,
        Some(11_054),
        "The provider limits the request rate",
    ),
    (
        "\u{26a0} stream error: stream disconnected before completion: Rate limit reached. Please try again in 7s; retrying 1/5 in 200ms\u{2026}",
        Category::RateLimited,
        Some(7_000),
        "The provider limits",
    ),
    (
        "Traceback (most recent call last):\n  File \"a.py\", line 9, in <module>\n    client.invoke_model()\n\
         botocore.errorfactory.ThrottlingException: An error occurred (ThrottlingException) when calling the InvokeModel \
         operation (reached max retries: 4): Too many requests, please wait before trying again.\n",
        Category::RateLimited,
        None,
        "The provider limits",
    ),
    (
        "botocore.exceptions.EventStreamError: An error occurred (modelStreamErrorException) when calling the ConverseStream \
         operation: Model produced invalid sequence as part of ToolUse. Please refer to the model tool use troubleshooting guide.",
        Category::ServerError,
        None,
        "The provider failed",
    ),
    ("usage limit reached|1788226200", Category::QuotaExhausted, Some(5_400_000), "The plan's usage limit"),
    (
        "Claude AI usage limit reached|1788226200",
        Category::QuotaExhausted,
        Some(5_400_000),
        "The plan's usage limit",
    ),
    (
        "> write the tests\n\n  \u{23bf} You've hit your limit \u{b7} resets 3pm (America/New_York)\n     /upgrade to increase your usage limit.\n",
        Category::QuotaExhausted,
        Some(68_400_000),
        "The plan's usage limit",
    ),
    (
        "  \u{23bf} API Error (529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}) \
         \u{b7} Retrying in 1 seconds\u{2026} (attempt 1/10)",
        Category::Overloaded,
        None,
        "The provider is out of capacity",
    ),
    (
        "openai.RateLimitError: Error code: 429 - {'error': {'message': 'You exceeded your current quota', 'code': 'insufficient_quota'}}\n\
         \nDuring handling of the above exception, another exception occurred:\n\nRuntimeError: the agent stopped\n",
        Category::QuotaExhausted,
        None,
        "Add credit",
    ),
    (
        "error: unexpected status 401 Unauthorized: invalid_api_key\nerror: exceeded retry limit, last status: 429 Too Many Requests",
        Category::Auth,
        None,
        "Check the API key",
    ),
    (
        "unexpected status 403 Forbidden: <!DOCTYPE html><html><head><title>Just a moment...</title></head>\n<body>Enable JavaScript \
         and cookies to continue</body></html>",
        Category::Permission,
        None,
        "Access is blocked for this client",
    ),
    (
        "Just a moment...\nEnable JavaScript and cookies to continue\n",
        Category::Permission,
        None,
        "Access is blocked",
    ),
    (
        "requests.exceptions.SSLError: certificate is not valid for 'api.test'",
        Category::Network,
        None,
        "Check the base URL",
    ),
    (
        "stream disconnected before completion: error sending request for url (http://h:429/)",
        Category::Network,
        None,
        "Check the network",
    ),
];

#[tokio::test]
async fn the_cause_is_found_in_what_people_paste() {
    let home = Home::empty();
    for (input, category, hint_ms, advice) in PASTED {
        let said = explained(&home, &["--now", "2026-09-01T00:00:00Z"], input).await;
        let failure = &said["failure"];
        assert_eq!(
            (&failure["category"], failure["hintMs"].as_u64()),
            (&json!(category), *hint_ms),
            "{said}"
        );
        assert!(failure["advice"].as_str().unwrap().starts_with(advice), "{said}");
    }
}

#[tokio::test]
async fn a_success_is_not_called_a_failure() {
    let home = Home::empty();
    let answer = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\
                  data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n";
    let python = "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n\
                  TypeError: unsupported operand type(s) for +: 'int' and 'str'\n";
    let value = "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n\
                 ValueError: too many values to unpack (expected 2)\n";
    for (input, verdict, words) in [
        (value, "unrecognised", "not recognised as a provider failure"),
        ("banana", "unrecognised", "not recognised as a provider failure"),
        (python, "unrecognised", "not recognised as a provider failure"),
        ("{\"a\":1}", "unrecognised", "Paste the output"),
        (answer, "success", "This is not a failure"),
    ] {
        assert_eq!(explained(&home, &[], input).await["verdict"], verdict, "{input}");
        let (code, out, _) = explain(&home, &[], input).await;
        let expected = i32::from(verdict == "unrecognised");
        assert!(code == Some(expected) && out.contains(words) && !out.contains("retried"), "{out}");
    }
    let refused = explained(&home, &[], "TypeError: fetch failed: ECONNREFUSED, connection refused").await;
    assert_eq!(refused["failure"]["category"], json!(Category::Network));
    let (cut, _) = answer.split_once("data: [DONE]").unwrap();
    let (cut, _) = cut.split_once("\n\n").unwrap();
    assert_eq!(explained(&home, &[], cut).await["failure"]["category"], json!(Category::InvalidResponse));
}

#[tokio::test]
async fn keys_are_not_repeated() {
    let home = Home::empty();
    for (words, input) in [
        (&["--status", "401"][..], "no sk-Zq7RkT0vWm3Xn, AIzaZq7RkT0vWm3Xn or Bearer Zq7RkT0vWm3Xn"),
        (
            &["--status", "500"],
            "{\"error\":{\"code\":\"sk-Zq7RkT0vWm3Xn\",\"message\":\"x-api-key: Zq7RkT0vWm3Xn\"}}",
        ),
        (
            &["--status", "500", "-H", "x-error-code: sk-Zq7RkT0vWm3Xn"],
            "https://me:Zq7RkT0vWm3Xn@host/?key=Zq7RkT0vWm3Xn",
        ),
        (&["--status", "429", "-H", "authorization Zq7RkT0vWm3Xn sk-Zq7RkT0vWm3Xn"], ""),
        (&[], "HTTP/1.1 500 x\nsk-Zq7RkT0vWm3Xn\n\n"),
        (&[], "sk-Zq7RkT0vWm3Xn"),
    ] {
        let (_, out, error) = explain(&home, words, input).await;
        assert!(!out.contains("sk-Zq7R") && !out.contains("Bearer Zq7R") && !out.contains("Wm3Xn@"), "{out}");
        assert!(!out.contains("AIzaZ") && !out.contains("key=Zq") && !out.contains("key: Zq"), "{out}");
        assert!(!error.contains("sk-Zq7R"), "{error}");
    }
}

#[tokio::test]
async fn the_configured_schedule_is_the_explained_one() {
    let home = Home::with(
        "[retry]\nschedule = \"exponential\"\nbase_ms = 1000\nmax_retries = 3\njitter = 0.0\nmax_wait_ms = 6000\n",
    );
    let (_, out, _) = explain(&home, &["--status", "503"], "").await;
    assert!(out.contains("\nwaits     1 s, 2 s, if it keeps failing like this\n"), "{out}");
    assert!(
        out.contains("\ntotal     2 retries over 3 s, by the exponential schedule and a budget of 6 s\n"),
        "{out}"
    );
    let (_, out, _) = explain(&home, &["--status", "503", "-H", "retry-after: 7"], "").await;
    let expected = "\nretried   no: the next attempt would be in 7 s, the budget leaves 6 s\n";
    assert!(out.contains(expected), "{out}");
    let spread = Home::with("[retry]\nschedule = \"exponential\"\njitter = 0.25\n");
    let (_, out, _) = explain(&spread, &["--status", "503"], "").await;
    assert!(out.contains(", by the exponential schedule, each wait ±25 % and a budget of "), "{out}");
    let used_up = r#"{"error":{"type":"usage_limit_reached","resets_in_seconds":183600}}"#;
    let (_, out, _) = explain(&home, &["--status", "429"], used_up).await;
    let expected = "\nretried   no: the next attempt would be in 2 d 3 h, the budget leaves 6 s\n";
    assert!(out.contains(expected), "{out}");
    let (_, out, _) = explain(&home, &["--status", "401"], "").await;
    assert!(out.contains("\nretried   no: the same request would fail again\n"), "{out}");
    assert!(!out.contains("\nwaits "), "{out}");
}

#[tokio::test]
async fn a_route_is_simulated_over_its_targets() {
    // Its keys may be missing.
    let provider = |name: &str, keys: &str| {
        format!(
            "[[provider]]\nname = \"{name}\"\nbase_url = \"http://127.0.0.1:1\"\napi_key_env = {keys}\nmodels = [\"m\"]\n"
        )
    };
    let [a, b] = [provider("a", "[\"A_ONE\", \"A_TWO\"]"), provider("b", "\"B_KEY\"")];
    let home = Home::with(&format!(
        "{a}{b}[[route]]\nname = \"quick\"\ntargets = [\"a/m\", \"b/m\"]\nschedule = \"interactive\"\nmax_retries = 4\n\
         [[route]]\nname = \"usual\"\ntargets = [\"b/m\"]\n"
    ));
    let limited = ["--status", "429", "-H", "retry-after: 20", "--route"];
    let (_, out, _) = explain(&home, &[&limited[..], &["quick"]].concat(), "").await;
    assert!(out.contains("\nretried   yes, at once, on a#2/m\n"), "{out}");
    let asks = "\nasks      a/m, a#2/m at once, b/m at once, b/m after 20 s, a/m at once, if all of them fail like this\n";
    assert!(out.contains(asks), "{out}");
    let total =
        "\ntotal     4 retries over 20 s, by the interactive schedule of the route and a budget of 8 h\n";
    assert!(out.contains(total), "{out}");
    let said = explained(&home, &[&limited[..], &["route/quick"]].concat(), "").await;
    assert_eq!(said["retry"]["targets"], json!(["a#2/m", "b/m", "b/m", "a/m"]));
    assert_eq!(said["retry"]["waitsMs"], json!([0, 0, 20_000, 0]));
    let said = explained(&home, &[&limited[..], &["usual"]].concat(), "").await;
    assert_eq!(
        (&said["retry"]["waitsMs"][0], &said["retry"]["firstTarget"]),
        (&json!(20_000), &json!("b/m"))
    );
    let (_, out, _) = explain(&home, &["--status", "400", "--route", "quick"], "").await;
    assert!(out.contains("\nretried   no: the same request would fail again\n"), "{out}");
    let (code, _, error) = explain(&home, &["--status", "400", "--route", "slow"], "").await;
    assert!(code != Some(0) && error.contains("no route \"slow\"; known routes: quick, usual"), "{error}");
}

#[tokio::test]
async fn json_lines_are_answered_line_by_line() {
    let home = Home::empty();
    let lines = concat!(
        r#"{"id":"a","stage":"http","status":529,"headers":{},"body":"{}","category":"x"}"#,
        "\n",
        r#"{"id":"b","now":"2026-09-01T00:00:00Z","headers":{"retry-after":"Tue, 01 Sep 2026 00:00:12 GMT"},"body":""}"#,
        "\n",
        r#"{"id":"c","stage":"transport","status":null,"headers":{},"body":"dns error"}"#,
        "\n",
    );
    let (code, out, _) = explain(&home, &["--jsonl"], lines).await;
    let said: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((code, said.len()), (Some(0), 3));
    assert_eq!(
        said[0],
        json!({ "id": "a", "category": "overloaded", "retryable": true, "retry_after_ms": null })
    );
    assert_eq!(said[1]["retry_after_ms"], 12_000);
    assert_eq!(said[2]["category"], "network");
    let (code, out, error) = explain(&home, &["--jsonl"], &format!("{lines}{{}}\n")).await;
    assert_eq!((code, out.lines().count()), (Some(1), 3));
    assert!(error.contains("line 4") && error.contains("missing field `id`"), "{error}");
}

#[tokio::test]
async fn input_that_cannot_be_explained_gets_advice() {
    let home = Home::empty();
    for (words, input, expected) in [
        (&[][..], "", "there is nothing to explain"),
        (&["--status", "42"], "", "100..=599"),
        (&["--status", "429", "--header", "retry-after 8"], "", "has no colon"),
        (&["--status", "429"], "HTTP/1.1 500 x\n\n", "remove --status and --transport"),
        (&["--stage", "transport", "--status", "429"], "x", "the input has a response"),
        (&[], "HTTP/1.1 429 x\nno header\n\n", "\"no header\" is not a header"),
        (&["--transport", "smoke"], "", "idle-timeout"),
    ] {
        let (code, out, error) = explain(&home, words, input).await;
        assert!(code != Some(0) && out.is_empty(), "{words:?}: {out}");
        assert!(error.contains(expected), "{words:?}: {error}");
    }
}

#[tokio::test]
async fn a_closed_reader_is_not_a_failure() {
    let line = format!("{} explain --status 429 </dev/null | true", env!("CARGO_BIN_EXE_everturn"));
    let mut command = Command::new("sh");
    command.args(["-c", &line]).env_clear().envs(Home::empty().variables());
    let output = timeout(DEADLINE, command.output()).await.expect("the process ends in time").unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}
