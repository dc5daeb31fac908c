//! Names of tools: `server__tool`, in characters that every model API accepts.

/// The separator of the two parts.
const BETWEEN: &str = "__";

/// Maximum length of a name that every model API accepts.
const LONGEST: usize = 64;

/// Maximum length of a server's name, so that enough is left for its tools.
const LONGEST_SERVER: usize = 32;

/// Whether a server may have this name. It ensures that tools of two servers never have the same name.
pub(crate) fn is_server_name(name: &str) -> bool {
    let is_allowed = !name.is_empty() && name.len() <= LONGEST_SERVER && name.chars().all(is_taken);
    is_allowed && !name.contains(BETWEEN) && !name.ends_with('_')
}

/// Whether a tool with this name belongs to the server.
pub(crate) fn is_of(server: &str, name: &str) -> bool {
    name.strip_prefix(server).is_some_and(|rest| rest.starts_with(BETWEEN))
}

/// Returns the name that models use for a tool. Replaces unsupported characters with `_`. Truncates a name that is too
/// long and appends a hash of the whole. The result is stable, because conversations refer to it.
pub(crate) fn qualified(server: &str, tool: &str) -> String {
    let tidy = tool.chars().map(|letter| if is_taken(letter) { letter } else { '_' });
    let name: String = server.chars().chain(BETWEEN.chars()).chain(tidy).collect();
    if name.len() <= LONGEST {
        return name;
    }
    let hash = format!("_{:08x}", hash(tool));
    format!("{}{hash}", &name[..LONGEST - hash.len()])
}

/// Whether model APIs accept the character in a name.
fn is_taken(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '-'
}

/// Hashes with FNV-1a. The hashes of the standard library may change between versions.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_name_has_only_characters_that_every_api_accepts() {
        assert_eq!(qualified("files", "read_file"), "files__read_file");
        assert_eq!(qualified("files", "read.file/ä b"), "files__read_file___b");
        let long = qualified("files", &"x".repeat(80));
        assert_eq!(long, format!("files__{}_{:08x}", "x".repeat(48), hash(&"x".repeat(80))));
        assert_eq!(long.len(), LONGEST);
        assert_ne!(long, qualified("files", &"x".repeat(81)));
        assert_eq!(hash("foobar"), 0xbf9c_f968);
    }

    #[test]
    fn no_two_servers_can_have_a_tool_of_one_name() {
        for name in ["files", "a-b_c", "A1", "_a"] {
            assert!(is_server_name(name), "{name}");
        }
        for name in ["", "a__b", "a_", "a b", "a.b", "ä", &"x".repeat(33)] {
            assert!(!is_server_name(name), "{name}");
        }
        assert!(is_of("a", "a__b") && !is_of("a", "a_b") && !is_of("a", "ab__c"));
    }
}
