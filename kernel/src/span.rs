//! Spans of time in words, for details of why a turn gave up.

use alloc::{format, string::String};

/// Maximum length that is given in seconds: 10 min.
const SECONDS: u64 = 600;

/// Words for a wait, rounded up: `7 s`, `90 min`, `5 h`, `2 d 3 h`.
pub fn at_least(ms: u64) -> String {
    let seconds = ms.div_ceil(1_000);
    if seconds <= SECONDS { format!("{seconds} s") } else { words(seconds.div_ceil(60)) }
}

/// Words for what is left, rounded down.
pub fn at_most(ms: u64) -> String {
    let seconds = ms / 1_000;
    if seconds <= SECONDS { format!("{seconds} s") } else { words(seconds / 60) }
}

fn words(minutes: u64) -> String {
    let parts = [(minutes / 1_440, "d"), (minutes / 60 % 24, "h"), (minutes % 60, "min")];
    // Two units are exact enough.
    let named = parts.iter().skip_while(|(count, _)| *count == 0).take(2).filter(|(count, _)| *count > 0);
    named.map(|(count, unit)| format!("{count} {unit}")).collect::<alloc::vec::Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{at_least, at_most};

    #[test]
    fn waits_are_rounded_up_and_what_is_left_down() {
        for (ms, needed, left) in [
            (0, "0 s", "0 s"),
            (6_001, "7 s", "6 s"),
            (600_000, "600 s", "600 s"),
            (600_001, "11 min", "600 s"),
            (5_400_000, "1 h 30 min", "1 h 30 min"),
            (28_800_000, "8 h", "8 h"),
            (183_600_000, "2 d 3 h", "2 d 3 h"),
            (604_800_000, "7 d", "7 d"),
            (86_460_000, "1 d", "1 d"),
        ] {
            assert_eq!((at_least(ms).as_str(), at_most(ms).as_str()), (needed, left), "{ms} ms");
        }
    }
}
