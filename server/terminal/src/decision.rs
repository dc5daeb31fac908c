//! Describes in words how a tool call was decided.

use crate::wording;
use everturn_wire::{
    ApprovalScope, Decider, Decision, QuestionKind, QuestionOutcome, SettledQuestion, Verdict,
};

/// Maximum length of a displayed name or rating, and of a reason, in characters.
const NAME: usize = 60;
const REASON: usize = 300;

/// One line about a decision, worded for reading it later.
pub(crate) fn line(decision: &Decision) -> String {
    let Decision { by, verdict, scope, name, via, reason, risk_level, .. } = decision;
    let is_decided = matches!(verdict, Verdict::Allowed | Verdict::Denied);
    match by {
        Decider::Review => {
            let risk = risk_level.as_deref().map(|risk| format!(" ({} risk)", wording::one_line(risk, NAME)));
            // Why a review made no decision is shown with its result, or to the person who was asked.
            let why = because(reason.as_deref().filter(|_| is_decided));
            format!("{}{}{why}", by_review(*verdict), risk.unwrap_or_default())
        }
        Decider::Grant => "Allowed earlier for this conversation".to_owned(),
        Decider::Rule if *verdict == Verdict::Allowed => "Allowed by policy".to_owned(),
        Decider::Rule => "Denied by policy".to_owned(),
        _ => {
            let what =
                if *scope == Some(ApprovalScope::Conversation) { " for this conversation" } else { "" };
            let (name, place) = (by_name(name.as_deref()), place(via.as_deref()));
            format!("{}{name}{what}{place}{}", by_person(*verdict), because(reason.as_deref()))
        }
    }
}

/// One line about a settled question, worded for reading it later.
pub(crate) fn question_line(question: &SettledQuestion) -> String {
    let SettledQuestion { asker, kind, outcome, name, via, .. } = question;
    let asker = wording::one_line(asker, NAME);
    let who = who(name.as_deref(), via.as_deref());
    match (kind, outcome) {
        (QuestionKind::Login, QuestionOutcome::Accepted) => format!("Logged in at {asker}"),
        (_, QuestionOutcome::Accepted) => format!("{asker} asked and was answered{who}"),
        (_, QuestionOutcome::Declined) => format!("{asker} asked, and the answer was declined{who}"),
        (_, QuestionOutcome::Cancelled) => format!("{asker} asked, and the question was dismissed{who}"),
        _ => format!("{asker} asked, and took the question back"),
    }
}

/// Who answered and where, as far as known.
pub(crate) fn who(name: Option<&str>, via: Option<&str>) -> String {
    format!("{}{}", by_name(name), place(via))
}

fn by_name(name: Option<&str>) -> String {
    name.map(|name| format!(" by {}", wording::one_line(name, NAME))).unwrap_or_default()
}

fn place(via: Option<&str>) -> String {
    let via = via.map(|via| match via {
        "http" => "HTTP".to_owned(),
        "websocket" => "WebSocket".to_owned(),
        other => wording::one_line(other, NAME),
    });
    via.map(|via| format!(" ({via})")).unwrap_or_default()
}

fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {}", wording::one_line(reason, REASON))).unwrap_or_default()
}

fn by_person(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allowed => "Allowed",
        Verdict::Denied => "Denied",
        Verdict::TimedOut => "Not answered in time",
        _ => "Not answered",
    }
}

fn by_review(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allowed => "Allowed by review",
        Verdict::Denied => "Denied by review",
        Verdict::TimedOut => "Review took too long",
        _ => "Review failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_decider_has_its_words() {
        let of = Decision::new;
        let said = |text: &str| Some(text.to_owned());
        let ada = Decision {
            scope: Some(ApprovalScope::Conversation),
            name: said("Ada"),
            via: said("page"),
            ..of(Decider::Person, Verdict::Allowed)
        };
        let no = Decision {
            via: said("http"),
            reason: said("not\n\u{1b}[31mnow"),
            ..of(Decider::Person, Verdict::Denied)
        };
        let low = Decision {
            risk_level: said("low"),
            reason: said("it reads"),
            ..of(Decider::Review, Verdict::Allowed)
        };
        let failed = Decision { reason: said("HTTP 500"), ..of(Decider::Review, Verdict::Failed) };
        for (decision, words) in [
            (ada, "Allowed by Ada for this conversation (page)"),
            (no, "Denied (HTTP): not [31mnow"),
            (of(Decider::Person, Verdict::TimedOut), "Not answered in time"),
            (low, "Allowed by review (low risk): it reads"),
            (failed, "Review failed"),
            (of(Decider::Grant, Verdict::Allowed), "Allowed earlier for this conversation"),
            (of(Decider::Rule, Verdict::Denied), "Denied by policy"),
        ] {
            assert_eq!(line(&decision), words);
        }
    }
}
