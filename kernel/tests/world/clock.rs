//! Time that moves only when everyone waits, and the executor that moves it.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use everturn_kernel::Millis;

/// More polls than any story needs: whoever gets here spins.
const MOST_POLLS: u32 = 200_000;

#[derive(Clone)]
pub(crate) struct Clock(Arc<Mutex<Hands>>);

struct Hands {
    /// Never goes back; timers go by it.
    steady: u64,
    /// What people read; may be set.
    wall: u64,
    timers: Vec<(u64, Waker)>,
    stopped: bool,
}

impl Clock {
    pub(crate) fn new(now: Millis) -> Self {
        Self(Arc::new(Mutex::new(Hands { steady: 0, wall: now.0, timers: Vec::new(), stopped: false })))
    }

    pub(crate) fn now(&self) -> Millis {
        Millis(self.hands().wall)
    }

    /// Someone sets the clock; timers do not care.
    pub(crate) fn set(&self, now: Millis) {
        self.hands().wall = now.0;
    }

    /// The process ends: whatever runs stops where it is.
    pub(crate) fn stop(&self) {
        self.hands().stopped = true;
    }

    pub(crate) fn sleep(&self, ms: u64) -> impl Future<Output = ()> + Send + use<> {
        let clock = self.clone();
        let until = self.hands().steady.saturating_add(ms);
        poll_fn(move |cx| {
            let mut hands = clock.hands();
            if hands.steady >= until {
                return Poll::Ready(());
            }
            hands.timers.push((until, cx.waker().clone()));
            Poll::Pending
        })
    }

    /// Polls the future when it was woken, and only then; moves time when nobody was. `None` = it waits for nothing,
    /// or the process was ended.
    pub(crate) fn run<F: Future>(&self, future: F) -> Option<F::Output> {
        self.hands().stopped = false;
        self.hands().timers.clear();
        let mut future = pin!(future);
        let bell = Arc::new(Bell(AtomicBool::new(true)));
        let waker = Waker::from(bell.clone());
        for _ in 0..MOST_POLLS {
            if self.hands().stopped {
                return None;
            }
            if bell.0.swap(false, Ordering::Relaxed) {
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                    return Some(output);
                }
            } else if !self.to_next_timer() {
                return None;
            }
        }
        panic!("polled {MOST_POLLS} times: something spins");
    }

    fn to_next_timer(&self) -> bool {
        let mut hands = self.hands();
        let Some(next) = hands.timers.iter().map(|(at, _)| *at).min() else { return false };
        let passed = next.saturating_sub(hands.steady);
        hands.steady += passed;
        hands.wall += passed;
        hands.timers.retain(|(at, waker)| {
            let due = *at <= next;
            if due {
                waker.wake_by_ref();
            }
            !due
        });
        true
    }

    fn hands(&self) -> std::sync::MutexGuard<'_, Hands> {
        self.0.lock().expect("no one panics with the clock in hand")
    }
}

struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}
