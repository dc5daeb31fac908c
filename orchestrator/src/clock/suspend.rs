//! Measures how long the machine was suspended: the monotonic clock of tokio's timers stands still meanwhile.

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(super) use unknown::Suspend;

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub(super) use known::Suspend;

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
mod known {
    use std::time::{Duration, Instant};

    use rustix::time::{ClockId, clock_gettime};

    /// The clock that advances while the machine is suspended.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const SLEEPLESS: ClockId = ClockId::Boottime;
    #[cfg(target_vendor = "apple")]
    const SLEEPLESS: ClockId = ClockId::Monotonic;

    /// A time on two clocks, of which one stands still while the machine is suspended.
    ///
    /// They are read in field order here, and in reverse order later, so that a pause between two readings makes the
    /// result too small and never looks like a suspend.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::clock) struct Suspend {
        at: Instant,
        sleepless: Duration,
    }

    impl Suspend {
        pub(in crate::clock) fn new() -> Self {
            Self { at: Instant::now(), sleepless: sleepless() }
        }

        /// Returns the total time suspended since then.
        pub(in crate::clock) fn total(&self) -> Duration {
            let passed = sleepless().saturating_sub(self.sleepless);
            passed.saturating_sub(self.at.elapsed())
        }
    }

    fn sleepless() -> Duration {
        let time = clock_gettime(SLEEPLESS);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_machine_that_runs_was_not_suspended() {
            let suspend = Suspend::new();
            assert!((0..100_000).all(|_| suspend.total() == Duration::ZERO));
        }

        #[test]
        fn what_only_one_of_the_clocks_counts_is_a_suspend() {
            let now = Suspend::new();
            let before = Suspend { sleepless: now.sleepless.saturating_sub(Duration::from_secs(8)), ..now };
            let total = before.total();
            assert!((Duration::from_secs(7)..=Duration::from_secs(8)).contains(&total), "{total:?}");
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
mod unknown {
    use std::time::Duration;

    /// Suspension is not measured. Where the monotonic clock includes it, as on Windows, it need not be.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::clock) struct Suspend;

    impl Suspend {
        pub(in crate::clock) fn new() -> Self {
            Self
        }

        pub(in crate::clock) fn total(&self) -> Duration {
            Duration::ZERO
        }
    }
}
