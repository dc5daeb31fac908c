//! Questions of running tools, answered line by line; one at a time.

mod entry;

use std::{collections::VecDeque, io};

use everturn_wire::{
    Question, QuestionAction, QuestionAnswer, QuestionField, QuestionKind, QuestionOutcome, Value,
};
use serde_json::Map;

use super::view::{Line, Status, View};
use crate::{visible::visible, wording};

/// Maximum length of a displayed name, in characters.
const NAME: usize = 60;

/// What a typed line does.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Shows this, and waits for another line.
    Told(Line),
    /// Sends the answer.
    Send(QuestionAnswer),
}

/// A question, and what was answered of it so far.
struct Dialog {
    question: Question,
    given: Map<String, Value>,
    /// The field that is asked for.
    at: usize,
    is_shown: bool,
    /// Whether the answer was sent.
    is_sent: bool,
}

/// The open questions, in order.
#[derive(Default)]
pub(super) struct Questions(VecDeque<Dialog>);

impl Questions {
    /// Only the last question of a call is open.
    pub(super) fn ask(&mut self, question: Question) {
        if self.0.iter().any(|known| known.question.question_id == question.question_id) {
            return;
        }
        self.forget(&question.tool_call_id);
        self.0.push_back(Dialog { question, given: Map::new(), at: 0, is_shown: false, is_sent: false });
    }

    /// Forgets a question of a call that has its result.
    pub(super) fn forget(&mut self, tool_call_id: &str) {
        self.0.retain(|dialog| dialog.question.tool_call_id != tool_call_id);
    }

    /// Ends a question. Returns what to say about it.
    pub(super) fn settle(&mut self, question_id: &str, outcome: QuestionOutcome) -> Option<String> {
        let at = self.0.iter().position(|dialog| dialog.question.question_id == question_id)?;
        let Dialog { question, is_shown, .. } = self.0.remove(at)?;
        let asker = wording::one_line(&question.asker, NAME);
        let told = match (question.kind, outcome) {
            (QuestionKind::Login, QuestionOutcome::Accepted) => format!("Logged in at {asker}."),
            (_, QuestionOutcome::Accepted) => format!("Answered {asker}."),
            (_, QuestionOutcome::Declined) => format!("Declined to answer {asker}."),
            (_, QuestionOutcome::Cancelled) => format!("The question of {asker} was dismissed."),
            _ => format!("{asker} is no longer waiting for an answer."),
        };
        is_shown.then_some(told)
    }

    /// Shows the first question, if it is not shown yet, and that it waits.
    pub(super) fn show(&mut self, view: &mut dyn View) -> io::Result<()> {
        let Some(first) = self.0.front_mut().filter(|first| !first.is_sent) else { return Ok(()) };
        if !first.is_shown {
            first.is_shown = true;
            view.line(&first.opening())?;
            if let Some(url) = &first.question.url {
                // In one piece, so that it can be copied.
                view.line(&Line::Command { remark: "Page:", command: url.clone() })?;
            }
            view.line(&first.prompt())?;
        }
        view.status(Status::Question)
    }

    /// Whether a typed line is an answer.
    pub(super) fn is_open(&self) -> bool {
        self.0.front().is_some_and(|first| first.is_shown && !first.is_sent)
    }

    /// Takes a typed line; `None` takes what is filled in before, or leaves the field out.
    pub(super) fn line(&mut self, text: Option<&str>) -> Option<Step> {
        let first = self.0.front_mut().filter(|first| first.is_shown && !first.is_sent)?;
        Some(first.line(text))
    }

    /// Declines the question that is shown.
    pub(super) fn decline(&mut self) -> Option<QuestionAnswer> {
        let first = self.0.front_mut().filter(|first| first.is_shown && !first.is_sent)?;
        Some(first.answer(QuestionAction::Decline, None))
    }

    /// The answer was refused: asks from the beginning.
    pub(super) fn refuse(&mut self, why: String, view: &mut dyn View) -> io::Result<()> {
        view.line(&Line::Error(why))?;
        let Some(first) = self.0.front_mut() else { return Ok(()) };
        (first.at, first.is_sent) = (0, false);
        first.given.clear();
        view.line(&first.prompt())
    }

    /// After the connection was lost: an answer without an effect so far may not have arrived.
    pub(super) fn reopen(&mut self) {
        for dialog in &mut self.0 {
            dialog.is_sent = false;
        }
    }
}

impl Dialog {
    fn opening(&self) -> Line {
        let Question { asker, message, .. } = &self.question;
        let details = visible(message).lines().map(str::to_owned).collect();
        Line::Approval { title: format!("{} asks you", wording::one_line(asker, NAME)), details }
    }

    /// What is to be typed next.
    fn prompt(&self) -> Line {
        let Question { asker, kind, fields, url, .. } = &self.question;
        let asker = wording::one_line(asker, NAME);
        Line::Note(match (kind, fields.get(self.at)) {
            (QuestionKind::Form, Some(field)) => entry::prompt(field, self.at + 1, fields.len()),
            (QuestionKind::Form, None) => "y answers yes, /decline declines.".to_owned(),
            (QuestionKind::Url, _) => format!(
                "Open this page of {} yourself if you trust it, then type y. /decline declines.",
                host(url.as_deref().unwrap_or_default())
            ),
            (QuestionKind::Login, _) => format!(
                "Log in on the page of this server, or with `everturn mcp login {asker}`. /decline goes on without."
            ),
            _ => "This terminal is too old to answer it. /decline declines.".to_owned(),
        })
    }

    fn line(&mut self, text: Option<&str>) -> Step {
        let field: Option<&QuestionField> = self.question.fields.get(self.at);
        let is_form = self.question.kind == QuestionKind::Form;
        match (is_form, field) {
            (true, Some(field)) => {
                match entry::value(field, text) {
                    Ok(value) => {
                        let name = field.name.clone();
                        self.given.extend(value.map(|value| (name, value)));
                        self.at += 1;
                    }
                    Err(why) => return Step::Told(Line::Error(why)),
                }
                match self.at < self.question.fields.len() {
                    true => Step::Told(self.prompt()),
                    false => self.accept(),
                }
            }
            _ if self.question.kind == QuestionKind::Login => Step::Told(self.prompt()),
            _ if text.is_some_and(|text| matches!(text.to_ascii_lowercase().as_str(), "y" | "yes")) => {
                self.accept()
            }
            _ => Step::Told(self.prompt()),
        }
    }

    fn accept(&mut self) -> Step {
        let is_form = self.question.kind == QuestionKind::Form;
        let content = is_form.then(|| Value::Object(self.given.clone()));
        Step::Send(self.answer(QuestionAction::Accept, content))
    }

    fn answer(&mut self, action: QuestionAction, content: Option<Value>) -> QuestionAnswer {
        self.is_sent = true;
        let via = Some("terminal".to_owned());
        QuestionAnswer { question_id: self.question.question_id.clone(), action, content, name: None, via }
    }
}

/// The host of a URL, for people to check.
fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = rest[..end].rsplit('@').next().unwrap_or_default();
    wording::one_line(host, NAME)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::view::Plain, *};

    fn shown(question: Value) -> Questions {
        let mut questions = Questions::default();
        questions.ask(serde_json::from_value(question).unwrap());
        let dialog = questions.0.front_mut().unwrap();
        dialog.is_shown = true;
        questions
    }

    fn question(kind: &str, fields: &Value) -> Value {
        json!({
            "questionId": "q", "stepId": "t#0", "toolCallId": "c", "toolName": "a__book", "asker": "a", "kind": kind,
            "message": "Which?", "fields": fields, "url": "https://me@pay.example/x",
        })
    }

    #[test]
    fn fields_are_asked_for_one_after_the_other() {
        let fields = json!([
            { "name": "guests", "kind": "integer", "title": "Guests", "required": true },
            { "name": "tea", "kind": "boolean", "default": true },
            { "name": "note", "kind": "text" },
        ]);
        let mut questions = shown(question("form", &fields));
        let told = |step: Option<Step>| match step {
            Some(Step::Told(Line::Note(text) | Line::Error(text))) => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(told(questions.line(Some("two"))), "Guests must be a whole number.");
        assert!(told(questions.line(None)).starts_with("Guests is required"));
        assert!(told(questions.line(Some("2"))).starts_with("2/3 tea"));
        assert!(told(questions.line(None)).starts_with("3/3 note"));
        let Some(Step::Send(answer)) = questions.line(None) else { panic!("it is sent") };
        assert_eq!(
            (answer.action, answer.content),
            (QuestionAction::Accept, Some(json!({ "guests": 2, "tea": true })))
        );
        assert!(!questions.is_open(), "only one answer is sent");
    }

    #[test]
    fn the_address_of_a_page_is_in_one_piece() {
        let (mut asked, mut err) = (question("url", &json!([])), Vec::new());
        let url = format!("https://pay.example/{}", "x".repeat(3_000));
        asked["url"] = url.clone().into();
        let mut questions = Questions::default();
        questions.ask(serde_json::from_value(asked).unwrap());
        questions.show(&mut Plain::new(Vec::new(), &mut err, false, false)).unwrap();
        assert!(String::from_utf8(err).unwrap().contains(&url));
    }

    #[test]
    fn a_page_and_a_login_are_done_elsewhere() {
        let mut questions = shown(question("url", &json!([])));
        assert!(
            matches!(questions.line(Some("what?")), Some(Step::Told(Line::Note(text))) if text.contains("page of pay.example"))
        );
        assert!(matches!(questions.line(Some("Y")), Some(Step::Send(answer)) if answer.content.is_none()));
        let mut questions = shown(question("login", &json!([])));
        assert!(
            matches!(questions.line(Some("y")), Some(Step::Told(Line::Note(text))) if text.contains("everturn mcp login a"))
        );
        assert_eq!(questions.decline().unwrap().action, QuestionAction::Decline);
        assert_eq!(questions.settle("q", QuestionOutcome::Accepted).as_deref(), Some("Logged in at a."));
    }
}
