//! Messages of any size, in parts that a server takes.

use async_nats::HeaderMap;
use bytes::Bytes;

/// Maximum size of a part, in bytes; servers take 1 MiB by default.
const PART: usize = 512 << 10;

/// Maximum size of a whole message, in bytes.
pub(super) const MAX: usize = 64 << 20;

/// The header of all parts but the last.
const MORE: &str = "Ev-More";

/// Returns the parts of a message, in order, at least one.
pub(super) fn of(payload: &Bytes) -> impl Iterator<Item = (HeaderMap, Bytes)> {
    let count = payload.len().div_ceil(PART).max(1);
    (0..count).map(move |part| {
        let mut headers = HeaderMap::new();
        if part + 1 < count {
            headers.insert(MORE, "1");
        }
        (headers, payload.slice(part * PART..payload.len().min((part + 1) * PART)))
    })
}

/// The parts of a message that have arrived.
#[derive(Debug, Default)]
pub(super) struct Arrived(Vec<u8>);

impl Arrived {
    /// Adds a part. Returns the message if it is complete, and an error if it is too large.
    pub(super) fn add(
        &mut self,
        headers: Option<&HeaderMap>,
        part: &[u8],
    ) -> Result<Option<Bytes>, TooLarge> {
        if self.0.len() + part.len() > MAX {
            return Err(TooLarge);
        }
        self.0.extend_from_slice(part);
        let has_more = headers.is_some_and(|headers| headers.get(MORE).is_some());
        Ok((!has_more).then(|| Bytes::from(std::mem::take(&mut self.0))))
    }
}

/// A message is larger than [`MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_arrives_as_it_was_sent_whatever_its_size() {
        for size in [0, 1, PART - 1, PART, PART + 1, 3 * PART + 7] {
            let payload = Bytes::from(vec![b'x'; size]);
            let mut arrived = Arrived::default();
            let parts: Vec<_> = of(&payload).collect();
            assert!(parts.iter().all(|(_, part)| part.len() <= PART));
            let (last, others) = parts.split_last().unwrap();
            for (headers, part) in others {
                assert_eq!(arrived.add(Some(headers), part), Ok(None));
            }
            assert_eq!(arrived.add(Some(&last.0), &last.1), Ok(Some(payload)));
        }
        let mut headers = HeaderMap::new();
        headers.insert(MORE, "1");
        let mut arrived = Arrived::default();
        for _ in 0..MAX / PART {
            assert_eq!(arrived.add(Some(&headers), &[0; PART]), Ok(None));
        }
        assert_eq!(arrived.add(Some(&headers), &[0]), Err(TooLarge));
    }
}
