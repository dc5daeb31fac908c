//! Finds the name that was probably meant.

/// Minimum similarity of two names, 0 to 1, for one to be a likely misspelling of the other.
const ALIKE: f64 = 0.8;

/// Returns the name that was probably meant; `None` if none is similar enough. Ignores upper and lower case.
///
/// ```
/// use everturn_terminal::nearest;
///
/// assert_eq!(nearest("enable", ["schedule", "enabled"]), Some("enabled"));
/// assert_eq!(nearest("Main/Larg", ["main/large", "main/small"]), Some("main/large"));
/// assert_eq!(nearest("port", ["schedule", "enabled"]), None);
/// ```
pub fn nearest<'n>(typed: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let typed = typed.to_lowercase();
    let alike = |name: &str| strsim::jaro_winkler(&typed, &name.to_lowercase());
    let all = names.into_iter().map(|name| (alike(name), name));
    let (alike, best) = all.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (alike >= ALIKE).then_some(best)
}
