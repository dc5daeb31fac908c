//! Computes the length of JSON without building it.

use std::io;

use serde::Serialize;

/// Returns the length of a value as JSON, in bytes; `usize::MAX` if it has no JSON form.
pub fn size(value: &(impl Serialize + ?Sized)) -> usize {
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).map_or(usize::MAX, |()| count.0)
}

struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_long_as_what_is_written() {
        let value = serde_json::json!({ "a": [1, 2.5, null, "\n\u{1f980}"], "b": {} });
        assert_eq!(size(&value), value.to_string().len());
    }
}
