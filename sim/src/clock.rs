//! A clock that moves only when it is told to.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use everturn_orchestrator::{Clock, kernel::Millis};

use nudge::Nudge;

mod nudge;

/// Time as a value. Clones are the same clock; it needs no runtime and works under every executor.
///
/// Whole milliseconds: a wait is rounded up to them, a move down.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    timeline: Arc<Mutex<Timeline>>,
}

#[derive(Debug)]
struct Timeline {
    now: Millis,
    /// How many waits began; orders those of one deadline.
    begun: u64,
    /// The waits that are not over. One that nobody polled yet has no waker.
    waits: BTreeMap<WaitKey, Option<Waker>>,
    /// Whoever moves this clock by itself and found nobody waiting.
    driver: Option<Waker>,
}

/// Where a wait stands: its deadline, then the order of beginning.
type WaitKey = (Millis, u64);

impl VirtualClock {
    /// A clock that stands at this time.
    pub fn new(now: Millis) -> Self {
        let timeline = Timeline { now, begun: 0, waits: BTreeMap::new(), driver: None };
        Self { timeline: Arc::new(Mutex::new(timeline)) }
    }

    /// The time, in milliseconds since the epoch.
    pub fn now(&self) -> Millis {
        self.timeline().now
    }

    /// Waits for that long from *now*, the time of this call, whenever it is polled first. Dropping it is cancelling
    /// it. Ends beyond the last millisecond of a `u64` mean that last one.
    pub fn sleep(&self, delay: Duration) -> Sleep {
        let mut timeline = self.timeline();
        let place = (timeline.now.plus(whole_ms(delay.as_nanos().div_ceil(1_000_000))), timeline.begun);
        timeline.begun += 1;
        if place.0 > timeline.now {
            timeline.waits.insert(place, None);
        }
        let driver = timeline.driver.take();
        drop(timeline);
        if let Some(driver) = driver {
            driver.wake();
        }
        Sleep { clock: self.clone(), place }
    }

    /// When the next wait ends; `None` when nobody waits.
    pub fn next_deadline(&self) -> Option<Millis> {
        self.timeline().waits.keys().next().map(|(deadline, _)| *deadline)
    }

    /// Moves the clock forward, and wakes whose wait ends by then: in the order of their deadlines, those of one
    /// deadline in the order they began, the clock standing at the deadline meanwhile.
    ///
    /// A task that is woken runs later, when its executor lets it; if it waits again, that wait counts from the end of
    /// this move. Where that matters, move with [`VirtualClock::advance_to_next`].
    pub fn advance(&self, by: Duration) {
        let end = self.now().plus(whole_ms(by.as_millis()));
        self.advance_to(end);
    }

    /// Moves to the next deadline, wakes whose wait ends there, and tells it; `None`, and no move, when nobody waits.
    pub fn advance_to_next(&self) -> Option<Millis> {
        let deadline = self.next_deadline()?;
        self.advance_to(deadline);
        Some(deadline)
    }

    /// Drives a future, moving to the next deadline each time it can do nothing else. Works under every executor. A
    /// clock has one such driver at a time.
    ///
    /// Only what this future polls itself is waited for before a move: a task spawned elsewhere may find that time
    /// has run ahead of it.
    pub async fn auto_advance<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| {
            let nudge = Nudge::passing_on(context.waker());
            let polled = future.as_mut().poll(&mut Context::from_waker(&nudge.waker()));
            if polled.is_pending() && !nudge.came() {
                self.drive(context.waker());
            }
            polled
        })
        .await
    }

    /// As [`VirtualClock::auto_advance`], without any executor. `None` when the future waits for something that is
    /// neither a deadline nor its own doing, and would wait for ever.
    pub fn run<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut driven = pin!(self.auto_advance(future));
        loop {
            let nudge = Nudge::passing_on(Waker::noop());
            match driven.as_mut().poll(&mut Context::from_waker(&nudge.waker())) {
                Poll::Ready(output) => return Some(output),
                Poll::Pending if nudge.came() => {}
                Poll::Pending => return None,
            }
        }
    }

    /// Moves to the next deadline and comes back, or leaves word to be called once there is one.
    fn drive(&self, driver: &Waker) {
        let mut timeline = self.timeline();
        if timeline.waits.is_empty() {
            timeline.driver = Some(driver.clone());
            return;
        }
        drop(timeline);
        self.advance_to_next();
        // Whoever was woken may be another task than the driver's.
        driver.wake_by_ref();
    }

    fn advance_to(&self, end: Millis) {
        while let Some(waker) = self.end_first_wait(end) {
            // Outside the lock: a waker may poll at once, and what it polls may use this clock.
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        let mut timeline = self.timeline();
        timeline.now = timeline.now.max(end);
    }

    /// Ends the first wait that is due by `end`.
    fn end_first_wait(&self, end: Millis) -> Option<Option<Waker>> {
        let mut timeline = self.timeline();
        let first = timeline.waits.first_entry().filter(|wait| wait.key().0 <= end)?;
        let ((deadline, _), waker) = first.remove_entry();
        timeline.now = timeline.now.max(deadline);
        Some(waker)
    }

    fn timeline(&self) -> MutexGuard<'_, Timeline> {
        self.timeline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Clock for VirtualClock {
    fn now(&self) -> Millis {
        Self::now(self)
    }

    async fn sleep(&self, delay: Duration) {
        Self::sleep(self, delay).await;
    }
}

/// A wait of a [`VirtualClock`].
#[derive(Debug)]
#[must_use = "a wait that is dropped is cancelled"]
pub struct Sleep {
    clock: VirtualClock,
    place: WaitKey,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.clock.timeline().waits.get_mut(&self.place) {
            Some(waker) => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.timeline().waits.remove(&self.place);
    }
}

fn whole_ms(ms: u128) -> u64 {
    u64::try_from(ms).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
