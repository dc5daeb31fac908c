//! Names of people, as proxies give them, as names of callers.

use everturn_wire::CallerName;
use sha2::{Digest as _, Sha256};

/// Length of what is kept of a name that cannot be one of a caller, and of what tells it apart, in characters.
const KEPT: usize = 15;
const DIGITS: usize = 16;

/// Returns the caller of this name. If it is not one of a caller, such as `ann@example.com`, it becomes one that no other name
/// becomes: `ann-example.com-` and a hash. Capital letters make no difference. `None` = nobody is named.
pub(super) fn caller(name: &str) -> Option<CallerName> {
    let name = name.trim().to_lowercase();
    // What Apache writes if there is no name.
    if name.is_empty() || name == "(null)" {
        return None;
    }
    if let Ok(name) = CallerName::parse(&name)
        && !looks_derived(name.as_str())
    {
        return Some(name);
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' || c == '_' { c } else { '-' };
    let kept: String =
        name.chars().map(plain).skip_while(|c| !c.is_ascii_alphanumeric()).take(KEPT).collect();
    let hash =
        Sha256::digest(name.as_bytes()).iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let kept = if kept.is_empty() { "caller" } else { &kept };
    CallerName::parse(&format!("{kept}-{}", &hash[..DIGITS])).ok()
}

/// Whether a name might be that of somebody else after this.
fn looks_derived(name: &str) -> bool {
    name.rsplit_once('-')
        .is_some_and(|(_, end)| end.len() == DIGITS && end.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_one_caller() {
        let of = |name: &str| caller(name).unwrap().to_string();
        assert_eq!((of("ann"), of(" Ann ")), ("ann".to_owned(), "ann".to_owned()));
        let ann = of("ann@example.com");
        assert!(ann.starts_with("ann-example.com-") && ann.len() == 32, "{ann}");
        assert_ne!(of(&ann), ann, "nobody becomes another by calling themselves so");
        assert_eq!(of("Ann@Example.com"), ann);
        let others = [
            "ann@example.org",
            "ann-example.com",
            "ann/example.com",
            "李雷",
            "李磊",
            "@",
            "-",
            &"x".repeat(99),
            &"x".repeat(98),
        ];
        let mut names: Vec<_> = others.map(of).into_iter().chain([ann]).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), others.len() + 1);
        assert!(caller(" ").is_none() && caller("(null)").is_none());
    }
}
