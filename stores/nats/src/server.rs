//! What the server must be able to do.

use std::fmt;

/// The version of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServerVersion(u64, u64, u64);

/// The oldest version that can be used: earlier ones can accept two appends at one version in a cluster.
pub(crate) const OLDEST: ServerVersion = ServerVersion(2, 12, 0);

/// From here on, a cluster that flushes every append shares flushes between appends.
pub(crate) const RECOMMENDED: ServerVersion = ServerVersion(2, 15, 0);

impl ServerVersion {
    /// Reads a version such as `2.15.1` or `2.12.0-RC.1`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = text.trim_start_matches('v').split(['-', '+']).next()?;
        let numbers: Vec<u64> = plain.split('.').map(|number| number.parse().ok()).collect::<Option<_>>()?;
        let [major, minor, patch] = numbers[..] else { return None };
        Some(Self(major, minor, patch))
    }
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let version = |text| ServerVersion::parse(text).unwrap();
        for old in ["2.9.10", "2.10.26", "2.11.11", "1.99.0"] {
            assert!(version(old) < OLDEST, "{old}");
        }
        for fine in ["2.12.0", "2.12.0-RC.1", "v2.15.1", "3.0.0"] {
            assert!(version(fine) >= OLDEST, "{fine}");
        }
        assert!(version("2.14.6") < RECOMMENDED && version("2.15.0") >= RECOMMENDED);
        for bad in ["", "2", "2.12", "2.x.1", "git"] {
            assert_eq!(ServerVersion::parse(bad), None, "{bad}");
        }
    }
}
