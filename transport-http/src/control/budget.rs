//! Lengths of time as people write them: `10m`, `90s`, `1h30m`.

use std::time::Duration;

/// The longest that may be asked for: a year.
const MOST: u64 = 366 * 86_400;

/// Reads a length of time, from 1 s to a year: whole numbers with units, without spaces, the largest unit first, such as
/// `10m` or `1h30m`. The units are `d`, `h`, `m` and `s`.
pub fn read(text: &str) -> Option<Duration> {
    const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let (mut rest, mut seconds, mut units) = (text.trim(), 0_u64, UNITS.iter());
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, tail) = rest.split_at(digits);
        let number: u64 = number.parse().ok()?;
        let (unit, length) = units.find(|(unit, _)| tail.starts_with(unit))?;
        seconds = seconds.checked_add(number.checked_mul(*length)?)?;
        rest = &tail[unit.len()..];
    }
    (1..=MOST).contains(&seconds).then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_as_people_write_them() {
        for (text, seconds) in [
            ("10m", Some(600)),
            (" 90s ", Some(90)),
            ("1h30m", Some(5_400)),
            ("2d", Some(172_800)),
            ("", None),
            ("0s", None),
            ("10", None),
            ("m", None),
            ("30m1h", None),
            ("1h 30m", None),
            ("-1s", None),
            ("400d", None),
            ("99999999999999999999d", None),
        ] {
            assert_eq!(read(text), seconds.map(Duration::from_secs), "{text:?}");
        }
    }
}
