use std::time::Duration;

use tokio::time::advance;

use super::{
    super::{Asked, Count, Silence, Wait},
    *,
};

/// A terminal of 40 columns that shows what was drawn.
struct Terminal {
    view: Live<Vec<u8>>,
    screen: vt100::Parser,
}

impl Terminal {
    fn new(has_keys: bool, show_reasoning: bool) -> Self {
        let view = Live::new(Vec::new(), || 40, has_keys, show_reasoning);
        Self { view, screen: vt100::Parser::new(20, 40, 0) }
    }

    /// The rows without blank separators.
    fn shown(&mut self) -> Vec<String> {
        self.screen.process(&mem::take(&mut self.view.out));
        let rows = self.screen.screen().rows(0, 40).map(|row| row.trim_end().to_owned());
        rows.filter(|row| !row.is_empty()).collect()
    }
}

fn retrying(seconds: u64) -> Status {
    let until = Instant::now() + Duration::from_secs(seconds);
    Status::Retrying(Wait {
        count: Count { attempt: 0, of: Some(3), is_shared: false },
        until,
        ends: None,
        of_summary: false,
        of_caller: false,
    })
}

#[tokio::test(start_paused = true)]
async fn a_countdown_is_redrawn_in_its_place() {
    let mut terminal = Terminal::new(false, false);
    terminal.view.line(&Line::Failure("HTTP 529: Overloaded".to_owned())).unwrap();
    terminal.view.status(retrying(2)).unwrap();
    assert_eq!(terminal.shown(), ["! HTTP 529: Overloaded", "Retrying (1/3) in 2s..."]);
    advance(Duration::from_millis(1000)).await;
    terminal.view.refresh().unwrap();
    assert_eq!(terminal.shown(), ["! HTTP 529: Overloaded", "Retrying (1/3) in 1s..."]);
    terminal.view.refresh().unwrap();
    assert!(terminal.view.out.is_empty(), "nothing changed: nothing is drawn");
    terminal.view.text("Hi").unwrap();
    assert_eq!(terminal.shown(), ["! HTTP 529: Overloaded", "Hi"]);
}

#[tokio::test(start_paused = true)]
async fn keys_are_offered_where_they_work_and_a_narrow_line_does_not_wrap() {
    let mut terminal = Terminal::new(true, false);
    terminal.view.status(retrying(9)).unwrap();
    assert_eq!(terminal.shown(), ["Retrying (1/3) in 9s... (esc to cancel,"]);
    assert_eq!(terminal.screen.screen().cursor_position().0, 0);
}

#[tokio::test(start_paused = true)]
async fn the_lines_of_an_answer_begin_at_the_left() {
    let mut terminal = Terminal::new(true, false);
    terminal.view.text("one\ntwo").unwrap();
    terminal.view.text(" and\nthree").unwrap();
    terminal.view.status(Status::Tool("roll".to_owned())).unwrap();
    terminal
        .view
        .line(&Line::Tool { call: "roll".to_owned(), result: "4".to_owned(), is_error: false })
        .unwrap();
    terminal.view.text("four\n").unwrap();
    terminal.view.end().unwrap();
    assert_eq!(terminal.shown(), ["one", "two and", "three", "\u{25cf} roll \u{2192} 4", "four"]);
    assert_eq!(terminal.screen.screen().cursor_position(), (7, 0));
}

#[tokio::test(start_paused = true)]
async fn reasoning_is_a_sign_of_life_or_shown_apart() {
    let mut folded = Terminal::new(true, false);
    folded.view.reasoning("secretly").unwrap();
    assert_eq!(folded.shown(), ["Thinking..."]);
    advance(Duration::from_secs(3)).await;
    folded.view.reasoning(" so").unwrap();
    assert_eq!(folded.shown(), ["Thinking... 3s"]);
    folded.view.text("42").unwrap();
    assert_eq!(folded.shown(), ["42"]);

    let mut shown = Terminal::new(true, true);
    shown.view.reasoning("let me").unwrap();
    shown.view.text("42").unwrap();
    assert_eq!(shown.shown(), ["let me", "42"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_model_says_cannot_steer_the_terminal() {
    let mut terminal = Terminal::new(true, false);
    terminal.view.text("a\u{1b}[2J\u{9b}31m\u{7}b\r\nc").unwrap();
    terminal.view.line(&Line::Error("x\u{1b}]0;title\u{7}".to_owned())).unwrap();
    assert_eq!(terminal.shown(), ["a[2J31mb", "c", "x]0;title"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_stays_on_one_line_so_that_it_can_be_copied() {
    let mut terminal = Terminal::new(true, false);
    let command = "everturn chat --server http://127.0.0.1:4777".to_owned();
    terminal.view.line(&Line::Command { remark: "Continue with:", command }).unwrap();
    let rows = ["Continue with: everturn chat --server ht", "tp://127.0.0.1:4777"];
    assert_eq!(terminal.shown(), rows);
    assert!(terminal.screen.screen().row_wrapped(0), "the terminal broke the row");
}

#[tokio::test(start_paused = true)]
async fn what_is_of_another_kind_stands_apart() {
    let mut terminal = Terminal::new(true, false);
    terminal.view.line(&Line::Note("hello".to_owned())).unwrap();
    terminal.view.begin().unwrap();
    terminal.view.line(&Line::Failure("one".to_owned())).unwrap();
    terminal.view.line(&Line::Failure("two".to_owned())).unwrap();
    terminal.view.status(retrying(9)).unwrap();
    terminal.view.text("an answer\n").unwrap();
    terminal.view.line(&Line::Note("by the way".to_owned())).unwrap();
    terminal.shown();
    let rows: Vec<String> =
        terminal.screen.screen().rows(0, 40).map(|row| row.trim_end().to_owned()).collect();
    assert_eq!(rows[..7], ["hello", "! one", "! two", "", "an answer", "", "by the way"]);
}

#[tokio::test(start_paused = true)]
async fn a_draft_stands_below_and_the_text_goes_on_where_it_was() {
    let mut terminal = Terminal::new(true, false);
    terminal.view.text("one two").unwrap();
    terminal.view.draft("typed", 5).unwrap();
    assert_eq!(terminal.shown(), ["one two", "> typed"]);
    assert_eq!(terminal.screen.screen().cursor_position(), (1, 7));
    terminal.view.text(" three").unwrap();
    assert_eq!(terminal.shown(), ["one two three", "> typed"]);
    terminal.view.status(Status::Stopping).unwrap();
    advance(Duration::from_secs(1)).await;
    terminal.view.draft("typing", 2).unwrap();
    assert_eq!(terminal.shown(), ["one two three", "Stopping...", "> typing"]);
    assert_eq!(terminal.screen.screen().cursor_position(), (2, 4));
    for n in 0..30 {
        terminal.view.text(&format!(" {n} and on to the bottom")).unwrap();
    }
    let shown = terminal.shown();
    assert_eq!(shown.last().unwrap(), "> typing", "{shown:?}");
    assert_eq!(shown.iter().filter(|row| row.starts_with('>')).count(), 1, "{shown:?}");
    terminal.view.draft("", 0).unwrap();
    terminal.view.end().unwrap();
    assert!(terminal.shown().last().unwrap().ends_with("bottom"));
}

#[tokio::test(start_paused = true)]
async fn a_silence_and_a_retry_under_way_say_what_keys_do() {
    let mut terminal = Terminal::new(true, false);
    let silence =
        |may_ask_again| Silence { since: Instant::now(), gives_up: Some("12:03".to_owned()), may_ask_again };
    let at = |terminal: &Terminal| terminal.view.words(Instant::now());
    terminal.view.status(Status::Silent(silence(true))).unwrap();
    advance(Duration::from_secs(40)).await;
    assert_eq!(at(&terminal), "No answer for 40 s (gives up at 12:03); r asks again, esc stops");
    terminal.view.status(Status::Silent(silence(false))).unwrap();
    assert_eq!(at(&terminal), "Nothing new for 0 ms (gives up at 12:03)");
    terminal
        .view
        .status(Status::AskingAgain {
            count: Count { attempt: 0, of: Some(3), is_shared: false },
            of_summary: false,
        })
        .unwrap();
    assert_eq!(at(&terminal), "Asking again (1/3)... (esc to cancel)");
}

#[tokio::test(start_paused = true)]
async fn no_row_of_an_argument_begins_where_ours_do() {
    let mut terminal = Terminal::new(true, false);
    let details =
        vec![format!("note: {} other needs your approval", "x".repeat(29)), "  \u{1b}[2J\ttwo".to_owned()];
    terminal.view.line(&Line::Approval { title: "roll needs your approval".to_owned(), details }).unwrap();
    let expected = [
        "? roll needs your approval",
        "  \u{2502} note: xxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "  \u{2502}  other needs your approval",
        "  \u{2502}   [2J    two",
    ];
    assert_eq!(terminal.shown(), expected);
}

#[tokio::test(start_paused = true)]
async fn keys_answer_after_a_moment_and_while_nothing_is_typed() {
    let mut terminal = Terminal::new(true, false);
    let since = Instant::now();
    let until = Some(since + Duration::from_secs(60));
    terminal.view.status(Status::Approval(Asked { since, until, more: 0 })).unwrap();
    assert_eq!(terminal.shown(), ["Waiting for your answer... (denied in 1"]);
    advance(Duration::from_millis(500)).await;
    terminal.view.refresh().unwrap();
    assert_eq!(terminal.shown(), ["[y] allow  [a] always  [n] deny (denied"]);
    terminal.view.draft("yes", 3).unwrap();
    assert_eq!(terminal.shown(), ["/allow, /allow always or /deny REASON a", "> yes"]);
}
