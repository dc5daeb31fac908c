//! Conformance tests of all adapters, against a real server on the loopback interface.
//!
//! An adapter participates by describing its API as a [`dialect::Dialect`] and invoking [`conformance!`].

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod chat;
mod dialect;
mod gemini;
mod messages;
mod responses;
mod suite;

/// Runs the whole suite for a dialect, as a module with that name.
macro_rules! conformance {
    ($name:ident, $dialect:ty) => {
        mod $name {
            use super::suite::{answer, breakage, http2, manners, parameter, refusal, silence, tls, tool};

            conformance!(@tests $dialect, answer: [
                a_calm_stream,
                every_byte_its_own_write,
                other_framings,
                data_on_several_lines,
                comments_and_fields_nobody_asked_for,
                a_character_that_is_split_over_two_events,
                a_large_event,
                text_that_arrives_together_is_told_together,
                an_event_over_the_limit,
                an_answer_over_the_limit,
            ]);
            conformance!(@tests $dialect, breakage: [
                cut_at_every_byte,
                reset_at_every_byte,
                a_clean_end_at_every_byte,
                an_error_after_every_part,
                an_answer_that_says_nothing,
                an_error_that_is_no_event,
                no_head_at_all,
                no_http_at_all,
                nothing_listens,
                no_such_host,
            ]);
            conformance!(@tests $dialect, tls: [
                a_connection_that_ends_without_a_goodbye,
                a_certificate_that_is_not_valid,
                a_handshake_that_breaks,
                a_certificate_that_is_replaced,
                a_server_without_http2,
            ]);
            conformance!(@tests $dialect, http2: [
                a_stream_reset_at_every_frame,
                a_connection_that_goes_away,
                a_connection_cut_at_every_frame,
            ]);
            conformance!(@tests $dialect, tool: [
                calls_take_turns,
                calls_share_an_id,
                arguments_that_are_cut_off,
                a_whole_call_is_told_before_the_end,
                calls_of_an_answer_that_breaks_off,
                cut_arguments_never_come_early,
                calls_that_take_turns_come_whole,
                images_in_results,
            ]);
            conformance!(@tests $dialect, refusal: [
                every_status,
                what_is_left_of_a_limit_is_told_first,
                a_wait_that_is_asked_for,
                a_body_is_read_within_bounds,
                a_success_without_a_stream,
                a_redirect_is_not_followed,
            ]);
            conformance!(@tests $dialect, manners: [
                the_request_is_well_formed,
                a_connection_is_used_again,
                connections_of_many_calls_are_used_again,
                a_dropped_call_closes_its_connection,
                a_call_that_was_never_polled_sends_nothing,
                a_broken_pooled_connection_is_not_retried,
                a_server_that_closes_after_each_reply,
                no_secret_is_shown,
                a_secret_in_an_answer_is_masked,
                the_trace_of_a_call_is_sent,
            ]);
            conformance!(@tests $dialect, parameter: [every_parameter, every_choice, every_format]);
            conformance!(@paused $dialect, http2: [a_window_that_stalls]);
            conformance!(@paused $dialect, silence: [
                no_response_at_all,
                no_body_after_the_head,
                silence_after_every_part,
                silence_inside_an_event,
                a_silent_explanation,
                an_hour_of_words,
                an_hour_of_comments,
                a_byte_every_twenty_seconds,
                a_silence_is_told_while_it_lasts,
                a_pause_is_told_and_changes_nothing,
                signs_of_life_alone_are_given_up,
                no_handshake,
            ]);
        }
    };
    (@tests $dialect:ty, $module:ident: [$($test:ident),* $(,)?]) => {
        $(
            #[tokio::test]
            async fn $test() {
                $module::$test::<$dialect>().await;
            }
        )*
    };
    (@paused $dialect:ty, $module:ident: [$($test:ident),* $(,)?]) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $test() {
                $module::$test::<$dialect>().await;
            }
        )*
    };
}

conformance!(chat_completions, crate::chat::Chat);
conformance!(messages_api, crate::messages::Messages);
conformance!(responses_api, crate::responses::ResponsesApi);
conformance!(gemini_api, crate::gemini::GenerateContent);

// What becomes of connections does not depend on the API.

#[tokio::test]
async fn more_calls_than_streams() {
    suite::http2::more_calls_than_streams::<chat::Chat>().await;
}

#[tokio::test]
async fn a_connection_that_dies_with_many_calls() {
    suite::http2::a_connection_that_dies_with_many_calls::<chat::Chat>().await;
}

#[tokio::test]
async fn answers_that_nobody_reads() {
    suite::http2::answers_that_nobody_reads::<chat::Chat>().await;
}
