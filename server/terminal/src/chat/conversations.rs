//! `/conversations`: lists the conversations of the server, and finds the one to go on with.

use everturn_wire::{ConversationId, ConversationStatus, ConversationSummary, DoneReason};

use crate::{calendar::Calendar, wording};

/// How many conversations are listed, the latest first.
const LISTED: usize = 20;

/// Maximum length of a displayed title, in characters.
const TITLE: usize = 60;

/// The conversations among which a person chooses.
pub(super) struct Conversations {
    /// The latest first.
    pub(super) all: Vec<ConversationSummary>,
    /// Those that were listed last, so that their numbers stay valid.
    pub(super) listed: Vec<ConversationId>,
}

/// What a person named.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    One(ConversationId),
    /// Several have this in their title.
    Several(Vec<ConversationId>),
    /// None has; it may still be the beginning of an id.
    None,
}

impl Conversations {
    /// The conversations with this number in the last list, or with this text in their title, whatever the case.
    pub(super) fn named(&self, asked: &str) -> Named {
        let numbered = asked.parse::<usize>().ok().and_then(|number| self.listed.get(number.checked_sub(1)?));
        if let Some(id) = numbered {
            return Named::One(id.clone());
        }
        let asked = asked.to_lowercase();
        let has_it = |found: &&ConversationSummary| found.title.to_lowercase().contains(&asked);
        let found: Vec<_> = self.all.iter().filter(has_it).map(|found| found.id.clone()).collect();
        match found.as_slice() {
            [] => Named::None,
            [one] => Named::One(one.clone()),
            _ => Named::Several(found),
        }
    }

    /// Numbers the latest of these conversations; `None`: of all. Returns what to show.
    pub(super) fn list(&mut self, only: Option<&[ConversationId]>, current: &ConversationId) -> String {
        let is_meant = |found: &&ConversationSummary| only.is_none_or(|only| only.contains(&found.id));
        let found: Vec<_> = self.all.iter().filter(is_meant).collect();
        self.listed = found.iter().take(LISTED).map(|found| found.id.clone()).collect();
        if found.is_empty() {
            return "No conversations yet.".to_owned();
        }
        let calendar = Calendar::of_process();
        let row = |(place, found): (usize, &&ConversationSummary)| {
            let mark = if found.id == *current { '\u{25cf}' } else { ' ' };
            let title = wording::one_line(&found.title, TITLE);
            let when = calendar.brief(found.last_activity_at);
            format!("{mark} {:>2}  {when}  {title}{}", place + 1, state(found))
        };
        let mut rows: Vec<String> = found.iter().take(LISTED).enumerate().map(row).collect();
        if found.len() > LISTED {
            rows.push(format!("      and {} older", found.len() - LISTED));
        }
        format!("{}\n/conversations NUMBER continues one; part of its title is enough.", rows.join("\n"))
    }
}

/// What its turn does, if there is something to say.
fn state(found: &ConversationSummary) -> String {
    let calendar = Calendar::of_process();
    match found.status {
        ConversationStatus::Active => match found.waits_until {
            Some(at) => format!("  (waits until {})", calendar.exact(at)),
            None => "  (running)".to_owned(),
        },
        ConversationStatus::Queued => "  (needs you)".to_owned(),
        _ if found.end_reason == Some(DoneReason::Error) => "  (failed)".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use everturn_wire::DEFAULT_WORKSPACE;

    use super::*;

    fn conversations(titles: &[&str]) -> Conversations {
        let summary = |(place, title): (usize, &&str)| ConversationSummary {
            id: ConversationId::from(format!("c{place}")),
            created_at: 0,
            last_activity_at: 0,
            title: (*title).to_owned(),
            status: ConversationStatus::Idle,
            workspace_id: DEFAULT_WORKSPACE.to_owned(),
            model: None,
            waits_until: None,
            end_reason: None,
            passage: None,
        };
        Conversations { all: titles.iter().enumerate().map(summary).collect(), listed: Vec::new() }
    }

    #[test]
    fn a_number_is_that_of_the_last_list_and_text_is_looked_for_in_titles() {
        let mut all = conversations(&["Plan my week", "Fix the plan", "7 wonders"]);
        let (one, none) = (|id: &str| Named::One(id.into()), || Named::None);
        assert_eq!(all.named("2"), none(), "nothing was listed yet");
        assert!(all.list(None, &"c1".into()).starts_with("   1  "));
        all.all.rotate_left(1);
        for (asked, expected) in [
            ("2", one("c1")),
            ("0", none()),
            ("9", none()),
            ("7", one("c2")),
            ("MY week", one("c0")),
            ("plan", Named::Several(vec!["c1".into(), "c0".into()])),
        ] {
            assert_eq!(all.named(asked), expected, "{asked}");
        }
        let listed = all.list(Some(&["c0".into()]), &"c0".into());
        assert!(listed.starts_with("\u{25cf}  1  ") && !listed.contains("wonders"), "{listed}");
        assert_eq!(all.named("1"), one("c0"));
        assert_eq!(conversations(&[]).list(None, &"c".into()), "No conversations yet.");
    }
}
