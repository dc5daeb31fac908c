//! Notices of a watch, on a clock that is advanced by hand.

use std::future::poll_fn;

use tokio::time::{advance, timeout};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn watch() -> Watch {
    Watch::begin(Timeouts::default())
}

/// Returns the next notice and its time, in seconds since the start.
async fn next(watch: &mut Watch, begun: Instant) -> (u64, Result<Silence, ConnectionError>) {
    let notice = poll_fn(|cx| watch.poll_notice(cx)).await;
    let said = match notice {
        Notice::Silent(silence) => Ok(silence),
        Notice::Over(fault) => Err(fault),
    };
    (begun.elapsed().as_secs(), said)
}

fn silence(silent_s: u64, left_s: u64, alive: bool) -> Silence {
    Silence { silent_ms: silent_s * 1000, left_ms: Some(left_s * 1000), alive }
}

/// Rounds to whole seconds, because timers fire up to a millisecond late.
fn whole(silence: Silence) -> Silence {
    let seconds = |ms: u64| (ms + 500) / 1000 * 1000;
    Silence { silent_ms: seconds(silence.silent_ms), left_ms: silence.left_ms.map(seconds), ..silence }
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_call_is_reported_and_times_out() {
    let (mut watch, begun) = (watch(), Instant::now());
    for (at, left) in [(20, 100), (80, 40)] {
        let (when, told) = next(&mut watch, begun).await;
        assert_eq!((when, whole(told.unwrap())), (at, silence(at, left, false)));
    }
    let (when, told) = next(&mut watch, begun).await;
    assert_eq!((when, told.unwrap_err().kind), (120, Transport::FirstByteTimeout));
}

#[tokio::test(start_paused = true)]
async fn content_moves_every_deadline() {
    let mut watch = watch();
    assert!(watch.answered().is_none());
    for _ in 0..1000 {
        advance(19 * SECOND).await;
        assert!(watch.heard(true).is_none());
    }
    let begun = Instant::now();
    let (when, told) = next(&mut watch, begun).await;
    assert_eq!((when, whole(told.unwrap())), (20, silence(20, 280, false)));
    advance(5 * SECOND).await;
    assert!(watch.heard(true).is_none());
    let (when, told) = next(&mut watch, begun).await;
    assert_eq!((when, whole(told.unwrap())), (45, silence(20, 280, false)), "a new silence");
}

#[tokio::test(start_paused = true)]
async fn signs_of_life_are_reported_until_the_progress_timeout() {
    let (mut watch, begun) = (watch(), Instant::now());
    assert!(watch.answered().is_none());
    let mut told = Vec::new();
    let over = loop {
        let notice = match timeout(15 * SECOND, poll_fn(|cx| watch.poll_notice(cx))).await {
            Ok(notice) => Some(notice),
            Err(_) => watch.heard(false),
        };
        match notice {
            Some(Notice::Silent(silence)) => told.push((begun.elapsed().as_secs(), silence.alive)),
            Some(Notice::Over(fault)) => break fault,
            None => {}
        }
    };
    assert_eq!((begun.elapsed().as_secs(), over.kind), (600, Transport::NoProgress));
    let minutes: Vec<_> = (0..10).map(|minute| (20 + 60 * minute, true)).collect();
    assert_eq!(told, minutes);
    assert!(over.text.contains("600s"), "{}", over.text);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_never_pauses_times_out_too() {
    let mut watch = watch();
    watch.answered();
    let begun = Instant::now();
    let over = loop {
        advance(Duration::from_millis(100)).await;
        // The alarm is never polled.
        if let Some(Notice::Over(fault)) = watch.heard(false) {
            break fault;
        }
    };
    assert_eq!((begun.elapsed().as_secs(), over.kind), (600, Transport::NoProgress));
}

#[tokio::test(start_paused = true)]
async fn a_silence_that_changes_its_kind_is_reported_at_once() {
    let (mut watch, begun) = (watch(), Instant::now());
    watch.answered();
    let (_, dead) = next(&mut watch, begun).await;
    assert!(!dead.unwrap().alive);
    advance(10 * SECOND).await;
    let Some(Notice::Silent(alive)) = watch.heard(false) else { panic!("a sign of life is told") };
    assert_eq!(whole(alive), silence(30, 300, true));
    assert!(watch.heard(false).is_none(), "once");
    let (when, dead) = next(&mut watch, begun).await;
    assert_eq!((when, whole(dead.unwrap())), (90, silence(90, 240, false)));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_event_is_not_a_sign_of_life() {
    let (mut watch, begun) = (watch(), Instant::now());
    watch.answered();
    watch.heard(true);
    advance(SECOND / 10).await;
    assert!(watch.heard(false).is_none());
    assert!(!next(&mut watch, begun).await.1.unwrap().alive);
}

#[tokio::test(start_paused = true)]
async fn a_silence_shorter_than_a_lull_is_reported_once_per_kind() {
    let mut watch = Watch::begin(Timeouts { silence: SECOND / 10, ..Timeouts::default() });
    let begun = Instant::now();
    watch.answered();
    let mut told = Vec::new();
    while begun.elapsed() < 2 * SECOND {
        let notice = match timeout(SECOND / 100, poll_fn(|cx| watch.poll_notice(cx))).await {
            Ok(notice) => Some(notice),
            Err(_) => watch.heard(false),
        };
        match notice {
            Some(Notice::Silent(silence)) => told.push((begun.elapsed().as_millis() / 100, silence.alive)),
            Some(Notice::Over(fault)) => panic!("{fault:?}"),
            None => {}
        }
    }
    assert_eq!(told, [(1, false), (10, true)]);
}

#[tokio::test(start_paused = true)]
async fn the_timeouts_can_be_configured() {
    let timeouts = Timeouts { silence: Duration::ZERO, idle: 900 * SECOND, ..Timeouts::default() };
    let (mut patient, begun) = (Watch::begin(timeouts), Instant::now());
    patient.answered();
    advance(SECOND * 2).await;
    patient.heard(false);
    let (when, over) = next(&mut patient, begun).await;
    assert_eq!(
        (when, over.unwrap_err().kind),
        (900, Transport::NoProgress),
        "no shorter than silence is borne"
    );
    let endless = Timeouts {
        idle: Duration::MAX,
        progress: Duration::MAX,
        first_byte: Duration::MAX,
        silence: Duration::MAX,
        ..timeouts
    };
    let mut endless = Watch::begin(endless);
    endless.answered();
    assert!(timeout(86_400 * SECOND, poll_fn(|cx| endless.poll_notice(cx))).await.is_err());
}

/// Returns the watch of a call with this total timeout.
fn bounded(total: Duration) -> Watch {
    Watch::begin(Timeouts { total: Some(total), ..Timeouts::default() })
}

#[tokio::test(start_paused = true)]
async fn a_call_may_have_a_total_timeout() {
    // Nothing arrives: the earlier timeout applies.
    let (mut watch, begun) = (bounded(15 * SECOND), Instant::now());
    let (when, over) = next(&mut watch, begun).await;
    assert_eq!((when, over.unwrap_err().kind), (15, Transport::TotalTimeout));
    // An answer arrives without a pause.
    let (mut watch, begun) = (bounded(30 * SECOND), Instant::now());
    watch.answered();
    let over = loop {
        advance(Duration::from_millis(100)).await;
        if let Some(Notice::Over(fault)) = watch.heard(true) {
            break fault;
        }
    };
    assert_eq!((begun.elapsed().as_secs(), over.kind), (30, Transport::TotalTimeout));
    assert!(over.text.contains("30s"), "{}", over.text);
}
