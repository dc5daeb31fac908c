//! A clock that only advances by command.

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

/// A virtual clock. Clones share it. Needs no runtime, and works with every executor.
///
/// Counts whole milliseconds: waits are rounded up, advances down.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    timeline: Arc<Mutex<Timeline>>,
}

#[derive(Debug)]
struct Timeline {
    now: Millis,
    /// Number of waits begun. Orders waits with the same deadline.
    begun: u64,
    /// The pending waits. A wait that was not polled yet has no waker.
    waits: BTreeMap<WaitKey, Option<Waker>>,
    /// The driver that advances this clock automatically, if it found no wait.
    driver: Option<Waker>,
}

/// The key of a wait: its deadline, then its number.
type WaitKey = (Millis, u64);

impl VirtualClock {
    /// Creates a clock that shows this time.
    pub fn new(now: Millis) -> Self {
        let timeline = Timeline { now, begun: 0, waits: BTreeMap::new(), driver: None };
        Self { timeline: Arc::new(Mutex::new(timeline)) }
    }

    /// Returns the time, in milliseconds since the epoch.
    pub fn now(&self) -> Millis {
        self.timeline().now
    }

    /// Waits for this long from *now*, the time of this call, whenever the future is first polled. Dropping it cancels
    /// the wait. The deadline saturates at the largest `u64`.
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

    /// Returns the next deadline; `None` if there are no waits.
    pub fn next_deadline(&self) -> Option<Millis> {
        self.timeline().waits.keys().next().map(|(deadline, _)| *deadline)
    }

    /// Advances the clock, and wakes the waits that end: in the order of their deadlines, then of their start. While a
    /// wait is woken, the clock shows its deadline.
    ///
    /// A woken task runs later, when its executor schedules it. If it waits again, that wait counts from the end of
    /// this advance. If that matters, use [`VirtualClock::advance_to_next`].
    pub fn advance(&self, by: Duration) {
        let end = self.now().plus(whole_ms(by.as_millis()));
        self.advance_to(end);
    }

    /// Advances to the next deadline, wakes its wait, and returns it; `None` if there are no waits.
    pub fn advance_to_next(&self) -> Option<Millis> {
        let deadline = self.next_deadline()?;
        self.advance_to(deadline);
        Some(deadline)
    }

    /// Drives a future, advancing to the next deadline whenever the future can do nothing else. Works with every
    /// executor. A clock can have one such driver at a time.
    ///
    /// Only what this future polls itself is considered before advancing. A task spawned elsewhere may find that time
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

    /// Like [`VirtualClock::auto_advance`], without an executor. Returns `None` if the future waits for anything other
    /// than a deadline or its own progress, and would wait for ever.
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

    /// Advances to the next deadline, or registers the driver to be woken once there is one.
    fn drive(&self, driver: &Waker) {
        let mut timeline = self.timeline();
        if timeline.waits.is_empty() {
            timeline.driver = Some(driver.clone());
            return;
        }
        drop(timeline);
        self.advance_to_next();
        // The woken wait may belong to another task.
        driver.wake_by_ref();
    }

    fn advance_to(&self, end: Millis) {
        while let Some(waker) = self.end_first_wait(end) {
            // Outside the lock, because a waker may poll at once, and the polled future may use this clock.
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
