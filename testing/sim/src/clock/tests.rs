use std::cell::RefCell;
use std::task::Wake;

use futures_util::future::join_all;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn clock() -> VirtualClock {
    VirtualClock::new(Millis(1_000))
}

fn poll(sleep: &mut Sleep) -> Poll<()> {
    Pin::new(sleep).poll(&mut Context::from_waker(Waker::noop()))
}

/// Records its name and the time when it is woken.
struct Note {
    name: &'static str,
    clock: VirtualClock,
    log: Arc<Mutex<Vec<(&'static str, u64)>>>,
}

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        self.log.lock().unwrap().push((self.name, self.clock.now().0));
    }
}

#[test]
fn a_wait_ends_with_its_deadline_and_not_before() {
    let clock = clock();
    let mut sleep = clock.sleep(SECOND);
    assert_eq!(clock.next_deadline(), Some(Millis(2_000)));
    clock.advance(Duration::from_millis(999));
    assert_eq!((poll(&mut sleep), clock.now()), (Poll::Pending, Millis(1_999)));
    clock.advance(Duration::from_millis(1));
    assert_eq!((poll(&mut sleep), clock.now()), (Poll::Ready(()), Millis(2_000)));
    assert_eq!(clock.next_deadline(), None);
}

#[test]
fn a_wait_counts_from_its_call_and_not_from_its_first_poll() {
    let clock = clock();
    let mut sleep = clock.sleep(SECOND);
    clock.advance(SECOND);
    assert_eq!(poll(&mut sleep), Poll::Ready(()));
}

#[test]
fn one_move_wakes_in_the_order_of_deadlines() {
    let clock = clock();
    let log = Arc::default();
    let mut sleeps = Vec::new();
    for (name, seconds) in [("c", 3), ("a", 1), ("b", 2), ("a2", 1), ("late", 5)] {
        let note = Note { name, clock: clock.clone(), log: Arc::clone(&log) };
        let mut sleep = clock.sleep(SECOND * seconds);
        let waker = Waker::from(Arc::new(note));
        assert_eq!(Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker)), Poll::Pending);
        sleeps.push(sleep);
    }
    clock.advance(SECOND * 4);
    assert_eq!(*log.lock().unwrap(), [("a", 2_000), ("a2", 2_000), ("b", 3_000), ("c", 4_000)]);
    assert_eq!((clock.now(), clock.next_deadline()), (Millis(5_000), Some(Millis(6_000))));
}

#[test]
fn a_dropped_wait_is_forgotten() {
    let clock = clock();
    let first = clock.sleep(SECOND);
    let second = clock.sleep(SECOND * 2);
    drop(first);
    assert_eq!(clock.next_deadline(), Some(Millis(3_000)));
    drop(second);
    assert_eq!(clock.advance_to_next(), None);
    assert_eq!(clock.now(), Millis(1_000));
}

#[test]
fn dropping_one_of_two_equal_waits_leaves_the_other() {
    let clock = clock();
    let first = clock.sleep(SECOND);
    let mut second = clock.sleep(SECOND);
    drop(first);
    assert_eq!(clock.advance_to_next(), Some(Millis(2_000)));
    assert_eq!(poll(&mut second), Poll::Ready(()));
}

#[test]
fn the_shortest_and_the_longest_wait() {
    let clock = clock();
    assert_eq!(poll(&mut clock.sleep(Duration::ZERO)), Poll::Ready(()));
    let _a_nanosecond = clock.sleep(Duration::from_nanos(1));
    assert_eq!(clock.advance_to_next(), Some(Millis(1_001)));
    let _for_ever = clock.sleep(Duration::MAX);
    assert_eq!(clock.next_deadline(), Some(Millis(u64::MAX)));
}

#[test]
fn it_runs_a_day_of_waits_without_an_executor() {
    let clock = clock();
    let log = RefCell::new(Vec::new());
    let waits = [(2, 3), (1, 1), (86_400, 0)].map(async |(first, then)| {
        clock.sleep(SECOND * first).await;
        log.borrow_mut().push(clock.now().0);
        clock.sleep(SECOND * then).await;
        log.borrow_mut().push(clock.now().0);
    });
    assert!(clock.run(join_all(waits)).is_some());
    assert_eq!(*log.borrow(), [2_000, 3_000, 3_000, 6_000, 86_401_000, 86_401_000]);
}

#[test]
fn a_future_that_wakes_itself_is_not_overtaken_by_time() {
    let clock = clock();
    let mut turns = 0;
    let busy = poll_fn(|context| {
        turns += 1;
        context.waker().wake_by_ref();
        if turns < 5 { Poll::Pending } else { Poll::Ready(clock.now()) }
    });
    let _passing = clock.sleep(SECOND);
    assert_eq!(clock.run(busy), Some(Millis(1_000)));
}

#[test]
fn a_future_that_nothing_can_wake_panics() {
    let clock = clock();
    let stuck = async {
        clock.sleep(SECOND).await;
        std::future::pending::<()>().await;
    };
    assert_eq!(clock.run(stuck), None);
    assert_eq!(clock.now(), Millis(2_000));
}

#[tokio::test]
async fn it_moves_by_itself_for_other_tasks_of_a_runtime() {
    let clock = clock();
    let task = tokio::spawn({
        let clock = clock.clone();
        async move {
            for _ in 0..3 {
                // It begins to wait only after the driver found no waits.
                for _ in 0..5 {
                    tokio::task::yield_now().await;
                }
                clock.sleep(SECOND * 3_600).await;
            }
            clock.now()
        }
    });
    assert_eq!(clock.auto_advance(task).await.unwrap(), Millis(10_801_000));
}

#[tokio::test]
async fn it_moves_on_after_waking_a_task_that_does_not_answer() {
    let clock = clock();
    let (other, ours) = (clock.sleep(SECOND), clock.sleep(SECOND * 2));
    let task = tokio::spawn(other);
    tokio::task::yield_now().await;
    clock.auto_advance(ours).await;
    assert_eq!(clock.now(), Millis(3_000));
    task.await.unwrap();
}

#[tokio::test]
async fn it_is_a_clock_for_the_orchestrator() {
    let clock = clock();
    let shell: &dyn Clock = &clock;
    clock.auto_advance(shell.sleep(SECOND)).await;
    assert_eq!(shell.now(), Millis(2_000));
}
