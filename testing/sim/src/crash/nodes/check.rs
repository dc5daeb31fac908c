//! The invariants, checked on the final state of a world of several nodes.

use everturn_wire::{AgentEvent, Category, EventBody};

use super::{
    super::check::{Came, check_conversation, check_messages, nothing_is_left},
    world::World,
};

impl World {
    /// Checks the final state, and returns that of each conversation.
    pub(super) fn check(&self) -> Vec<Came> {
        let book = &self.ledger.book;
        nothing_is_left(self.log.journal(), book);
        let mut all = Vec::new();
        for (id, _) in self.conversations() {
            let Some((came, events)) = check_conversation(self.log.journal(), book, &self.watchers, &id)
            else {
                book.wrong(format!("{id}: it cannot be read"));
                continue;
            };
            for event in events.iter().filter(|event| is_internal(event)) {
                book.wrong(format!("{id}: {:?}", event.body));
            }
            all.push(came);
        }
        check_messages(book, self.conversations().flat_map(|(_, prompts)| prompts), &all);
        self.ledger.check();
        all
    }
}

/// Whether something broke. A turn is given up if too many faults hit one of its steps.
fn is_internal(event: &AgentEvent) -> bool {
    matches!(&event.body, EventBody::Error(report)
        if report.category == Some(Category::Internal) && !report.message.starts_with("the process ended"))
}
