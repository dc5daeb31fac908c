//! Markdown on a real terminal, as it streams in.

use everturn_sim::{Gate, Loopback, chat};

use crate::{
    home::{Home, SHORT, stdout},
    terminal::Terminal,
};

const ANSWER: [&str; 9] = [
    "# Ti",
    "tle\n\nSome **bo",
    "ld** and `co",
    "de`.\n\n- one\n- two\n\n``",
    "`sh\nls *\n```\n",
    "|a|b|\n|-|-|\n|12|",
    "3|\n\n[page](htt",
    "p://a/b) ",
    "2 * 3",
];

const SHOWN: &str = "Title\n\nSome bold and code.\n\n\u{2022} one\n\u{2022} two\n\n```sh\nls *\n```\na   b\n\u{2500}\u{2500}  \u{2500}\n12  3\n\n\
                     page (http://a/b) 2 * 3";

#[tokio::test]
async fn an_answer_is_rendered_in_a_terminal() {
    let provider = Loopback::start([chat::text(ANSWER).reply()]).await;
    let home = Home::with_provider(&provider, SHORT);
    let mut terminal = Terminal::new(&home, &["chat", "hi"]);
    assert_eq!(terminal.end().await.code(), Some(0));
    assert_eq!(terminal.shown(), SHOWN);
    assert!(terminal.cell("Title").bold() && terminal.cell("bold").bold() && !terminal.cell("Some").bold());
    assert!(terminal.cell("page").underline() && terminal.has_color());
}

#[tokio::test]
async fn without_colours_it_is_rendered_and_raw_it_is_not() {
    let provider = Loopback::start([chat::text(ANSWER).reply()]).await;
    let home = Home::with_provider(&provider, SHORT);
    let script = format!("NO_COLOR=1 {} chat hi", env!("CARGO_BIN_EXE_everturn"));
    let mut terminal = Terminal::running(&home, "sh", &["-c", &script]);
    assert_eq!(terminal.end().await.code(), Some(0));
    assert_eq!(terminal.shown(), SHOWN);
    assert!(terminal.cell("bold").bold() && !terminal.has_color());
    let mut terminal = Terminal::new(&home, &["chat", "--raw", "hi"]);
    assert_eq!(terminal.end().await.code(), Some(0));
    assert_eq!(terminal.shown(), ANSWER.concat());
    assert_eq!(stdout(&home.run(&["chat", "hi"]).await), ANSWER.concat() + "\n");
}

#[tokio::test]
async fn what_is_clear_is_shown_as_it_comes() {
    let gate = Gate::new();
    let answer = ["Some **bold** and **mo", "re** is there."];
    let provider = Loopback::start([chat::text(answer).reply().stall_before(2, &gate)]).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, SHORT), &["chat", "hi"]);
    // The rest of the line has not arrived.
    terminal.until("Some bold and").await;
    gate.open();
    assert_eq!(terminal.end().await.code(), Some(0));
    assert_eq!(terminal.shown(), "Some bold and more is there.");
}
