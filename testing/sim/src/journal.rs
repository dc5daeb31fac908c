//! Conformance tests for journals.

mod append;
mod index;
mod read;
mod retention;
pub(crate) mod sample;

use std::sync::Arc;

use everturn_orchestrator::Journal;

/// Checks a journal against the contract of [`Journal`]. `make` opens a new, empty journal each time.
///
/// Needs no clock and no special runtime, and leaves nothing behind except what `make` created.
///
/// # Panics
/// If the journal violates the contract. Call it from a test.
pub async fn conformance(make: impl AsyncFn() -> Arc<dyn Journal>) {
    append::begins_with_nothing(&*make().await).await;
    append::gives_each_append_a_higher_version(&*make().await).await;
    append::refuses_the_stale_and_writes_nothing(&*make().await).await;
    append::refuses_what_was_meant_for_a_deleted_conversation(&*make().await).await;
    append::lets_one_of_many_rivals_win(&*make().await).await;
    append::answers_as_if_one_after_another(&make().await).await;
    append::keeps_conversations_apart(&*make().await).await;
    append::is_all_or_nothing_when_dropped(&*make().await).await;
    append::takes_much_at_once(&*make().await).await;
    append::keeps_the_turn_until_it_is_sealed(&*make().await).await;
    read::gives_back_what_it_was_given(&*make().await).await;
    read::parts_history_into_windows(&*make().await).await;
    read::bounds_windows_by_their_bytes(&*make().await).await;
    read::goes_on_after_a_cursor(&*make().await).await;
    read::lists_figures_in_the_order_of_the_turns(&*make().await).await;
    index::lists_conversations_by_activity(&*make().await).await;
    index::lists_conversations_page_by_page(&*make().await).await;
    index::lists_the_conversations_of_one_caller(&*make().await).await;
    index::renames_for_good(&*make().await).await;
    index::removes_all_of_a_conversation(&*make().await).await;
    retention::drops_the_events_of_old_turns_only(&*make().await).await;
    retention::counts_turns_in_each_conversation(&*make().await).await;
    retention::keeps_what_follows_a_seal_in_one_append(&*make().await).await;
    index::lists_unsealed_turns_by_their_time(&*make().await).await;
    index::lists_no_turn_that_waits_for_a_person_alone(&*make().await).await;
}
