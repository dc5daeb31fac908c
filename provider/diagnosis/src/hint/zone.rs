//! Time zones as people name them: `utc`, `gmt+2`, `+02:00`, `pdt`, `pacific time`, `europe berlin`.
//!
//! A zone that is not listed is not guessed at, because a wrong one is off by hours.

use super::date::{days, digits};

const DAY: i64 = 24 * 60;

/// When clocks are an hour ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Summer {
    Never,
    /// From the second Sunday of March to the first one of November, at 2 o'clock.
    America,
    /// From the last Sunday of March to the last one of October, at 1:00 UTC.
    Europe,
}

/// The offset of a zone from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Zone {
    /// In minutes, without summer time.
    standard: i64,
    summer: Summer,
}

/// (minutes east of UTC, summer time, names in lower case without punctuation). Abbreviations with several meanings
/// are left out.
#[rustfmt::skip]
const ZONES: &[(i64, Summer, &[&str])] = &[
    (0, Summer::Never, &["utc", "gmt", "z", "coordinated universal time", "etc utc", "atlantic reykjavik"]),
    (0, Summer::Europe, &["europe london", "europe lisbon", "europe dublin", "wet", "uk time"]),
    (60, Summer::Never, &["bst", "west", "africa lagos"]),
    (60, Summer::Europe, &[
        "cet", "europe amsterdam", "europe andorra", "europe belgrade", "europe berlin", "europe bratislava", "europe brussels",
        "europe budapest", "europe copenhagen", "europe ljubljana", "europe luxembourg", "europe madrid", "europe malta",
        "europe monaco", "europe oslo", "europe paris", "europe prague", "europe rome", "europe sarajevo", "europe skopje",
        "europe stockholm", "europe tirane", "europe vienna", "europe warsaw", "europe zagreb", "europe zurich",
    ]),
    (120, Summer::Never, &["cest", "africa johannesburg"]),
    (120, Summer::Europe, &[
        "eet", "europe athens", "europe bucharest", "europe helsinki", "europe kiev", "europe kyiv", "europe riga",
        "europe sofia", "europe tallinn", "europe vilnius",
    ]),
    (180, Summer::Never, &["eest", "msk", "europe istanbul", "europe minsk", "europe moscow", "africa nairobi", "asia riyadh"]),
    (240, Summer::Never, &["asia dubai"]),
    (300, Summer::Never, &["asia karachi", "asia tashkent", "asia almaty"]),
    (330, Summer::Never, &["asia kolkata", "asia calcutta", "india standard time"]),
    (345, Summer::Never, &["asia kathmandu"]),
    (360, Summer::Never, &["asia dhaka"]),
    (420, Summer::Never, &["asia bangkok", "asia jakarta", "asia ho chi minh", "asia saigon"]),
    (480, Summer::Never, &[
        "sgt", "hkt", "beijing time", "china standard time", "asia shanghai", "asia hong kong", "asia singapore",
        "asia taipei", "asia manila", "asia kuala lumpur", "australia perth",
    ]),
    (540, Summer::Never, &["jst", "kst", "asia tokyo", "asia seoul"]),
    (600, Summer::Never, &["aest", "australia brisbane"]),
    (660, Summer::Never, &["aedt"]),
    (-180, Summer::Never, &["america sao paulo", "america argentina buenos aires", "america buenos aires", "america montevideo"]),
    (-300, Summer::Never, &["est", "cdt", "america bogota", "america lima", "america panama"]),
    (-240, Summer::Never, &["edt"]),
    (-360, Summer::Never, &["mdt", "america mexico city", "america costa rica"]),
    (-420, Summer::Never, &["pdt", "mst", "america phoenix"]),
    (-480, Summer::Never, &["pst"]),
    (-240, Summer::America, &["america halifax", "atlantic time"]),
    (-300, Summer::America, &["et", "eastern time", "eastern", "america new york", "america toronto", "america detroit", "us eastern"]),
    (-360, Summer::America, &["central time", "america chicago", "america winnipeg", "us central"]),
    (-420, Summer::America, &["mountain time", "america denver", "america edmonton", "america boise", "us mountain"]),
    (-480, Summer::America, &["pt", "pacific time", "pacific", "america los angeles", "america vancouver", "america tijuana", "us pacific"]),
    (-540, Summer::America, &["america anchorage"]),
    (-600, Summer::Never, &["pacific honolulu", "us hawaii"]),
];

impl Zone {
    /// Parses the zone at the start of a lower-case text.
    pub(super) fn read(text: &str) -> Option<Self> {
        let text = text.trim_start_matches(' ');
        let fixed = |standard| Self { standard, summer: Summer::Never };
        if text.starts_with(['+', '-']) {
            return offset(text).map(fixed);
        }
        if let Some(rest) = text.strip_prefix("utc").or_else(|| text.strip_prefix("gmt"))
            && rest.starts_with(['+', '-'])
        {
            return offset(rest).map(fixed);
        }
        let is_word =
            |name: &str| text.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        let named = ZONES.iter().flat_map(|(standard, summer, names)| {
            names.iter().map(|name| (*name, Self { standard: *standard, summer: *summer }))
        });
        // "pacific honolulu" is not "pacific".
        named.filter(|(name, _)| is_word(name)).max_by_key(|(name, _)| name.len()).map(|(_, zone)| zone)
    }

    /// Returns the offset from UTC at a time, both in minutes; the time counts from 1970.
    pub(super) fn offset(self, utc: i64) -> i64 {
        let year = 1970 + utc.div_euclid(DAY) * 400 / 146_097;
        let (begin, end) = match self.summer {
            Summer::Never => return self.standard,
            Summer::America => (
                sunday(year, 3, 8) * DAY + 2 * 60 - self.standard,
                sunday(year, 11, 1) * DAY + 60 - self.standard,
            ),
            Summer::Europe => (sunday(year, 3, 25) * DAY + 60, sunday(year, 10, 25) * DAY + 60),
        };
        self.standard + if (begin..end).contains(&utc) { 60 } else { 0 }
    }
}

/// Returns the first Sunday from a date on, in days since 1970, which began on a Thursday.
fn sunday(year: i64, month: i64, day: i64) -> i64 {
    let from = days(year, month, day);
    from + (3 - from).rem_euclid(7)
}

/// Parses `+2`, `+02`, `-0530` or `+05:30` into minutes.
fn offset(text: &str) -> Option<i64> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let text = text.strip_prefix(['+', '-'])?;
    let (hours, rest) = digits(text, 2).or_else(|| digits(text, 1))?;
    let minutes = digits(rest.strip_prefix(':').unwrap_or(rest), 2).map_or(0, |(minutes, _)| minutes);
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

#[cfg(test)]
mod tests {
    use super::{Zone, days};

    fn hours(zone: &str, year: i64, month: i64, day: i64, hour: i64) -> Option<f64> {
        let utc = (days(year, month, day) * 24 + hour) * 60;
        Zone::read(zone).map(|zone| zone.offset(utc) as f64 / 60.0)
    }

    #[test]
    fn each_notation_has_its_offset() {
        for (zone, expected) in [
            ("utc", Some(0.0)),
            ("gmt+1", Some(1.0)),
            ("utc-5 or so", Some(-5.0)),
            ("utc+05:30", Some(5.5)),
            ("+0200", Some(2.0)),
            ("-08", Some(-8.0)),
            ("pst", Some(-8.0)),
            ("pacific time", Some(-7.0)),
            ("pacific honolulu", Some(-10.0)),
            ("america new york then", Some(-4.0)),
            ("europe berlin", Some(2.0)),
            ("asia kolkata", Some(5.5)),
            ("utcx", None),
            ("cst", None),
            ("mars olympus", None),
            ("+99", None),
            ("", None),
        ] {
            assert_eq!(hours(zone, 2026, 9, 1, 0), expected, "{zone}");
        }
    }

    #[test]
    fn summer_time_begins_and_ends_on_its_sundays() {
        for (zone, month, day, hour, expected) in [
            ("america new york", 3, 8, 6, -5.0),
            ("america new york", 3, 8, 7, -4.0),
            ("america new york", 11, 1, 5, -4.0),
            ("america new york", 11, 1, 6, -5.0),
            ("europe london", 3, 29, 0, 0.0),
            ("europe london", 3, 29, 1, 1.0),
            ("europe berlin", 10, 25, 0, 2.0),
            ("europe berlin", 10, 25, 1, 1.0),
            ("europe berlin", 12, 31, 23, 1.0),
            ("asia tokyo", 7, 1, 0, 9.0),
        ] {
            assert_eq!(hours(zone, 2026, month, day, hour), Some(expected), "{zone} {month}-{day} {hour}:00");
        }
    }
}
